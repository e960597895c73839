"""Notifies agents of new tickets, customers' messages and assignments.

Driven by the plugin's own events, in their transactions, so that a change by the API and one in a messenger
notify all agents alike.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.files import StoredFile
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.members import Member, Members
from msgsvc_helpdesk import events as names
from msgsvc_helpdesk import store as ticket_store
from msgsvc_helpdesk.agents import store
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.models import SYSTEM, Ticket
from msgsvc_helpdesk.service import Tickets

#: The job that unassigns the tickets of a member who no longer answers customers.
GONE_JOB = "helpdesk.agent_gone"


class AgentNotifications:
    """Decides which agents are notified of each event."""

    def __init__(
        self, *, jobs: JobQueue, members: Members, tickets: Tickets, desk: AgentDesk
    ) -> None:
        self._jobs = jobs
        self._members = members
        self._tickets = tickets
        self._desk = desk

    async def on_event(self, tx: Tx, event: Event) -> None:
        """Handles one of the plugin's events; others are ignored."""
        reactions = {
            names.CREATED: self._created,
            names.REPLIED: self._replied,
            names.ASSIGNED: self._assigned,
            names.STATUS_CHANGED: self._moved,
            names.UNANSWERED: self._waiting,
            names.CSAT_RECEIVED: self._rated,
        }
        react = reactions.get(event.name)
        if react is None:
            return
        ticket = await ticket_store.find(tx, event.project_id, event.data["ticket_id"])
        if ticket is not None:
            await react(tx, ticket, event.data)

    async def _created(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        # A ticket assigned from the start is covered by the next event.
        if ticket.assignee_id is None:
            await self._desk.offer(tx, ticket)

    async def _replied(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if data["author"] != "customer":
            return
        agent = await self._agent(tx, ticket)
        if agent is not None:
            [entry] = await self._tickets.entries(tx, ticket.project_id, ticket.ticket_id, None, 1)
            for seat in await self._desk.seats(tx, [agent]):
                await self._desk.send_entry(tx, seat, ticket, entry)
        elif ticket.assignee_id is not None:
            # Whoever had it answers no customers any more; all others are offered it by this.
            await self._tickets.assign(tx, ticket.project_id, ticket.ticket_id, None, SYSTEM)
        elif not await store.is_offered(tx, ticket.project_id, ticket.ticket_id):
            await self._desk.offer(tx, ticket)

    async def _assigned(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if ticket.status == "closed":
            return
        agent = await self._agent(tx, ticket)
        # A snoozed ticket is offered when it wakes.
        if agent is None and ticket.status != "snoozed":
            await self._desk.offer(tx, ticket)
            return
        await self._desk.refresh(tx, ticket)
        for seat in await self._desk.seats(tx, [] if agent is None else [agent]):
            await self._desk.send_card(tx, seat, ticket)

    async def _moved(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if data["from"] not in {"snoozed", "closed"} or data["to"] == "closed":
            await self._desk.refresh(tx, ticket)
        # Its buttons were removed when it was snoozed.
        elif ticket.assignee_id is None:
            await self._desk.offer(tx, ticket)
        else:
            await self._desk.refresh(tx, ticket)
            agent = await self._agent(tx, ticket)
            for seat in await self._desk.seats(tx, [] if agent is None else [agent]):
                await self._desk.send_card(tx, seat, ticket)

    async def _waiting(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        """A customer has waited for long: reminds the agents in charge."""
        agent = await self._agent(tx, ticket)
        if agent is None:
            await self._desk.offer(tx, ticket)
            return
        for seat in await self._desk.seats(tx, [agent]):
            await self._desk.send_card(tx, seat, ticket)

    async def _rated(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        agent = await self._agent(tx, ticket)
        for seat in await self._desk.seats(tx, [] if agent is None else [agent]):
            await self._desk.send_rating(tx, seat, ticket, data["score"], data["comment"] or "")

    async def on_member_changed(self, tx: Tx, before: Member, after: Member | None) -> None:
        """Welcomes an agent in a newly linked chat. Tickets of a member who no longer answers customers are
        unassigned by a job, and offered to the others."""
        if after is not None and after.is_agent:
            new = set(after.subscriber_ids) - set(before.subscriber_ids)
            await self._welcome(tx, after, new)
        if not before.is_agent or (after is not None and after.is_agent):
            return
        key = {"project_id": before.project_id, "member_id": before.member_id}
        job = NewJob(GONE_JOB, key, project_id=before.project_id)
        await self._jobs.enqueue(tx, job)

    async def left_by(self, tx: Tx, project_id: str, member_id: str, limit: int) -> list[str]:
        """Ids of tickets of a member who no longer answers customers; empty otherwise."""
        member = (await self._members.get_many(tx, project_id, [member_id])).get(member_id)
        if member is not None and member.is_agent:
            return []
        return await store.tickets_of(tx, project_id, member_id, limit)

    async def _welcome(self, tx: Tx, member: Member, subscriber_ids: Collection[str]) -> None:
        there = replace(member, subscriber_ids=tuple(subscriber_ids))
        for seat in await self._desk.seats(tx, [there]):
            await self._desk.welcome(tx, seat)

    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        """A file of a customer came after the words that it belongs to."""
        ticket_id = await store.ticket_of_file(tx, file.project_id, file.file_id)
        if ticket_id is None or not file.is_ready:
            return
        ticket = await self._tickets.get(tx, file.project_id, ticket_id)
        agent = await self._agent(tx, ticket)
        if agent is None:
            return
        for seat in await self._desk.seats(tx, [agent]):
            if seat.subscriber.subscriber_id != file.subscriber_id:
                await self._desk.send_file(tx, seat, ticket, file)

    async def _agent(self, tx: Tx, ticket: Ticket) -> Member | None:
        """The assignee, if they still answer customers."""
        if ticket.assignee_id is None:
            return None
        ids = [ticket.assignee_id]
        member = (await self._members.get_many(tx, ticket.project_id, ids)).get(ids[0])
        return member if member is not None and member.is_agent else None
