"""What goes on without a request: jobs, and calls to hosts of clients."""

from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_oidc.backchannel_logout.jobs import LogoutJobs
from msgsvc_oidc.backchannel_logout.sender import LogoutSender
from msgsvc_oidc.clients.key_fetcher import KeyFetcher
from msgsvc_oidc.clients.key_jobs import ClientKeyJobs
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.jobs import OidcJobs
from msgsvc_oidc.settings import OidcSettings


class BackgroundJobs:
    """Retention, rotation of keys, logout tokens, and keys of clients at a URL."""

    def __init__(self, context: PluginContext, records: Records) -> None:
        settings = context.settings(OidcSettings)
        guard = OutboundGuard(settings.allow_cidrs, settings.allow_http_logout)
        self._sender = LogoutSender(
            clock=context.clock, guard=guard, timeout_s=settings.logout_timeout_s
        )
        self._fetcher = KeyFetcher(guard=guard, timeout_s=settings.logout_timeout_s)
        self._logouts = LogoutJobs(
            clock=context.clock,
            db=context.db,
            issuers=records.issuers,
            clients=records.clients,
            keys=records.keys,
            sender=self._sender,
        )
        self._client_keys = ClientKeyJobs(db=context.db, fetcher=self._fetcher)
        self._hourly = OidcJobs(clock=context.clock, settings=settings, keys=records.keys)

    def specs(self) -> list[JobSpec]:
        return [*self._hourly.specs(), *self._client_keys.specs(), *self._logouts.specs()]

    def lanes(self) -> list[LaneSpec]:
        return [*self._client_keys.lanes(), *self._logouts.lanes()]

    async def close(self) -> None:
        """Closes the connections to hosts of clients."""
        await self._sender.close()
        await self._fetcher.close()
