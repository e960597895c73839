"""Bulk actions on tickets: one change of many, in steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.bulk_actions import BulkAction, BulkActionEngine, BulkActionFailed
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import JobSpec
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.members.service import Members
from msgsvc_core.plugins.tickets import Priority
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import store
from msgsvc_helpdesk.bulk_actions.models import ERRORS, StartTicketBulkActionBody
from msgsvc_helpdesk.models import API, VIRTUAL, Status, Ticket, TicketFilters
from msgsvc_helpdesk.service import Tickets

#: Tickets that are changed per transaction: a close writes its events, clocks and a question for a rating.
CHANGED = 20


class TicketWork:
    """What bulk actions do with tickets; a `BulkWork`."""

    kind = "tickets"
    job = "helpdesk.bulk_action"
    errors: Mapping[str, str] = ERRORS

    def __init__(self, *, tickets: Tickets) -> None:
        self._tickets = tickets

    def batch(self, bulk: BulkAction) -> int:
        return CHANGED

    def needs_confirmation(self, bulk: BulkAction) -> bool:
        """Each of the changes can be undone by another one."""
        return False

    async def select(
        self, tx: Tx, bulk: BulkAction, limit: int
    ) -> tuple[Sequence[str], str | None]:
        asked = from_json(bulk.filters or "{}")
        filters = TicketFilters.model_construct(**asked["filters"])
        due = asked["due"] and (asked["due"][0], asked["due"][1])
        return await store.select_ids(tx, bulk.project_id, filters, bulk.collected_to, limit, due)

    async def change(self, tx: Tx, bulk: BulkAction, ids: Sequence[str]) -> int:
        await self._check_assignee(tx, bulk)
        held: list[Ticket] = []
        # All before the first change, which may lock the desk: others lock it after their ticket.
        for ticket_id in sorted(ids):
            try:
                held.append(await self._tickets.lock(tx, bulk.project_id, ticket_id))
            except NotFound:
                # Deleted meanwhile.
                continue
        if bulk.action == "set_status":
            # Those that are opened may get an agent. Others lock the desk before the counters of targets.
            await self._tickets.assignment.lock(tx, bulk.project_id)
        done = 0
        for ticket in held:
            try:
                await self._change_one(tx, bulk, ticket.ticket_id)
                done += 1
            except (Conflict, ValidationFailed):
                # As a request for this ticket would be refused: nothing of it is written.
                continue
        return done

    async def _check_assignee(self, tx: Tx, bulk: BulkAction) -> None:
        if bulk.action == "assign" and bulk.value is not None:
            try:
                await self._tickets.check_agent(tx, bulk.project_id, bulk.value, "value")
            except (NotFound, ValidationFailed):
                raise BulkActionFailed("assignee_gone") from None

    async def _change_one(self, tx: Tx, bulk: BulkAction, ticket_id: str) -> None:
        tickets, key, value = self._tickets, (tx, bulk.project_id, ticket_id), bulk.value
        if bulk.action == "assign":
            await tickets.assign(*key, value, API)
        elif bulk.action == "close":
            await tickets.close(*key, API)
        elif bulk.action == "set_status":
            await tickets.set_status(*key, cast(Status, value), API)
        elif bulk.action == "set_priority":
            await tickets.set_priority(*key, cast(Priority, value), API)
        elif bulk.action == "add_tag":
            await tickets.add_tag(*key, value or "", API)
        else:
            await tickets.remove_tag(*key, value or "", API)


class TicketBulkActions:
    """The bulk actions on tickets of all projects. One is about `most` tickets at most."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        members: Members,
        subscribers: Subscribers,
        tickets: Tickets,
        most: int,
    ) -> None:
        self._engine = BulkActionEngine(
            TicketWork(tickets=tickets), clock=clock, jobs=jobs, events=events, most=most
        )
        self._members = members
        self._subscribers = subscribers
        self._tickets = tickets

    @property
    def spec(self) -> JobSpec:
        return self._engine.spec

    async def start(self, tx: Tx, project_id: str, body: StartTicketBulkActionBody) -> BulkAction:
        """Raises `NotFound` and `ValidationFailed` for an assignee who does not answer customers."""
        if body.action == "assign" and body.value is not None:
            await self._tickets.check_agent(tx, project_id, body.value, "value")
        filters: str | None = None
        if body.ticket_ids is None:
            wanted = body.filters or TicketFilters()
            if wanted.channel not in {None, VIRTUAL}:
                await self._subscribers.check_channel(tx, project_id, wanted.channel or "")
            # What is overdue is so at the start: what becomes so meanwhile is another ticket.
            due = await self._tickets.sla.due_within(tx, project_id, wanted.due)
            shown = wanted.model_dump(exclude_unset=True, exclude_none=True)
            everything = dict.fromkeys(TicketFilters.model_fields)
            filters = to_json({"filters": {**everything, **shown}, "due": due})
        bulk = await self._engine.start(
            tx,
            project_id,
            body.action,
            body.value,
            filters=filters,
            ids=body.ticket_ids or (),
        )
        return await self._named(tx, bulk)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[BulkAction]:
        """Newest first; one more than `query.limit` if there are more."""
        found = await self._engine.page(tx, project_id, query)
        ids = [bulk.value for bulk in found if bulk.action == "assign" and bulk.value]
        members = await self._members.get_many(tx, project_id, ids)
        names = {member_id: member.name for member_id, member in members.items()}
        return [replace(bulk, label=names.get(bulk.value or "")) for bulk in found]

    async def get(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Raises `NotFound`, for another project's as well."""
        return await self._named(tx, await self._engine.get(tx, project_id, bulk_action_id))

    async def cancel(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Ends one after the step that it is at; what is done stays. Raises `Conflict` if it has ended."""
        return await self._named(tx, await self._engine.cancel(tx, project_id, bulk_action_id))

    async def _named(self, tx: Tx, bulk: BulkAction) -> BulkAction:
        """With the name of its assignee."""
        if bulk.action != "assign" or bulk.value is None:
            return bulk
        members = await self._members.get_many(tx, bulk.project_id, [bulk.value])
        member = members.get(bulk.value)
        return replace(bulk, label=None if member is None else member.name)
