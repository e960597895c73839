"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Sequence
from pathlib import Path

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.files import StoredFile
from msgsvc_core.members import Member
from msgsvc_core.parts import Built
from msgsvc_core.plugins.composed import ComposedPlugin
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.inbound import AgentBot
from msgsvc_helpdesk.agents.jobs import SentNotes
from msgsvc_helpdesk.agents.notifications import AgentNotifications
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.bulk_actions.actions import TicketBulkActions
from msgsvc_helpdesk.canned_answers.service import CannedAnswers
from msgsvc_helpdesk.correspondence import Correspondence
from msgsvc_helpdesk.customers.away import AwayMessages
from msgsvc_helpdesk.customers.inbound import HelpdeskBot
from msgsvc_helpdesk.customers.ratings import RatingRequests, Ratings
from msgsvc_helpdesk.customers.threads import OpenedThreads
from msgsvc_helpdesk.dashboard import pages
from msgsvc_helpdesk.dashboard.conversation import Conversations
from msgsvc_helpdesk.dashboard.inbox import TicketList
from msgsvc_helpdesk.dashboard.presence import Presence
from msgsvc_helpdesk.events import HELPDESK_EVENTS
from msgsvc_helpdesk.inbox import Inbox
from msgsvc_helpdesk.jobs import TicketJobs
from msgsvc_helpdesk.personal_data import PERSONAL_DATA
from msgsvc_helpdesk.routes import router
from msgsvc_helpdesk.sending import ReplySender
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.service_levels.desk_hours import DeskHours
from msgsvc_helpdesk.service_levels.settings import SlaSettings
from msgsvc_helpdesk.settings import HelpdeskSettings
from msgsvc_helpdesk.team.viewers import TicketViewers

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("helpdesk", HelpdeskSettings)


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return HELPDESK_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("helpdesk", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "HelpdeskPlugin":
    return HelpdeskPlugin(
        context, [_tickets, _customers, _agents, _ratings, _jobs, _service_levels, _inbox]
    )


class HelpdeskPlugin(ComposedPlugin):
    """The plugin's objects, and what they do for the core."""

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    async def open_ticket(self, tx: Tx, request: TicketRequest) -> str:
        return await self.get(Tickets).open_requested(tx, request)

    @hookimpl
    async def forget_source(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        await self.get(Tickets).forget_source(tx, project_id, source, source_id)

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        await self.get(TicketJobs).erase(project_id, subscriber_id)

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        """Notifies agents in their messengers, and asks customers for ratings."""
        notifications, rating_requests = self.get(AgentNotifications), self.get(RatingRequests)
        for event in events:
            await notifications.on_event(tx, event)
            await rating_requests.on_event(tx, event)

    @hookimpl
    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        """Forwards a customer's file to the assigned agent, and an agent's to the customer."""
        await self.get(AgentNotifications).on_file_fetched(tx, file)
        await self.get(Answering).on_file_fetched(tx, file)

    @hookimpl
    async def on_member_changed(self, tx: Tx, before: Member, after: Member | None) -> None:
        """Reassigns tickets of members who no longer answer customers, and forgets what they have seen."""
        if after is None or after.status != "active":
            await self.get(TicketViewers).forget(tx, before.project_id, before.member_id)
        await self.get(AgentNotifications).on_member_changed(tx, before, after)


def _tickets(*, context: PluginContext, settings: HelpdeskSettings) -> Built:
    correspondence = Correspondence(channels=context.channels, messages=context.messages)
    tickets = Tickets(
        clock=context.clock,
        events=context.events,
        billing=context.billing,
        members=context.members,
        subscribers=context.subscribers,
        files=context.files,
        sender=ReplySender(
            config=context.config,
            subscribers=context.subscribers,
            files=context.files,
            messages=context.messages,
            correspondence=correspondence,
        ),
        settings=settings,
    )
    threads = OpenedThreads(outbox=context.outbox)
    bulk_actions = TicketBulkActions(
        clock=context.clock,
        jobs=context.jobs,
        events=context.events,
        members=context.members,
        subscribers=context.subscribers,
        tickets=tickets,
        most=settings.bulk_action_tickets,
    )
    return Built(
        provides=[correspondence, tickets, bulk_actions],
        jobs=lambda: [bulk_actions.spec, threads.spec],
    )


def _agents(*, context: PluginContext, tickets: Tickets) -> Built:
    """Agents who answer in their messengers."""
    desk = AgentDesk(
        clock=context.clock,
        texts=context.texts,
        channels=context.channels,
        outbox=context.outbox,
        members=context.members,
        subscribers=context.subscribers,
        files=context.files,
        tickets=tickets,
    )
    notifications = AgentNotifications(
        jobs=context.jobs, members=context.members, tickets=tickets, desk=desk
    )
    answering = Answering(
        texts=context.texts,
        members=context.members,
        outbox=context.outbox,
        files=context.files,
        subscribers=context.subscribers,
        tickets=tickets,
        desk=desk,
    )
    bot = AgentBot(
        clock=context.clock,
        projects=context.projects,
        members=context.members,
        subscribers=context.subscribers,
        messages=context.messages,
        tickets=tickets,
        desk=desk,
        answering=answering,
    )
    sent_notes = SentNotes(desk=desk)
    return Built(
        provides=[desk, notifications, answering],
        jobs=lambda: [sent_notes.spec],
        inbound=bot.rules,
    )


def _ratings(
    *,
    context: PluginContext,
    settings: HelpdeskSettings,
    correspondence: Correspondence,
    tickets: Tickets,
) -> Built:
    rating_requests = RatingRequests(
        texts=context.texts,
        channels=context.channels,
        outbox=context.outbox,
        projects=context.projects,
        subscribers=context.subscribers,
        correspondence=correspondence,
        settings=settings,
    )
    ratings = Ratings(
        clock=context.clock,
        jobs=context.jobs,
        texts=context.texts,
        outbox=context.outbox,
        subscribers=context.subscribers,
        tickets=tickets,
        settings=settings,
    )
    return Built(
        provides=[rating_requests, ratings], jobs=lambda: [ratings.spec], inbound=ratings.rules
    )


def _customers(
    *, context: PluginContext, settings: HelpdeskSettings, tickets: Tickets, hours: DeskHours
) -> Built:
    """What customers write to the bot."""
    bot = HelpdeskBot(
        projects=context.projects,
        subscribers=context.subscribers,
        messages=context.messages,
        files=context.files,
        tickets=tickets,
        away=AwayMessages(
            clock=context.clock, hours=hours, default_lang=context.config.default_lang
        ),
        settings=settings,
    )
    return Built(inbound=bot.rules)


def _jobs(
    *,
    context: PluginContext,
    settings: HelpdeskSettings,
    tickets: Tickets,
    notifications: AgentNotifications,
) -> Built:
    jobs = TicketJobs(
        clock=context.clock,
        db=context.db,
        jobs=context.jobs,
        files=context.files,
        tickets=tickets,
        notifications=notifications,
        settings=settings,
    )
    return Built(provides=[jobs], jobs=lambda: jobs.specs)


def _service_levels(*, context: PluginContext) -> Built:
    sla = SlaSettings(jobs=context.jobs)
    return Built(provides=[sla, DeskHours(sla=sla)])


def _inbox(*, context: PluginContext, settings: HelpdeskSettings, tickets: Tickets) -> Built:
    """What endpoints and pages ask for."""
    inbox = Inbox(clock=context.clock, sla=tickets.sla, settings=settings)
    viewers = TicketViewers(clock=context.clock)
    blocklist = Blocklist(clock=context.clock, subscribers=context.subscribers)
    canned_answers = CannedAnswers(clock=context.clock, config=context.config, settings=settings)
    presence = Presence(db=context.db, viewers=viewers)
    ticket_list = TicketList(
        clock=context.clock,
        members=context.members,
        inbox=inbox,
        viewers=viewers,
        assignment=tickets.assignment,
    )
    conversations = Conversations(
        tickets=tickets,
        members=context.members,
        messages=context.messages,
        files=context.files,
        viewers=viewers,
        base_url=context.config.base_url,
    )
    return Built(
        provides=[
            inbox,
            viewers,
            blocklist,
            canned_answers,
            presence,
            ticket_list,
            conversations,
        ]
    )
