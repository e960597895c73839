"""Notifies agents of new tickets, customers' messages and assignments.

Driven by the plugin's own events, in their transactions, so that a change by the API and one in a messenger
notify all agents alike.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.channels.outbox import BotOutbox, OnComplete
from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.jobs import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members import Member, Members
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import events as names
from msgsvc_helpdesk import store as ticket_store
from msgsvc_helpdesk.agents import store, texts
from msgsvc_helpdesk.agents.models import AGAIN, CLOSED, FRESH, MERGED, MINE, Kind, Note, Seat
from msgsvc_helpdesk.models import SYSTEM, Entry, Ticket
from msgsvc_helpdesk.service import Tickets

#: The job that records a message sent to an agent.
SENT_JOB = "helpdesk.agent_told"

#: The job that unassigns the tickets of a member who no longer answers customers.
GONE_JOB = "helpdesk.agent_gone"

#: What an agent is shown of a conversation: the last things said.
MOST_ENTRIES = 10


class AgentDesk:
    """Notifies agents in their messengers."""

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        jobs: JobQueue,
        channels: Channels,
        outbox: BotOutbox,
        members: Members,
        subscribers: Subscribers,
        files: Files,
        tickets: Tickets,
    ) -> None:
        self._clock = clock
        self._texts = texts
        self._jobs = jobs
        self._channels = channels
        self._outbox = outbox
        self._members = members
        self._subscribers = subscribers
        self._files = files
        self._tickets = tickets

    # ---- what happened --------------------------------------------------------------------------

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
            await self.offer(tx, ticket)

    async def _replied(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if data["author"] != "customer":
            return
        agent = await self._agent(tx, ticket)
        if agent is not None:
            [entry] = await self._tickets.entries(tx, ticket.project_id, ticket.ticket_id, None, 1)
            for seat in await self.seats(tx, [agent]):
                await self._send_entry(tx, seat, ticket, entry)
        elif ticket.assignee_id is not None:
            # Whoever had it answers no customers any more; all others are offered it by this.
            await self._tickets.assign(tx, ticket.project_id, ticket.ticket_id, None, SYSTEM)
        elif not await store.is_offered(tx, ticket.project_id, ticket.ticket_id):
            await self.offer(tx, ticket)

    async def _assigned(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if ticket.status == "closed":
            return
        agent = await self._agent(tx, ticket)
        # A snoozed ticket is offered when it wakes.
        if agent is None and ticket.status != "snoozed":
            await self.offer(tx, ticket)
            return
        await self.refresh(tx, ticket)
        for seat in await self.seats(tx, [] if agent is None else [agent]):
            await self.send_card(tx, seat, ticket)

    async def _moved(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        if data["from"] not in {"snoozed", "closed"} or data["to"] == "closed":
            await self.refresh(tx, ticket)
        # Its buttons were removed when it was snoozed.
        elif ticket.assignee_id is None:
            await self.offer(tx, ticket)
        else:
            await self.refresh(tx, ticket)
            agent = await self._agent(tx, ticket)
            for seat in await self.seats(tx, [] if agent is None else [agent]):
                await self.send_card(tx, seat, ticket)

    async def _waiting(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        """A customer has waited for long: reminds the agents in charge."""
        agent = await self._agent(tx, ticket)
        if agent is None:
            await self.offer(tx, ticket)
            return
        for seat in await self.seats(tx, [agent]):
            await self.send_card(tx, seat, ticket)

    async def _rated(self, tx: Tx, ticket: Ticket, data: dict[str, Any]) -> None:
        agent = await self._agent(tx, ticket)
        for seat in await self.seats(tx, [] if agent is None else [agent]):
            _ = self._into(seat)
            said = _("{ticket}\n\nRated {score} of 5.", ticket=texts.head(ticket, _), **data)
            told = texts.rated(said, data["comment"] or "")
            await self._send(tx, seat, ticket, "word", told)

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
        for seat in await self.seats(tx, [replace(member, subscriber_ids=tuple(subscriber_ids))]):
            _ = self._into(seat)
            text = _(
                "Customers' questions arrive in this chat. /tickets lists those waiting for an answer."
            )
            await self._outbox.send(
                tx,
                seat.subscriber.bot,
                seat.subscriber.chat_id,
                OutgoingMessage(text),
            )

    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        """A file of a customer came after the words that it belongs to."""
        ticket_id = await store.ticket_of_file(tx, file.project_id, file.file_id)
        if ticket_id is None or not file.is_ready:
            return
        ticket = await self._tickets.get(tx, file.project_id, ticket_id)
        agent = await self._agent(tx, ticket)
        if agent is None:
            return
        for seat in await self.seats(tx, [agent]):
            if seat.subscriber.subscriber_id != file.subscriber_id:
                await self._send(tx, seat, ticket, "word", [self._with_file(seat, ticket, file)])

    # ---- what is shown --------------------------------------------------------------------------

    async def seats(self, tx: Tx, members: Sequence[Member]) -> list[Seat]:
        """Where these members can be written to."""
        keys = [
            (member.project_id, subscriber_id)
            for member in members
            for subscriber_id in member.subscriber_ids
        ]
        known = await self._subscribers.get_many(tx, keys)
        return [
            Seat(member, subscriber)
            for member in members
            for subscriber_id in member.subscriber_ids
            if (subscriber := known.get((member.project_id, subscriber_id))) is not None
            and subscriber.status == "active"
        ]

    async def offer(self, tx: Tx, ticket: Ticket) -> None:
        """Shows a ticket that nobody has to every agent."""
        agents = await self._members.list_agents(tx, ticket.project_id)
        # Nobody is asked to take what they wrote themselves.
        seats = [
            seat
            for seat in await self.seats(tx, agents)
            if seat.subscriber.subscriber_id != ticket.subscriber_id
        ]
        await self.refresh(tx, ticket, {seat.subscriber.subscriber_id for seat in seats})
        for seat in seats:
            _ = self._into(seat)
            words = await self._words(tx, ticket, _)
            await self._send(tx, seat, ticket, "offer", texts.offer(ticket, words, _))

    async def send_card(self, tx: Tx, seat: Seat, ticket: Ticket) -> None:
        """Updates the messages that show a ticket to agents, with the current buttons."""
        _, subscriber_id = self._into(seat), seat.subscriber.subscriber_id
        words = await self._words(tx, ticket, _)
        await self.refresh(tx, ticket, {subscriber_id})
        shown = _state(ticket, seat.member.member_id)
        if shown == FRESH and ticket.assignee_id is None:
            await self._send(tx, seat, ticket, "offer", texts.offer(ticket, words, _))
        elif shown == FRESH:
            told = texts.card(ticket, words, _, replies=self.tells_replies(seat.subscriber.bot))
            await self._send(tx, seat, ticket, "card", told)
            await self.open_in_chat(tx, seat, ticket.ticket_id)
        else:
            told = texts.state(ticket, shown, await self.name_of(tx, ticket), _, words)
            await self._send(tx, seat, ticket, "card", told, shown)
        for entry in await self._entries(tx, ticket):
            for file in await self._files_of(tx, entry):
                if file.is_ready:
                    await self._send(
                        tx, seat, ticket, "word", [self._with_file(seat, ticket, file)]
                    )

    async def open_in_chat(self, tx: Tx, seat: Seat, ticket_id: str) -> None:
        """Makes a ticket the one that an agent has open in their chat."""
        if await self._is_there(tx, seat):
            await store.open_in_chat(tx, seat.project_id, seat.subscriber.subscriber_id, ticket_id)

    async def save_draft(self, tx: Tx, seat: Seat, draft_id: str, text: str) -> None:
        """Keeps what an agent wrote until they say whom it is for."""
        if await self._is_there(tx, seat):
            await store.save_draft(
                tx, seat.project_id, seat.subscriber.subscriber_id, draft_id, text
            )

    async def _is_there(self, tx: Tx, seat: Seat) -> bool:
        """False for an agent who was erased a moment ago: nothing that a customer says may fail by that."""
        key = (seat.project_id, seat.subscriber.subscriber_id)
        return bool(await self._subscribers.lock_existing(tx, [key]))

    async def refresh(self, tx: Tx, ticket: Ticket, dealt: Collection[str] = ()) -> None:
        """Brings what agents were shown of a ticket up to date: no button of it promises what it can't.

        `dealt` are the subscribers who get a newer message about it.
        """
        name = await self.name_of(tx, ticket)
        for note in await store.with_buttons(tx, ticket.project_id, ticket.ticket_id):
            shown = _state(ticket, note.member_id)
            if shown == FRESH and note.kind == "offer" and ticket.assignee_id is not None:
                shown = MINE
            elif shown == FRESH and (note.shown != FRESH or note.subscriber_id in dealt):
                shown = AGAIN
            if await store.show(tx, note, shown) and note.message_ref is not None:
                await self._edit(tx, replace(note, shown=shown), ticket, name)

    async def sent(
        self, tx: Tx, project_id: str, note_id: str, shown: str, message_ref: str | None
    ) -> None:
        """A message to an agent is in their messenger. What became of the ticket meanwhile is shown."""
        if message_ref is None:
            return
        note = await store.record_sent(tx, project_id, note_id, message_ref)
        if note is None or note.kind == "word" or note.shown == shown:
            return
        ticket = await ticket_store.find(tx, project_id, note.ticket_id)
        if ticket is not None:
            await self._edit(tx, note, ticket, await self.name_of(tx, ticket))

    async def name_of(self, tx: Tx, ticket: Ticket) -> str:
        """The assignee's name; empty if unassigned."""
        if ticket.assignee_id is None:
            return ""
        ids = [ticket.assignee_id]
        member = (await self._members.get_many(tx, ticket.project_id, ids)).get(ids[0])
        return ticket.assignee_id if member is None else member.name

    def tells_replies(self, bot: str) -> bool:
        """Whether this bot's messenger reports which message a reply refers to."""
        return bot in self._channels and (self._channels[bot].capabilities.tells_replies)

    # ---- parts ----------------------------------------------------------------------------------

    async def _agent(self, tx: Tx, ticket: Ticket) -> Member | None:
        """The assignee, if they still answer customers."""
        if ticket.assignee_id is None:
            return None
        ids = [ticket.assignee_id]
        member = (await self._members.get_many(tx, ticket.project_id, ids)).get(ids[0])
        return member if member is not None and member.is_agent else None

    async def _send_entry(self, tx: Tx, seat: Seat, ticket: Ticket, entry: Entry) -> None:
        files = await self._files_of(tx, entry)
        told = texts.word(ticket, entry, files, self._into(seat))
        told += [self._with_file(seat, ticket, file) for file in files if file.is_ready]
        await self._send(tx, seat, ticket, "word", told)

    async def _entries(self, tx: Tx, ticket: Ticket) -> list[Entry]:
        """What was said last, the oldest first."""
        found = await self._tickets.entries(
            tx, ticket.project_id, ticket.ticket_id, None, MOST_ENTRIES
        )
        return found[::-1]

    async def _words(self, tx: Tx, ticket: Ticket, _: Translate) -> str:
        entries = await self._entries(tx, ticket)
        files = {entry.entry_id: await self._files_of(tx, entry) for entry in entries}
        return texts.words_of(entries, files, _)

    async def _files_of(self, tx: Tx, entry: Entry) -> list[StoredFile]:
        return await self._files.get_many(tx, entry.project_id, entry.file_ids)

    def _with_file(self, seat: Seat, ticket: Ticket, file: StoredFile) -> OutgoingMessage:
        return OutgoingMessage(texts.head(ticket, self._into(seat)), media=self._files.media(file))

    def _into(self, seat: Seat) -> Translate:
        return self._texts.into(seat.subscriber.lang, __name__)

    async def _edit(self, tx: Tx, note: Note, ticket: Ticket, name: str) -> None:
        assert note.message_ref is not None
        key = (note.project_id, note.subscriber_id)
        agent: Subscriber | None = (await self._subscribers.get_many(tx, [key])).get(key)
        if agent is None:
            return
        _ = self._texts.into(agent.lang, __name__)
        [message] = texts.state(ticket, note.shown, name, _)
        await self._outbox.edit(tx, note.bot, note.chat_id, note.message_ref, message)

    async def _send(
        self,
        tx: Tx,
        seat: Seat,
        ticket: Ticket,
        kind: Kind,
        told: Sequence[OutgoingMessage],
        shown: str = FRESH,
    ) -> None:
        """Has messages sent, by each of which an answer finds the ticket; the last one has the buttons."""
        subscriber = seat.subscriber
        if not await self._is_there(tx, seat):
            return
        for number, message in enumerate(told, 1):
            note = Note(
                project_id=ticket.project_id,
                note_id=new_id("tan"),
                ticket_id=ticket.ticket_id,
                subscriber_id=subscriber.subscriber_id,
                member_id=seat.member.member_id,
                bot=subscriber.bot,
                chat_id=subscriber.chat_id,
                message_ref=None,
                kind=kind if number == len(told) else "word",
                shown=shown,
                created_at_ms=self._clock.now_ms(),
            )
            await store.insert_note(tx, note)
            key = {"project_id": note.project_id, "note_id": note.note_id, "shown": note.shown}
            then = OnComplete(SENT_JOB, key)
            await self._outbox.send(
                tx, subscriber.bot, subscriber.chat_id, message, on_complete=then
            )


def _state(ticket: Ticket, member_id: str) -> str:
    """What a member is shown of a ticket: `FRESH` is what they may act on."""
    if ticket.merged_into is not None:
        return MERGED
    if ticket.status == "closed":
        return CLOSED
    if ticket.assignee_id not in {None, member_id}:
        return f"taken:{ticket.assignee_id}"
    if ticket.status == "snoozed":
        return f"snoozed:{ticket.snoozed_until_ms}"
    return FRESH
