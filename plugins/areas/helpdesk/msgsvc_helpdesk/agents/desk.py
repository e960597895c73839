"""Shows tickets to agents in their messengers, and updates these messages."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox, OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members import Member, Members
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import store as ticket_store
from msgsvc_helpdesk.agents import store, texts
from msgsvc_helpdesk.agents.models import AGAIN, CLOSED, FRESH, MERGED, MINE, Kind, Note, Seat
from msgsvc_helpdesk.models import Entry, Ticket
from msgsvc_helpdesk.service import Tickets

#: The job that records a message sent to an agent.
SENT_JOB = "helpdesk.agent_told"

#: What an agent is shown of a conversation: the last things said.
MOST_ENTRIES = 10


class AgentDesk:
    """The messages that agents are shown. `AgentNotifications` decides when."""

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        channels: Channels,
        outbox: BotOutbox,
        members: Members,
        subscribers: Subscribers,
        files: Files,
        tickets: Tickets,
    ) -> None:
        self._clock = clock
        self._texts = texts
        self._channels = channels
        self._outbox = outbox
        self._members = members
        self._subscribers = subscribers
        self._files = files
        self._tickets = tickets

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

    async def send_entry(self, tx: Tx, seat: Seat, ticket: Ticket, entry: Entry) -> None:
        """Shows what a customer said, with its files as far as they are here."""
        files = await self._files_of(tx, entry)
        told = texts.word(ticket, entry, files, self._into(seat))
        told += [self._with_file(seat, ticket, file) for file in files if file.is_ready]
        await self._send(tx, seat, ticket, "word", told)

    async def send_file(self, tx: Tx, seat: Seat, ticket: Ticket, file: StoredFile) -> None:
        """Shows a file that came after the words that it belongs to."""
        await self._send(tx, seat, ticket, "word", [self._with_file(seat, ticket, file)])

    async def send_rating(
        self, tx: Tx, seat: Seat, ticket: Ticket, score: int, comment: str
    ) -> None:
        """Shows what the customer thinks of how they were helped."""
        _ = self._into(seat)
        said = _("{ticket}\n\nRated {score} of 5.", ticket=texts.head(ticket, _), score=score)
        await self._send(tx, seat, ticket, "word", texts.rated(said, comment))

    async def welcome(self, tx: Tx, seat: Seat) -> None:
        """Tells an agent what arrives in a chat of theirs from now on."""
        _, chat = self._into(seat), seat.subscriber
        text = _(
            "Customers' questions arrive in this chat. /tickets lists those waiting for an answer."
        )
        await self._outbox.send(tx, chat.bot, chat.chat_id, OutgoingMessage(text))

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
        return f"snoozed:{ticket.snoozed_until_ms or ''}"
    return FRESH
