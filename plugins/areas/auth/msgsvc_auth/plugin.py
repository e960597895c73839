"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.buttons import SealedButtons
from msgsvc_auth.codes import Codes
from msgsvc_auth.confirming import Confirmations
from msgsvc_auth.dashboard import pages
from msgsvc_auth.errors import AUTH_ERRORS
from msgsvc_auth.events import AUTH_EVENTS
from msgsvc_auth.exchange import CodeExchange
from msgsvc_auth.hosted.address_pages import AddressPages
from msgsvc_auth.hosted.addresses import AddressQuestions
from msgsvc_auth.hosted.cookies import ReturnCookies, Tickets
from msgsvc_auth.hosted.pages import HostedPages
from msgsvc_auth.hosted.platform_pages import PlatformPages
from msgsvc_auth.hosted.rendering import PageTemplates
from msgsvc_auth.hosted.service import HostedSignIn
from msgsvc_auth.hosted.sites import Sites
from msgsvc_auth.inbound import SignInBot
from msgsvc_auth.jobs import SessionPurge
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.mini_app import mini_app_router
from msgsvc_auth.mini_app.service import MiniAppSignIn
from msgsvc_auth.outcomes import SignInOutcomes
from msgsvc_auth.personal_data import PERSONAL_DATA
from msgsvc_auth.platforms.exchange import PlatformExchange
from msgsvc_auth.platforms.sealing import SEALED as VISIT_SECRETS
from msgsvc_auth.platforms.visits import PlatformVisits
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_auth.requested.question_limits import QuestionLimits
from msgsvc_auth.requested.questions import DirectQuestions
from msgsvc_auth.requested.sending import QuestionSender
from msgsvc_auth.requested.service import RequestedSignIns
from msgsvc_auth.routes import router
from msgsvc_auth.service import SignIn
from msgsvc_auth.session_limits import AddressLimits, AskingLimits
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("auth", AuthSettings)


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return AUTH_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return AUTH_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("auth", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return VISIT_SECRETS


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "AuthPlugin":
    return AuthPlugin(context)


class AuthPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(AuthSettings)
        metrics = SignInMetrics(
            registry=context.metrics.registry, label=context.metrics.channels.label
        )
        self._links = StaticLinks(
            clock=context.clock,
            channels=context.channels,
            allow_http=settings.allow_http_callbacks,
        )
        self._sign_in = SignIn(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            settings=settings,
            metrics=metrics,
            channels=context.channels,
            confirmations=Confirmations(
                clock=context.clock,
                codes=Codes(context.secrets),
                subscribers=context.subscribers,
                events=context.events,
                billing=context.billing,
                contacts=context.contacts,
                code_lifetime_s=settings.code_lifetime_s,
            ),
            exchange=CodeExchange(
                clock=context.clock, subscribers=context.subscribers, metrics=metrics
            ),
        )
        self._mini_apps = MiniAppSignIn(
            clock=context.clock,
            db=context.db,
            projects=context.projects,
            channels=context.channels,
            sign_in=self._sign_in,
            links=self._links,
            minutes=settings.mini_app_minutes,
        )
        buttons = SealedButtons(context.secrets)
        self._addressed = AddressedSignIns(
            texts=context.texts,
            projects=context.projects,
            channels=context.channels,
            subscribers=context.subscribers,
            outbox=context.outbox,
            buttons=buttons,
            sign_in=self._sign_in,
            limits=AddressLimits(context.clock, settings),
        )
        requested_pages = RequestedPages(
            clock=context.clock,
            settings=settings,
            base_url=context.config.base_url,
            sign_in=self._sign_in,
        )
        self._requested = RequestedSignIns(
            clock=context.clock,
            codes=Codes(context.secrets),
            exchange=CodeExchange(
                clock=context.clock,
                subscribers=context.subscribers,
                metrics=metrics,
                kind="plugin",
            ),
            sign_in=self._sign_in,
            pages=requested_pages,
            questions=DirectQuestions(
                subscribers=context.subscribers,
                sign_in=self._sign_in,
                limits=QuestionLimits(clock=context.clock, settings=settings),
                sender=QuestionSender(
                    texts=context.texts,
                    projects=context.projects,
                    channels=context.channels,
                    messages=context.messages,
                    outbox=context.outbox,
                    buttons=buttons,
                    sign_in=self._sign_in,
                ),
            ),
        )
        hosted = HostedSignIn(
            clock=context.clock,
            db=context.db,
            limiter=context.limiter,
            settings=settings,
            channels=context.channels,
            sign_in=self._sign_in,
        )
        sites = Sites(
            db=context.db,
            projects=context.projects,
            links=self._links,
            requested=requested_pages,
        )
        visits = PlatformVisits(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            channels=context.channels,
            jobs=context.jobs,
            settings=settings,
            base_url=context.config.base_url,
        )
        questions = AddressQuestions(
            db=context.db,
            channels=context.channels,
            settings=settings,
            sign_in=self._sign_in,
            addressed=self._addressed,
            limits=AskingLimits(context.clock, settings),
        )
        tickets, templates = Tickets(context.config.base_url), PageTemplates(context.texts)
        self._pages = HostedPages(
            hosted=hosted,
            sites=sites,
            visits=visits,
            questions=questions,
            texts=context.texts,
            tickets=tickets,
            templates=templates,
        )
        self._address_pages = AddressPages(
            hosted=hosted,
            sites=sites,
            questions=questions,
            texts=context.texts,
            tickets=tickets,
            templates=templates,
        )
        self._platform_pages = PlatformPages(
            hosted=hosted,
            sites=sites,
            visits=visits,
            texts=context.texts,
            tickets=tickets,
            cookies=ReturnCookies(context.config.base_url),
            templates=templates,
        )
        self._platform_exchange = PlatformExchange(
            clock=context.clock,
            secrets=context.secrets,
            channels=context.channels,
            contacts=context.contacts,
            sign_in=self._sign_in,
        )
        self._bot = SignInBot(
            clock=context.clock,
            texts=context.texts,
            projects=context.projects,
            buttons=buttons,
            sign_in=self._sign_in,
            links=self._links,
            requesters=context.peers.sign_ins,
        )
        self._purge = SessionPurge(clock=context.clock)
        self._outcomes = SignInOutcomes(clock=context.clock)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            SignIn: self._sign_in,
            AddressedSignIns: self._addressed,
            StaticLinks: self._links,
            MiniAppSignIn: self._mini_apps,
            SignInOutcomes: self._outcomes,
        }

    @hookimpl
    def register_sign_ins(self) -> RequestedSignIns:
        return self._requested

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [*router.endpoints, *mini_app_router.endpoints]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [
            *self._platform_pages.routes(),
            *self._address_pages.routes(),
            *self._pages.routes(),
        ]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return self._bot.rules()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [self._purge.spec, self._platform_exchange.spec]

    @hookimpl
    async def on_start(self) -> None:
        self._sign_in.allow_waits()

    @hookimpl
    def on_stopping(self) -> None:
        self._sign_in.cancel_waits()
