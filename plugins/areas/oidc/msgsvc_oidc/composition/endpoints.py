"""The endpoints that clients call."""

from starlette.routing import BaseRoute

from msgsvc_core.plugins.context import PluginContext
from msgsvc_oidc.authorization.pushed_endpoint import PushedEndpoint
from msgsvc_oidc.ciba.endpoint import BackchannelEndpoint
from msgsvc_oidc.ciba.people import HintedPeople
from msgsvc_oidc.ciba.polling import BackchannelGrants
from msgsvc_oidc.ciba.questions import BackchannelQuestions
from msgsvc_oidc.ciba.service import BackchannelRequests
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.device.endpoint import DeviceEndpoint
from msgsvc_oidc.device.polling import DeviceGrants
from msgsvc_oidc.endpoints.client_access import ClientLimit
from msgsvc_oidc.endpoints.metadata import MetadataEndpoints
from msgsvc_oidc.endpoints.token import TokenEndpoints
from msgsvc_oidc.endpoints.userinfo import UserinfoEndpoint
from msgsvc_oidc.polling.service import Polls
from msgsvc_oidc.protocol.clients import CIBA, DEVICE_CODE
from msgsvc_oidc.registration.endpoints import RegistrationEndpoints
from msgsvc_oidc.registration.service import Registrations
from msgsvc_oidc.registration.tokens import RegistrationTokens
from msgsvc_oidc.settings import OidcSettings


class ClientEndpoints:
    """Tokens and `userinfo`, metadata, requests of devices and back ends, registration."""

    def __init__(self, context: PluginContext, records: Records, requests: Requests) -> None:
        settings = context.settings(OidcSettings)
        self._metadata = MetadataEndpoints(
            issuers=records.issuers,
            keys=records.keys,
            texts=context.texts,
            max_age_s=settings.jwks_max_age_s,
            registers=settings.registration,
        )
        self._tokens = _tokens(context, records, requests)
        self._userinfo = UserinfoEndpoint(
            issuers=records.issuers,
            clients=records.clients,
            grants=records.grants,
            people=records.people,
        )
        self._devices = DeviceEndpoint(
            db=context.db,
            issuers=records.issuers,
            access=requests.access,
            limit=requests.limit("devices"),
            devices=requests.devices,
            journal=records.journal,
        )
        self._backchannel = BackchannelEndpoint(
            db=context.db,
            access=requests.access,
            limit=ClientLimit(
                limiter=context.limiter,
                per_minute=settings.ciba_requests_per_minute_per_client,
                name="ciba",
            ),
            requests=_backchannel_requests(context, records),
            journal=records.journal,
        )
        self._pushed = PushedEndpoint(
            db=context.db,
            access=requests.access,
            limit=requests.limit("pushed"),
            journal=records.journal,
            pushed=requests.pushed,
            expected=requests.expected,
        )
        self.registration_tokens = RegistrationTokens(
            clock=context.clock, is_on=settings.registration
        )
        self._registration = RegistrationEndpoints(
            issuers=records.issuers,
            limit=requests.limit("registrations"),
            registrations=Registrations(
                db=context.db, clients=records.clients, tokens=self.registration_tokens
            ),
            is_on=settings.registration,
        )

    def routes(self) -> list[BaseRoute]:
        return [
            # First: most requests are for tokens, and routes are looked through in their order.
            *self._tokens.routes(),
            *self._userinfo.routes(),
            *self._metadata.routes(),
            *self._devices.routes(),
            *self._backchannel.routes(),
            *self._pushed.routes(),
            *self._registration.routes(),
        ]


def _tokens(context: PluginContext, records: Records, requests: Requests) -> TokenEndpoints:
    polls = Polls(
        clock=context.clock,
        consents=records.consents,
        grants=records.grants,
        journal=records.journal,
    )
    return TokenEndpoints(
        db=context.db,
        issuers=records.issuers,
        access=requests.access,
        clients=records.clients,
        grants=records.grants,
        references=records.references,
        sources={
            CIBA: BackchannelGrants(
                db=context.db,
                references=records.references,
                sign_ins=context.peers.sign_ins,
                consents=records.consents,
                polls=polls,
            ),
            DEVICE_CODE: DeviceGrants(
                db=context.db,
                references=records.references,
                consents=records.consents,
                polls=polls,
            ),
        },
        failed=requests.failed,
    )


def _backchannel_requests(context: PluginContext, records: Records) -> BackchannelRequests:
    return BackchannelRequests(
        clock=context.clock,
        db=context.db,
        settings=context.settings(OidcSettings),
        references=records.references,
        people=HintedPeople(
            db=context.db,
            issuers=records.issuers,
            keys=records.keys,
            subscribers=context.subscribers,
            grants=records.grants,
        ),
        questions=BackchannelQuestions(
            texts=context.texts,
            issuers=records.issuers,
            projects=context.projects,
            consents=records.consents,
            sign_ins=context.peers.sign_ins,
        ),
    )
