"""Hook implementations: what the plugin declares, and its objects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_dashboard import developers, overview
from msgsvc_dashboard.developers.keys import KeyAreas
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.frame.gate import Gate, Places
from msgsvc_dashboard.overview import Counts, FoldJob
from msgsvc_dashboard.people import areas as people
from msgsvc_dashboard.people.composing import ComposeForm
from msgsvc_dashboard.sign_in import SignInPages
from msgsvc_dashboard.sign_in.cookies import Cookies
from msgsvc_dashboard.sign_in.entering import Entering
from msgsvc_dashboard.sign_in.forms import Forms
from msgsvc_dashboard.sign_in.links import LinkPages
from msgsvc_dashboard.sign_in.messengers import MessengerPages
from msgsvc_dashboard.sign_in.rendering import Rendering
from msgsvc_dashboard.sign_in.tools import PageTools
from msgsvc_dashboard.team import areas as team
from msgsvc_dashboard.team.reauthentication import Reauthentication

HERE = Path(__file__).parent


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("dashboard", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


class DashboardPlugin:
    """The objects of the plugin, and what it adds to the service."""

    def __init__(self, context: PluginContext) -> None:
        parts = context.dashboard
        gate = Gate(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            texts=context.texts,
            accounts=parts.accounts,
            places=Places(
                billing=context.billing,
                projects=context.projects,
                members=context.members,
                accounts=parts.accounts,
            ),
            settings=context.config,
        )
        self.site = Site(
            db=context.db,
            secrets=context.secrets,
            texts=context.texts,
            accounts=parts.accounts,
            audit=parts.audit,
            gate=gate,
            find_areas=parts.areas,
        )
        self.sign_in_pages = _sign_in_pages(context, gate)
        self.counts = Counts(clock=context.clock)
        self.fold_job = FoldJob(counts=self.counts)
        self.reauthentication = Reauthentication(
            clock=context.clock,
            db=context.db,
            accounts=parts.accounts,
            sign_in=parts.sign_in,
        )
        self.compose_form = ComposeForm(
            templates=context.templates,
            messages=context.messages,
            permissions=context.permissions,
            subscribers=context.subscribers,
            default_lang=context.config.default_lang,
        )
        self.key_areas = KeyAreas(endpoints=parts.endpoints)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            Site: self.site,
            Counts: self.counts,
            Reauthentication: self.reauthentication,
            ComposeForm: self.compose_form,
            KeyAreas: self.key_areas,
        }

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [self.fold_job.spec]

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self.counts.count(tx, events)

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [overview.pages, developers.pages, *people, *team]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [*self.sign_in_pages.routes(), *self.site.routes()]


@hookimpl
def create_plugin(context: PluginContext) -> DashboardPlugin:
    return DashboardPlugin(context)


def _sign_in_pages(context: PluginContext, gate: Gate) -> SignInPages:
    parts = context.dashboard
    cookies = Cookies(settings=context.config)
    forms = Forms(secrets=context.secrets, cookies=cookies)
    rendering = Rendering(
        texts=context.texts,
        cookies=cookies,
        forms=forms,
        default_lang=context.config.default_lang,
    )
    entering = Entering(db=context.db, accounts=parts.accounts, cookies=cookies)
    tools = PageTools(
        gate=gate, cookies=cookies, forms=forms, rendering=rendering, entering=entering
    )
    messengers = MessengerPages(
        db=context.db,
        accounts=parts.accounts,
        sign_in=parts.sign_in,
        messenger_sign_in=parts.messenger_sign_in,
        tools=tools,
    )
    links = LinkPages(
        db=context.db,
        projects=context.projects,
        accounts=parts.accounts,
        account_links=parts.account_links,
        audit=parts.audit,
        sign_in=parts.sign_in,
        team=parts.team,
        tools=tools,
    )
    return SignInPages(
        db=context.db,
        channels=context.channels,
        accounts=parts.accounts,
        sign_in=parts.sign_in,
        messenger_sign_in=parts.messenger_sign_in,
        tools=tools,
        messengers=messengers,
        links=links,
    )
