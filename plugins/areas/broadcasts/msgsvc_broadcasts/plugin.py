"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_broadcasts.clicks import Clicks
from msgsvc_broadcasts.dashboard import pages
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.errors import BROADCAST_ERRORS
from msgsvc_broadcasts.events import BROADCAST_EVENTS
from msgsvc_broadcasts.experiments import Experiments
from msgsvc_broadcasts.link_pages import LinkPages
from msgsvc_broadcasts.links import Links
from msgsvc_broadcasts.personal_data import PERSONAL_DATA
from msgsvc_broadcasts.routes import router
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.members.models import Member
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return BROADCAST_EVENTS


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return BROADCAST_ERRORS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("broadcasts", Path(__file__).parent / "migrations")


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "BroadcastsPlugin":
    return BroadcastsPlugin(context)


class BroadcastsPlugin:
    """The plugin's object, and the hooks that need it."""

    def __init__(self, context: PluginContext) -> None:
        self._links = Links(
            clock=context.clock,
            mailings=context.mailings,
            subscribers=context.subscribers,
            events=context.events,
            tracking=LinkTracking(secrets=context.secrets, base_url=context.config.base_url),
        )
        self._link_pages = LinkPages(db=context.db, limiter=context.limiter, links=self._links)
        self._broadcasts = Broadcasts(
            mailings=context.mailings,
            events=context.events,
            projects=context.projects,
            links=self._links,
        )
        self._drafts = DraftTests(
            mailings=context.mailings,
            messages=context.messages,
            subscribers=context.subscribers,
            billing=context.billing,
        )

        self._clicks = Clicks(
            clock=context.clock,
            messages=context.messages,
            kept_days=context.config.limits.recipient_days,
        )
        self._experiments = Experiments(
            mailings=context.mailings,
            clicks=self._clicks,
            events=context.events,
            jobs=context.jobs,
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            Broadcasts: self._broadcasts,
            DraftTests: self._drafts,
            Clicks: self._clicks,
            Experiments: self._experiments,
            Links: self._links,
        }

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [*self._clicks.specs(), self._experiments.spec]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return self._link_pages.routes()

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self._clicks.on_events(tx, events)

    @hookimpl
    async def on_mailing_ended(self, tx: Tx, mailing: Mailing) -> None:
        await self._broadcasts.emit_finished(tx, mailing)

    @hookimpl
    async def on_mailing_tested(self, tx: Tx, mailing: Mailing) -> None:
        await self._experiments.on_tested(tx, mailing)

    @hookimpl
    async def on_member_changed(self, tx: Tx, before: Member, after: Member | None) -> None:
        if after is None or after.status == "removed":
            await self._drafts.forget(tx, before.project_id, before.member_id)
