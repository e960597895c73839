"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_oidc.apps.inbound import AppsCommand
from msgsvc_oidc.authorization.consent_pages import ConsentPages
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.endings import RequestEndings
from msgsvc_oidc.authorization.hints import ExpectedPeople
from msgsvc_oidc.authorization.issuing import CodeIssuer
from msgsvc_oidc.authorization.pages import AuthorizationPages
from msgsvc_oidc.authorization.pushed import PushedRequests
from msgsvc_oidc.authorization.pushed_endpoint import PushedEndpoint
from msgsvc_oidc.authorization.questions import ConsentQuestions
from msgsvc_oidc.authorization.reading import RequestReader
from msgsvc_oidc.authorization.rendering import ConsentTemplates
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.authorization.sign_in_pages import SignInPages
from msgsvc_oidc.backchannel_logout.jobs import LogoutJobs
from msgsvc_oidc.backchannel_logout.sender import LogoutSender
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.ciba.endpoint import BackchannelEndpoint
from msgsvc_oidc.ciba.people import HintedPeople
from msgsvc_oidc.ciba.polling import BackchannelGrants
from msgsvc_oidc.ciba.questions import BackchannelQuestions
from msgsvc_oidc.ciba.service import BackchannelRequests
from msgsvc_oidc.clients.key_fetcher import KeyFetcher
from msgsvc_oidc.clients.key_jobs import ClientKeyJobs
from msgsvc_oidc.clients.remote_keys import RemoteKeys
from msgsvc_oidc.clients.routes import router
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.dashboard import pages
from msgsvc_oidc.device.endpoint import DeviceEndpoint
from msgsvc_oidc.device.polling import DeviceGrants
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.device_pages.pages import DevicePages
from msgsvc_oidc.device_pages.rendering import DeviceTemplates
from msgsvc_oidc.endpoints.client_access import ClientAccess, RequestLimit
from msgsvc_oidc.endpoints.metadata import MetadataEndpoints
from msgsvc_oidc.endpoints.token import TokenEndpoints
from msgsvc_oidc.endpoints.userinfo import UserinfoEndpoint
from msgsvc_oidc.erasure import SubscriberErasure
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.jobs import OidcJobs
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.logout.pages import LogoutPages
from msgsvc_oidc.logout.reading import LogoutReader
from msgsvc_oidc.logout.rendering import LogoutTemplates
from msgsvc_oidc.logout.service import Logouts
from msgsvc_oidc.people import People
from msgsvc_oidc.polling.service import Polls
from msgsvc_oidc.protocol.clients import CIBA, DEVICE_CODE
from msgsvc_oidc.registration.endpoints import RegistrationEndpoints
from msgsvc_oidc.registration.routes import router as registration_router
from msgsvc_oidc.registration.service import Registrations
from msgsvc_oidc.registration.tokens import RegistrationTokens
from msgsvc_oidc.sessions.service import Sessions
from msgsvc_oidc.settings import OidcSettings

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("oidc", OidcSettings)


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("oidc", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [SealedColumn("oidc_keys", "private_sealed")]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "OidcPlugin":
    return OidcPlugin(context)


class OidcPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(OidcSettings)
        references = References(context.secrets)
        self._issuers = Issuers(
            clock=context.clock,
            db=context.db,
            projects=context.projects,
            base_url=context.config.base_url,
        )
        self._keys = SigningKeys(
            clock=context.clock, db=context.db, secrets=context.secrets, settings=settings
        )
        guard = OutboundGuard(settings.allow_cidrs, settings.allow_http_logout)
        self._clients = Clients(
            clock=context.clock,
            db=context.db,
            settings=settings,
            remote_keys=RemoteKeys(clock=context.clock, jobs=context.jobs),
        )
        self._key_fetcher = KeyFetcher(guard=guard, timeout_s=settings.logout_timeout_s)
        self._key_jobs = ClientKeyJobs(db=context.db, fetcher=self._key_fetcher)
        self._journal = SignInJournal(clock=context.clock)
        grants = Grants(
            clock=context.clock,
            db=context.db,
            settings=settings,
            references=references,
            keys=self._keys,
        )
        self._logout_deliveries = LogoutDeliveries(clock=context.clock, jobs=context.jobs)
        self._logout_sender = LogoutSender(
            clock=context.clock,
            guard=guard,
            timeout_s=settings.logout_timeout_s,
        )
        self._logout_jobs = LogoutJobs(
            clock=context.clock,
            db=context.db,
            issuers=self._issuers,
            clients=self._clients,
            keys=self._keys,
            sender=self._logout_sender,
        )
        self._erasure = SubscriberErasure(
            db=context.db,
            grants=grants,
            deliveries=self._logout_deliveries,
            journal=self._journal,
        )
        self._consents = Consents(
            clock=context.clock,
            grants=grants,
            logouts=self._logout_deliveries,
            subscribers=context.subscribers,
            permissions=context.permissions,
            texts=context.texts,
        )
        self._apps = AppsCommand(
            subscribers=context.subscribers,
            projects=context.projects,
            consents=self._consents,
            listed=settings.apps_in_menu,
        )
        sessions = Sessions(clock=context.clock, settings=settings, references=references)
        access = ClientAccess(
            issuers=self._issuers,
            clients=self._clients,
            limiter=context.limiter,
            failures_per_minute=settings.failures_per_minute_per_client,
        )
        self._metadata = MetadataEndpoints(
            issuers=self._issuers,
            keys=self._keys,
            texts=context.texts,
            max_age_s=settings.jwks_max_age_s,
            registers=settings.registration,
        )
        limit = RequestLimit(
            limiter=context.limiter, per_minute=settings.requests_per_minute_per_address
        )
        polls = Polls(
            clock=context.clock, consents=self._consents, grants=grants, journal=self._journal
        )
        devices = DeviceRequests(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            settings=settings,
            references=references,
            journal=self._journal,
        )
        self._devices = DeviceEndpoint(
            db=context.db,
            issuers=self._issuers,
            access=access,
            limit=limit,
            devices=devices,
            journal=self._journal,
        )
        self._backchannel = BackchannelEndpoint(
            db=context.db,
            access=access,
            requests=BackchannelRequests(
                clock=context.clock,
                db=context.db,
                settings=settings,
                references=references,
                people=HintedPeople(
                    db=context.db,
                    issuers=self._issuers,
                    keys=self._keys,
                    subscribers=context.subscribers,
                    grants=grants,
                ),
                questions=BackchannelQuestions(
                    texts=context.texts,
                    issuers=self._issuers,
                    projects=context.projects,
                    consents=self._consents,
                    sign_ins=context.peers.sign_ins,
                ),
            ),
            journal=self._journal,
        )
        self._tokens = TokenEndpoints(
            db=context.db,
            issuers=self._issuers,
            access=access,
            grants=grants,
            references=references,
            sources={
                CIBA: BackchannelGrants(
                    db=context.db,
                    references=references,
                    sign_ins=context.peers.sign_ins,
                    consents=self._consents,
                    polls=polls,
                ),
                DEVICE_CODE: DeviceGrants(
                    db=context.db,
                    references=references,
                    consents=self._consents,
                    polls=polls,
                ),
            },
        )
        self._userinfo = UserinfoEndpoint(
            issuers=self._issuers,
            grants=grants,
            people=People(
                db=context.db, subscribers=context.subscribers, contacts=context.contacts
            ),
        )
        cookies = BrowserCookies(issuers=self._issuers, sessions=sessions, references=references)
        templates = ConsentTemplates(context.texts)
        responses = BrowserResponses(
            issuers=self._issuers,
            texts=context.texts,
            settings=settings,
            cookies=cookies,
            templates=templates,
        )
        authorizations = Authorizations(
            clock=context.clock,
            db=context.db,
            lifetime_s=settings.request_lifetime_s,
            clients=self._clients,
            sessions=sessions,
            consents=self._consents,
            pages=SignInPages(
                issuers=self._issuers,
                sign_ins=context.peers.sign_ins,
                channels=context.channels,
            ),
            endings=RequestEndings(
                codes=CodeIssuer(
                    issuers=self._issuers,
                    consents=self._consents,
                    grants=grants,
                    journal=self._journal,
                ),
                devices=devices,
            ),
        )
        pushed = PushedRequests(
            clock=context.clock,
            db=context.db,
            references=references,
            lifetime_s=settings.pushed_lifetime_s,
        )
        expected = ExpectedPeople(
            db=context.db, issuers=self._issuers, keys=self._keys, grants=grants
        )
        self._pushed = PushedEndpoint(
            db=context.db,
            access=access,
            limit=limit,
            journal=self._journal,
            pushed=pushed,
            expected=expected,
        )
        self._authorization_pages = AuthorizationPages(
            db=context.db,
            issuers=self._issuers,
            limit=limit,
            reader=RequestReader(clients=self._clients, pushed=pushed, expected=expected),
            journal=self._journal,
            authorizations=authorizations,
            cookies=cookies,
            responses=responses,
        )
        self._consent_pages = ConsentPages(
            issuers=self._issuers,
            authorizations=authorizations,
            questions=ConsentQuestions(
                db=context.db,
                projects=context.projects,
                subscribers=context.subscribers,
                clients=self._clients,
                authorizations=authorizations,
            ),
            cookies=cookies,
            templates=templates,
            responses=responses,
        )
        self._device_pages = DevicePages(
            issuers=self._issuers,
            limit=RequestLimit(
                limiter=context.limiter,
                per_minute=settings.device_codes_per_minute_per_address,
                name="device_codes",
            ),
            clients=self._clients,
            devices=devices,
            authorizations=authorizations,
            cookies=cookies,
            responses=responses,
            templates=DeviceTemplates(context.texts),
        )
        self._logout_pages = LogoutPages(
            issuers=self._issuers,
            limit=limit,
            reader=LogoutReader(issuers=self._issuers, clients=self._clients, keys=self._keys),
            logouts=Logouts(
                db=context.db,
                sessions=sessions,
                grants=grants,
                deliveries=self._logout_deliveries,
                references=references,
            ),
            cookies=cookies,
            templates=LogoutTemplates(context.texts),
            responses=responses,
        )
        self._registration_tokens = RegistrationTokens(
            clock=context.clock, is_on=settings.registration
        )
        self._registration = RegistrationEndpoints(
            issuers=self._issuers,
            limit=limit,
            registrations=Registrations(
                db=context.db, clients=self._clients, tokens=self._registration_tokens
            ),
            is_on=settings.registration,
        )
        self._jobs = OidcJobs(clock=context.clock, settings=settings, keys=self._keys)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            Clients: self._clients,
            Consents: self._consents,
            Issuers: self._issuers,
            LogoutDeliveries: self._logout_deliveries,
            RegistrationTokens: self._registration_tokens,
            SignInJournal: self._journal,
            SigningKeys: self._keys,
        }

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [*router.endpoints, *registration_router.endpoints]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [
            # First: most requests are for tokens, and routes are looked through in their order.
            *self._tokens.routes(),
            *self._consent_pages.routes(),
            *self._backchannel.routes(),
            *self._devices.routes(),
            *self._device_pages.routes(),
            *self._logout_pages.routes(),
            *self._registration.routes(),
            *self._metadata.routes(),
            *self._pushed.routes(),
            *self._authorization_pages.routes(),
            *self._userinfo.routes(),
        ]

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [*self._jobs.specs(), *self._key_jobs.specs(), *self._logout_jobs.specs()]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [*self._key_jobs.lanes(), *self._logout_jobs.lanes()]

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self._erasure.on_events(tx, events)

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        await self._erasure.erase(project_id, subscriber_id)

    @hookimpl
    async def on_stop(self) -> None:
        await self._logout_sender.close()
        await self._key_fetcher.close()

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return self._apps.rules()
