"""Changes to a ticket other than messages: status, priority, tags, assignee, snooze.

Every effective change locks the ticket's row, and emits its event in the same transaction.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock, to_rfc3339
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.members.service import Members
from msgsvc_core.plugins.tickets import Priority
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import events as names
from msgsvc_helpdesk import store
from msgsvc_helpdesk.models import (
    SYSTEM,
    TAG_LENGTH,
    TAG_PATTERN,
    Actor,
    Status,
    Ticket,
    TicketUpdate,
)
from msgsvc_helpdesk.service_levels.clocks import Followed, SlaClocks
from msgsvc_helpdesk.settings import HelpdeskSettings
from msgsvc_helpdesk.team.assignment import Assignment

#: What a ticket's service level clocks follow.
FOLLOWED = frozenset(
    {"status", "priority", "waiting_since_ms", "first_response_at_ms", "merged_into"}
)

#: Digits of a ticket's number that are looked for; no project has more tickets.
NUMBER_DIGITS = 15


class TicketChanges:
    """Finds tickets, by id or number, and changes them. Use `Tickets` from other modules."""

    def __init__(
        self,
        *,
        clock: Clock,
        members: Members,
        events: Events,
        subscribers: Subscribers,
        settings: HelpdeskSettings,
    ) -> None:
        self._clock = clock
        self._members = members
        self._events = events
        self._subscribers = subscribers
        self._settings = settings
        #: Who gets tickets that nobody has.
        self.assignment = Assignment(members=members, default=settings.assignment)
        #: How far tickets are from their targets.
        self.sla = SlaClocks(clock=clock)

    async def get(self, tx: Tx, project_id: str, ticket_id: str) -> Ticket:
        """A ticket by its id or its number; one that was merged leads to that which goes on.

        Raises `NotFound`, for another project's id as well.
        """
        ticket = await self._named(tx, project_id, ticket_id)
        if ticket.merged_into is not None:
            ticket = await self._named(tx, project_id, ticket.merged_into)
        return ticket

    async def lock(self, tx: Tx, project_id: str, ticket_id: str) -> Ticket:
        """Like `get`; nobody else changes the ticket until the transaction ends."""
        wanted = await self.get(tx, project_id, ticket_id)
        while True:
            held = await store.lock(tx, project_id, wanted.ticket_id)
            if held is None:
                raise _missing(ticket_id)
            if held.merged_into is None:
                return held
            # Merged while this waited.
            wanted = await self._named(tx, project_id, held.merged_into)

    async def update(
        self, tx: Tx, project_id: str, ticket_id: str, update: TicketUpdate, actor: Actor
    ) -> Ticket:
        """Makes several changes at once; the status last, so that its events show the others.

        Raises what `set_priority`, `set_tags`, `assign`, `set_status` and `snooze` do.
        """
        ticket = await self.lock(tx, project_id, ticket_id)
        key = (tx, project_id, ticket.ticket_id)
        if update.priority is not None:
            ticket = await self.set_priority(*key, update.priority, actor)
        if update.tags is not None:
            ticket = await self.set_tags(*key, update.tags, actor)
        if "assignee_id" in update.fields:
            ticket = await self.assign(
                *key, update.assignee_id, actor, only_if_unassigned=update.only_if_unassigned
            )
        snoozes = update.status == "snoozed" and ticket.status != "snoozed"
        moves_snooze = "snoozed_until" in update.fields and update.status in {None, "snoozed"}
        if snoozes or (moves_snooze and (update.snoozed_until_ms or ticket.status == "snoozed")):
            return await self.snooze(*key, update.snoozed_until_ms, actor)
        if update.status in {None, "snoozed"}:
            return ticket
        # A request that unassigns a ticket does not have it assigned to the next in turn.
        assigns = "assignee_id" not in update.fields
        return await self._set_status(tx, ticket, update.status, assigns=assigns)

    async def set_status(
        self, tx: Tx, project_id: str, ticket_id: str, status: Status, actor: Actor
    ) -> Ticket:
        """Raises `NotFound`. `snoozed` takes a time: see `snooze`."""
        assert status != "snoozed", "a snooze has an end"
        return await self._set_status(tx, await self.lock(tx, project_id, ticket_id), status)

    async def close(self, tx: Tx, project_id: str, ticket_id: str, actor: Actor) -> Ticket:
        """Ends a ticket; the customer's next message may open it again. Raises `NotFound`."""
        return await self.set_status(tx, project_id, ticket_id, "closed", actor)

    async def snooze(
        self, tx: Tx, project_id: str, ticket_id: str, until_ms: int | None, actor: Actor
    ) -> Ticket:
        """Snoozes a ticket until then or the customer's next message; without a time, until that message.

        Raises `NotFound`, `ValidationFailed` for a time that is over or too far, and `Conflict` for
        what is closed.
        """
        if until_ms is not None:
            self._check_snooze(until_ms)
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.status == "closed":
            raise Conflict("the ticket is closed; set its status to open first")
        if ticket.status == "snoozed":
            if ticket.snoozed_until_ms == until_ms:
                return ticket
            return await self._write(tx, ticket, {"snoozed_until_ms": until_ms})
        return await self._set_status(tx, ticket, "snoozed", snoozed_until_ms=until_ms)

    async def wake(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """Reopens a ticket whose snooze is over, unless that has been done."""
        ticket = await store.lock(tx, project_id, ticket_id)
        now_ms = self._clock.now_ms()
        if ticket and ticket.snoozed_until_ms is not None and ticket.snoozed_until_ms <= now_ms:
            await self._set_status(tx, ticket, "open")

    async def notify_waiting(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """Emits that a customer has waited too long, once until they are answered."""
        ticket = await store.lock(tx, project_id, ticket_id)
        now_ms = self._clock.now_ms()
        since_ms = now_ms - self._settings.unanswered_hours * HOUR_MS
        if ticket is None or ticket.status != "open" or ticket.told_waiting_at_ms is not None:
            return
        if ticket.waiting_since_ms is not None and ticket.waiting_since_ms <= since_ms:
            # Not `updated_at_ms`: nobody did anything.
            told = {"told_waiting_at_ms": now_ms}
            await store.update(tx, project_id, ticket.ticket_id, told)
            await self.emit(tx, ticket, names.UNANSWERED)

    async def check_targets(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """Emits which targets are due soon or missed, once for each run of one."""
        ticket = await store.lock(tx, project_id, ticket_id)
        if ticket is not None:
            await self._tell_targets(tx, ticket, await self.sla.check(tx, ticket))

    async def refresh_targets(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """Has a ticket follow changed settings of service levels and business hours."""
        ticket = await store.lock(tx, project_id, ticket_id)
        if ticket is None or ticket.status == "closed":
            return
        followed = await self.sla.follow(tx, ticket)
        # Not `updated_at_ms`: nobody did anything.
        due = {"due_at_ms": followed.due_at_ms}
        await store.update(tx, project_id, ticket.ticket_id, due)
        await self._tell_targets(tx, ticket, followed)

    async def set_priority(
        self, tx: Tx, project_id: str, ticket_id: str, priority: Priority, actor: Actor
    ) -> Ticket:
        """Raises `NotFound`."""
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.priority == priority:
            return ticket
        return await self._write(tx, ticket, {"priority": priority})

    async def set_tags(
        self, tx: Tx, project_id: str, ticket_id: str, tags: Sequence[str], actor: Actor
    ) -> Ticket:
        """Puts these tags in place of all others. Raises `NotFound`, `ValidationFailed`."""
        wanted = self._checked_tags(tags)
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.tags == wanted:
            return ticket
        await store.set_tags(tx, project_id, ticket.ticket_id, wanted)
        return replace(await self._write(tx, ticket, {}), tags=wanted)

    async def add_tag(
        self, tx: Tx, project_id: str, ticket_id: str, tag: str, actor: Actor
    ) -> Ticket:
        """Adds a tag to the others. Raises as `set_tags`, also for a text that can't be a tag."""
        if len(tag) > TAG_LENGTH or not re.fullmatch(TAG_PATTERN, tag):
            raise ValidationFailed("must be a tag", field="key")
        ticket = await self.lock(tx, project_id, ticket_id)
        return await self.set_tags(tx, project_id, ticket.ticket_id, [*ticket.tags, tag], actor)

    async def remove_tag(
        self, tx: Tx, project_id: str, ticket_id: str, tag: str, actor: Actor
    ) -> Ticket:
        """Takes a tag off, if the ticket has it. Raises `NotFound`."""
        ticket = await self.lock(tx, project_id, ticket_id)
        left = [one for one in ticket.tags if one != tag]
        return await self.set_tags(tx, project_id, ticket.ticket_id, left, actor)

    async def assign(
        self,
        tx: Tx,
        project_id: str,
        ticket_id: str,
        member_id: str | None,
        actor: Actor,
        *,
        only_if_unassigned: bool = False,
    ) -> Ticket:
        """Assigns a ticket to a member, or unassigns it with None.

        Raises `NotFound`, `ValidationFailed` for a member who does not answer customers, and with
        `only_if_unassigned` `Conflict` if another member has it.
        """
        if member_id is not None:
            await self.check_agent(tx, project_id, member_id, "assignee_id")
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.assignee_id == member_id:
            return ticket
        if only_if_unassigned and ticket.assignee_id is not None:
            raise Conflict(
                "ticket {number} is assigned to {name}",
                number=ticket.number,
                name=ticket.assignee_id,
            )
        assigned = await self._write(tx, ticket, {"assignee_id": member_id})
        await self.emit(tx, assigned, names.ASSIGNED)
        return assigned

    async def unassign(self, tx: Tx, project_id: str, ticket_id: str, member_id: str) -> None:
        """Gives a ticket to nobody, if this member still has it."""
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.assignee_id == member_id:
            await self.assign(tx, project_id, ticket.ticket_id, None, SYSTEM)

    async def claim(
        self, tx: Tx, project_id: str, ticket_id: str, member_id: str, actor: Actor
    ) -> Ticket:
        """Assigns an unassigned ticket to a member; of concurrent claims the first one wins.

        Raises as `assign`; `Conflict` names the assignee, or says that the ticket is closed.
        """
        ticket = await self.lock(tx, project_id, ticket_id)
        if ticket.status == "closed":
            raise Conflict("ticket {number} is closed", number=ticket.number)
        return await self.assign(
            tx, project_id, ticket.ticket_id, member_id, actor, only_if_unassigned=True
        )

    async def check_agent(self, tx: Tx, project_id: str, member_id: str, field: str) -> None:
        """Raises `NotFound` for an unknown member, `ValidationFailed` for one who does not answer
        customers."""
        member = await self._members.get(tx, project_id, member_id)
        if not member.is_agent:
            raise ValidationFailed(
                "{member_id} does not answer customers", field=field, member_id=member_id
            )

    async def emit(
        self, tx: Tx, ticket: Ticket, name: str, fields: Mapping[str, Any] | None = None
    ) -> None:
        """Emits an event with the ticket's current state, and its customer's fields if they have a
        messenger."""
        key = (ticket.project_id, ticket.subscriber_id or "")
        subscriber = (await self._subscribers.get_many(tx, [key])).get(key)
        told = {
            "ticket_id": ticket.ticket_id,
            "number": ticket.number,
            "status": ticket.status,
            "priority": ticket.priority,
            "assignee_id": ticket.assignee_id,
            **(fields or {}),
        }
        await self._events.emit(tx, ticket.project_id, name, told, subscriber=subscriber)

    async def _named(self, tx: Tx, project_id: str, name: str) -> Ticket:
        ticket = None
        if name.startswith("tkt_"):
            ticket = await store.find(tx, project_id, name)
        elif name.isascii() and name.isdecimal() and len(name) <= NUMBER_DIGITS:
            ticket = await store.find(tx, project_id, number=int(name))
        if ticket is None:
            raise _missing(name)
        return ticket

    async def _set_status(
        self,
        tx: Tx,
        ticket: Ticket,
        to: Status,
        *,
        snoozed_until_ms: int | None = None,
        merged_into: str | None = None,
        assigns: bool = True,
    ) -> Ticket:
        """Sets the status of a locked ticket and emits the event; nothing if it is unchanged. One that opens
        goes to the next agent, unless it has one or `assigns` is false."""
        before = ticket.status
        if before == to:
            return ticket
        changes: dict[str, Any] = {"status": to, "snoozed_until_ms": snoozed_until_ms}
        if to == "closed":
            changes["closed_at_ms"] = self._clock.now_ms()
            changes |= {"waiting_since_ms": None, "told_waiting_at_ms": None}
        elif before == "closed":
            changes["closed_at_ms"] = None
        agent = None
        if to == "open" and ticket.assignee_id is None and assigns:
            agent = await self.assignment.next_agent(tx, ticket.project_id)
        if agent is not None:
            changes["assignee_id"] = agent
        moved = await self._write(tx, ticket, changes)
        await self.emit(tx, moved, names.STATUS_CHANGED, {"from": before, "to": to})
        if agent is not None:
            await self.emit(tx, moved, names.ASSIGNED)
        if to == "closed":
            await self.emit(tx, moved, names.CLOSED, {"merged_into": merged_into})
        return moved

    async def _write(self, tx: Tx, ticket: Ticket, changes: Mapping[str, Any]) -> Ticket:
        """Writes columns of a ticket that is held; returns what it is then."""
        written = {**changes, "updated_at_ms": self._clock.now_ms()}
        followed = None
        if not FOLLOWED.isdisjoint(changes):
            followed = await self.sla.follow(tx, replace(ticket, **written))
            written["due_at_ms"] = followed.due_at_ms
        await store.update(tx, ticket.project_id, ticket.ticket_id, written)
        after = replace(ticket, **written)
        if followed is not None:
            await self._tell_targets(tx, after, followed)
        return after

    async def _tell_targets(self, tx: Tx, ticket: Ticket, followed: Followed) -> None:
        for told in followed.told:
            name = names.BREACHED if told.notice == "breached" else names.DUE_SOON
            fields = {"target": told.target, "due_at": to_rfc3339(told.due_at_ms)}
            await self.emit(tx, ticket, name, fields)

    def _check_snooze(self, until_ms: int) -> None:
        now_ms, days = self._clock.now_ms(), self._settings.snooze_days
        if until_ms <= now_ms:
            raise ValidationFailed("must be in the future", field="snoozed_until")
        if until_ms > now_ms + days * DAY_MS:
            raise ValidationFailed(
                "must be at most {days} days away", field="snoozed_until", days=days
            )

    def _checked_tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        limit = self._settings.tags_per_ticket
        wanted = tuple(sorted(set(tags)))
        if len(wanted) > limit:
            raise ValidationFailed("at most {limit}", field="tags", limit=limit)
        return wanted


def _missing(name: str) -> NotFound:
    return NotFound("there is no ticket {name!r}", name=name)
