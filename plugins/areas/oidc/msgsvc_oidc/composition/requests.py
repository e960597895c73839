"""What reads and limits requests, and keeps those that wait for a person."""

from msgsvc_core.plugins.context import PluginContext
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.endpoints.client_access import ClientAccess, RequestLimit
from msgsvc_oidc.journal.failures import FailedRequests
from msgsvc_oidc.settings import OidcSettings


class Requests:
    """Requests of clients, by themselves and through browsers."""

    def __init__(self, context: PluginContext, records: Records) -> None:
        settings = context.settings(OidcSettings)
        self.failed = FailedRequests(
            db=context.db, limiter=context.limiter, journal=records.journal
        )
        self.access = ClientAccess(
            issuers=records.issuers,
            clients=records.clients,
            limiter=context.limiter,
            failures_per_minute=settings.failures_per_minute_per_client,
            failed=self.failed,
        )
        self._limiter = context.limiter
        self._per_minute = settings.requests_per_minute_per_address
        self.pushed = PushedRequests(
            clock=context.clock,
            db=context.db,
            references=records.references,
            lifetime_s=settings.pushed_lifetime_s,
        )
        self.expected = ExpectedPeople(
            db=context.db, issuers=records.issuers, keys=records.keys, grants=records.grants
        )
        self.devices = DeviceRequests(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            settings=settings,
            references=records.references,
            journal=records.journal,
        )

    def limit(self, name: str) -> RequestLimit:
        """A limit of its own for each endpoint: renewals behind one address must not stop sign-outs."""
        return RequestLimit(limiter=self._limiter, per_minute=self._per_minute, name=name)
