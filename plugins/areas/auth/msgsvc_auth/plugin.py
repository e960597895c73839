"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Sequence
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
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.parts import Built
from msgsvc_core.plugins.composed import ComposedPlugin
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
    return AuthPlugin(context, [_sign_in, _in_chats, _requested, _hosted, _pages])


class AuthPlugin(ComposedPlugin):
    """The plugin's objects, and the hooks that need them."""

    @hookimpl
    def register_sign_ins(self) -> RequestedSignIns:
        return self.get(RequestedSignIns)

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [*router.endpoints, *mini_app_router.endpoints]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [
            *self.get(PlatformPages).routes(),
            *self.get(AddressPages).routes(),
            *self.get(HostedPages).routes(),
        ]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    async def on_start(self) -> None:
        self.get(SignIn).allow_waits()

    @hookimpl
    def on_stopping(self) -> None:
        self.get(SignIn).cancel_waits()


def _sign_in(*, context: PluginContext, settings: AuthSettings) -> Built:
    metrics = SignInMetrics(registry=context.metrics.registry, label=context.metrics.channels.label)
    links = StaticLinks(
        clock=context.clock,
        channels=context.channels,
        allow_http=settings.allow_http_callbacks,
    )
    sign_in = SignIn(
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
    purge = SessionPurge(clock=context.clock)
    outcomes = SignInOutcomes(clock=context.clock)
    return Built(provides=[metrics, links, sign_in, outcomes], jobs=lambda: [purge.spec])


def _in_chats(
    *, context: PluginContext, settings: AuthSettings, sign_in: SignIn, links: StaticLinks
) -> Built:
    """Sign-in by a button in a chat, and inside a mini app."""
    mini_apps = MiniAppSignIn(
        clock=context.clock,
        db=context.db,
        projects=context.projects,
        channels=context.channels,
        sign_in=sign_in,
        links=links,
        minutes=settings.mini_app_minutes,
    )
    buttons = SealedButtons(context.secrets)
    addressed = AddressedSignIns(
        texts=context.texts,
        projects=context.projects,
        channels=context.channels,
        subscribers=context.subscribers,
        outbox=context.outbox,
        buttons=buttons,
        sign_in=sign_in,
        limits=AddressLimits(context.clock, settings),
    )
    bot = SignInBot(
        clock=context.clock,
        texts=context.texts,
        projects=context.projects,
        buttons=buttons,
        sign_in=sign_in,
        links=links,
        requesters=context.peers.sign_ins,
    )
    return Built(provides=[mini_apps, buttons, addressed], inbound=bot.rules)


def _requested(
    *,
    context: PluginContext,
    settings: AuthSettings,
    metrics: SignInMetrics,
    sign_in: SignIn,
    buttons: SealedButtons,
) -> Built:
    """Sign-ins that another plugin asks for."""
    requested_pages = RequestedPages(
        clock=context.clock,
        settings=settings,
        base_url=context.config.base_url,
        sign_in=sign_in,
    )
    requested = RequestedSignIns(
        clock=context.clock,
        codes=Codes(context.secrets),
        exchange=CodeExchange(
            clock=context.clock,
            subscribers=context.subscribers,
            metrics=metrics,
            kind="plugin",
        ),
        sign_in=sign_in,
        pages=requested_pages,
        questions=DirectQuestions(
            subscribers=context.subscribers,
            sign_in=sign_in,
            limits=QuestionLimits(clock=context.clock, settings=settings),
            sender=QuestionSender(
                texts=context.texts,
                projects=context.projects,
                channels=context.channels,
                messages=context.messages,
                outbox=context.outbox,
                buttons=buttons,
                sign_in=sign_in,
            ),
        ),
    )
    return Built(provides=[requested, requested_pages])


def _hosted(
    *,
    context: PluginContext,
    settings: AuthSettings,
    sign_in: SignIn,
    links: StaticLinks,
    requested_pages: RequestedPages,
    addressed: AddressedSignIns,
) -> Built:
    """What the hosted pages are built on."""
    hosted = HostedSignIn(
        clock=context.clock,
        db=context.db,
        limiter=context.limiter,
        settings=settings,
        channels=context.channels,
        sign_in=sign_in,
    )
    sites = Sites(
        db=context.db,
        projects=context.projects,
        links=links,
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
    exchange = PlatformExchange(
        clock=context.clock,
        secrets=context.secrets,
        channels=context.channels,
        contacts=context.contacts,
        sign_in=sign_in,
    )
    questions = AddressQuestions(
        db=context.db,
        channels=context.channels,
        settings=settings,
        sign_in=sign_in,
        addressed=addressed,
        limits=AskingLimits(context.clock, settings),
    )
    return Built(provides=[hosted, sites, visits, questions], jobs=lambda: [exchange.spec])


def _pages(
    *,
    context: PluginContext,
    hosted: HostedSignIn,
    sites: Sites,
    visits: PlatformVisits,
    questions: AddressQuestions,
) -> Built:
    tickets, templates = Tickets(context.config.base_url), PageTemplates(context.texts)
    pages_of_channels = HostedPages(
        hosted=hosted,
        sites=sites,
        visits=visits,
        questions=questions,
        texts=context.texts,
        tickets=tickets,
        templates=templates,
    )
    address_pages = AddressPages(
        hosted=hosted,
        sites=sites,
        questions=questions,
        texts=context.texts,
        tickets=tickets,
        templates=templates,
    )
    platform_pages = PlatformPages(
        hosted=hosted,
        sites=sites,
        visits=visits,
        texts=context.texts,
        tickets=tickets,
        cookies=ReturnCookies(context.config.base_url),
        templates=templates,
    )
    return Built(provides=[pages_of_channels, address_pages, platform_pages])
