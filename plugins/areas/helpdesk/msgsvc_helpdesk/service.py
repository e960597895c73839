"""Tickets: messages of customers and agents, and their effect on the ticket."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.content.outgoing import Format
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members.service import Members
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import blocklist_store, entry_store, removing, store, thread_store
from msgsvc_helpdesk import events as names
from msgsvc_helpdesk.changes import TicketChanges
from msgsvc_helpdesk.models import (
    CUSTOMER,
    SUBJECT_LENGTH,
    SYSTEM,
    VIRTUAL,
    Actor,
    AgentReply,
    CustomerMessage,
    Entry,
    Opening,
    Ticket,
    TicketQuery,
)
from msgsvc_helpdesk.sending import ReplySender
from msgsvc_helpdesk.settings import HelpdeskSettings
from msgsvc_helpdesk.thread_store import TicketThread

#: What is paid for: an answer to a customer.
OPERATION = "ticket.reply"

#: Milliseconds for which a ticket's thread may be being opened: the core drops the call after an hour.
OPENING_MS = HOUR_MS


class Tickets(TicketChanges):
    """Tickets of all projects. Every method works in the caller's transaction, for an `Actor`."""

    def __init__(
        self,
        *,
        clock: Clock,
        events: Events,
        billing: BillingGate,
        members: Members,
        subscribers: Subscribers,
        files: Files,
        sender: ReplySender,
        settings: HelpdeskSettings,
    ) -> None:
        super().__init__(
            clock=clock, members=members, events=events, subscribers=subscribers, settings=settings
        )
        self._billing = billing
        self._files = files
        self._sender = sender

    # ---- which there are ------------------------------------------------------------------------

    async def page(self, tx: Tx, project_id: str, query: TicketQuery) -> list[Ticket]:
        """Up to one more than `query.limit`, so that the caller sees if more follow. Raises `BadRequest` for
        the cursor of another order."""
        if query.channel not in {None, VIRTUAL}:
            await self._subscribers.check_channel(tx, project_id, query.channel or "")
        due = await self.sla.due_within(tx, project_id, query.due)
        return await store.list_page(tx, project_id, query, query.fetch_limit, due)

    async def entries(
        self, tx: Tx, project_id: str, ticket_id: str, after: str | None, limit: int
    ) -> list[Entry]:
        """What was said in a ticket, newest first."""
        return await entry_store.list_page(tx, project_id, ticket_id, after, limit)

    async def lang_of(self, tx: Tx, project_id: str, ticket_id: str) -> str:
        """The language that a ticket's customer reads; the service's where it is not known."""
        return await self._sender.lang_of(tx, await self.get(tx, project_id, ticket_id))

    def check_text(self, text: str, text_format: Format = "plain") -> None:
        """Raises `ValidationFailed` for a text that is longer than a message may be."""
        self._sender.check_text(text, text_format)

    # ---- the customer ---------------------------------------------------------------------------

    async def open(self, tx: Tx, project_id: str, opening: Opening, actor: Actor) -> Ticket:
        """Opens a ticket with the project's next number.

        Raises `NotFound` and `ValidationFailed` for an assignee who does not answer customers, for missing
        files and too many tags, `SubscriberNotFound` for an unknown customer.
        """
        tags = self._checked_tags(opening.tags)
        channel, name = VIRTUAL, opening.customer_name
        if opening.subscriber_id is not None:
            customer = await self._subscribers.get(tx, project_id, opening.subscriber_id)
            channel, name = customer.channel, customer.first_name
        if opening.assignee_id is not None:
            await self.check_agent(tx, project_id, opening.assignee_id, "assignee_id")
        now_ms, heard = self._clock.now_ms(), opening.message
        number = await store.next_number(tx, project_id)
        ticket = Ticket(
            project_id=project_id,
            ticket_id=new_id("tkt"),
            number=number,
            channel=channel,
            subscriber_id=opening.subscriber_id,
            customer_name=name,
            customer_email=opening.customer_email,
            subject=(opening.subject or _beginning(heard))[:SUBJECT_LENGTH],
            status="open",
            priority=opening.priority,
            assignee_id=opening.assignee_id or await self.assignment.next_agent(tx, project_id),
            source=opening.source,
            source_id=opening.source_id,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            last_message_at_ms=now_ms,
            waiting_since_ms=None if heard is None else now_ms,
            tags=tags,
        )
        await store.insert(tx, ticket)
        due_at_ms = (await self.sla.follow(tx, ticket)).due_at_ms
        if due_at_ms is not None:
            await store.update(tx, project_id, ticket.ticket_id, {"due_at_ms": due_at_ms})
            ticket = replace(ticket, due_at_ms=due_at_ms)
        if heard is not None:
            await self._insert_customer_message(tx, ticket, heard, opening.source_id)
        await self.emit(tx, ticket, names.CREATED)
        if ticket.assignee_id is not None:
            await self.emit(tx, ticket, names.ASSIGNED)
        return ticket

    async def open_requested(self, tx: Tx, request: TicketRequest) -> str:
        """Implements the hook `open_ticket`: one ticket per source, however often it is requested.

        Raises as `open`, and `Conflict` for a subscriber who is on the blocklist.
        """
        project_id = request.project_id
        await tx.lock(f"ticket of {project_id} {request.source} {request.source_id}")
        known = await store.find_by_source(tx, project_id, request.source, request.source_id)
        if known is not None:
            return known.ticket_id
        subscriber_id = request.subscriber_id or ""
        if await blocklist_store.find(tx, project_id, subscriber_id) is not None:
            raise Conflict(
                "{subscriber_id} is on the helpdesk's blocklist",
                subscriber_id=request.subscriber_id,
            )
        opening = Opening(
            source=request.source,
            source_id=request.source_id,
            message=CustomerMessage(request.text, tuple(request.file_ids)),
            subject=request.subject,
            subscriber_id=request.subscriber_id,
            customer_name=request.customer_name,
            customer_email=request.customer_email,
            priority=request.priority,
            tags=tuple(request.tags),
        )
        return (await self.open(tx, project_id, opening, SYSTEM)).ticket_id

    async def receive_customer_message(
        self,
        tx: Tx,
        project_id: str,
        subscriber_id: str,
        message: CustomerMessage,
        about: str | None = None,
    ) -> tuple[Ticket, bool]:
        """Adds a subscriber's message to their ticket, or opens one.

        `about` is a message of the core that they reply to, which identifies the ticket if it belongs to
        one. Returns the ticket, and whether it was opened by this message. Two concurrent messages open one
        ticket. What is written in a thread goes to its ticket; a thread without one becomes that of a new
        ticket, unless a ticket's is being opened. A message that begins a conversation with a subject opens
        a ticket, unless one with this subject takes it.
        """
        await tx.lock(f"tickets of {project_id} {subscriber_id}")
        found = await self._target_ticket(tx, project_id, subscriber_id, message, about)
        if found is not None:
            ticket = await self.lock(tx, project_id, found.ticket_id)
            if self._accepts_messages(ticket):
                return await self._continue(tx, ticket, _with_subject(message, ticket)), False
        opening = Opening(
            source="message",
            message=message,
            subject=message.subject,
            subscriber_id=subscriber_id,
        )
        ticket = await self.open(tx, project_id, opening, CUSTOMER)
        await self._bind_thread(tx, ticket, message)
        return ticket, True

    async def find_thread(self, tx: Tx, bot: str, chat_id: str, thread: str) -> TicketThread | None:
        """Whose thread of a chat it is; one that no ticket has is taken for that which is being opened."""
        since_ms = self._clock.now_ms() - OPENING_MS
        return await thread_store.find(tx, bot, chat_id, thread, since_ms)

    async def add_customer_message(
        self, tx: Tx, project_id: str, ticket_id: str, message: CustomerMessage, actor: Actor
    ) -> Ticket:
        """Adds a message of a customer without messenger, reported by the project; opens a new ticket if
        this one was closed too long ago. Raises `NotFound`, and `Conflict` for a subscriber's ticket."""
        ticket = await self.lock(tx, project_id, ticket_id)
        if not ticket.is_virtual:
            raise Conflict(
                "the customer writes by {channel}; this is for virtual ones", channel=ticket.channel
            )
        if self._accepts_messages(ticket):
            return await self._continue(tx, ticket, message)
        opening = Opening(
            source=ticket.source,
            message=message,
            customer_name=ticket.customer_name,
            customer_email=ticket.customer_email,
        )
        return await self.open(tx, project_id, opening, actor)

    async def edit_customer_message(
        self,
        tx: Tx,
        entry: Entry,
        text: str,
        file_ids: Sequence[str],
        files_digest: str | None,
    ) -> None:
        """The customer changed what they wrote. What it said before is kept; `file_ids` are new ones."""
        now_ms = self._clock.now_ms()
        # Lock order: the ticket before its message, as in merging and removing.
        ticket = await self.lock(tx, entry.project_id, entry.ticket_id)
        await self._files.retain(tx, entry.project_id, file_ids)
        await entry_store.change(tx, entry, text, file_ids, files_digest, now_ms)
        await entry_store.drop_edits(tx, entry, self._settings.edits_kept)
        await self._write(tx, ticket, {})

    async def forget_source(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        """Takes out of a ticket what it was opened with; see `removing`."""
        await removing.forget_source(self._files, tx, project_id, source, source_id)

    # ---- agents ---------------------------------------------------------------------------------

    async def reply(
        self, tx: Tx, project_id: str, ticket_id: str, reply: AgentReply, actor: Actor
    ) -> tuple[Ticket, Entry]:
        """Sends a reply to the customer, or adds a note; returns the ticket afterwards.

        Raises `NotFound`; `Conflict` for a reply in a closed ticket, or to a customer who cannot be
        reached; `BillingBlocked`; and what `POST /v1/send` raises for a message that cannot be sent.
        """
        if actor.member_id is not None:
            await self.check_agent(tx, project_id, actor.member_id, "member_id")
        ticket = await self.lock(tx, project_id, ticket_id)
        if reply.internal:
            self.check_text(reply.content.text, reply.content.format)
            entry = await self._insert_reply(tx, ticket, reply, actor, None)
            return await self._write(tx, ticket, {}), entry
        if ticket.status == "closed":
            raise Conflict("the ticket is closed; set its status to open first")
        self.check_text(reply.content.text, reply.content.format)
        message_id = None
        if not ticket.is_virtual:
            by_person = actor.member_id is not None
            message_id = await self._sender.send(tx, ticket, reply, by_person=by_person)
        entry = await self._insert_reply(tx, ticket, reply, actor, message_id)
        await self._billing.charge(tx, Charge(project_id, OPERATION, entry.entry_id))
        now_ms = entry.created_at_ms
        changes: dict[str, Any] = {"last_message_at_ms": now_ms, "waiting_since_ms": None}
        changes["told_waiting_at_ms"] = None
        if ticket.first_response_at_ms is None:
            changes["first_response_at_ms"] = now_ms
        ticket = await self._write(tx, ticket, changes)
        await self.emit(tx, ticket, names.REPLIED, {"author": "agent", "text": reply.content.text})
        return await self._set_status(tx, ticket, reply.status), entry

    async def merge(
        self, tx: Tx, project_id: str, ticket_id: str, into: str, actor: Actor
    ) -> Ticket:
        """Moves all that was said in a ticket to another, closes it, and has its number lead there.

        Raises `NotFound`; `ValidationFailed` for a ticket and itself; `Conflict` where one of the two
        was merged already, which is what the second of two merges in both directions finds, and
        where the tickets are of two people.
        """
        source = await self._named(tx, project_id, ticket_id)
        target = await self._named(tx, project_id, into)
        if source.ticket_id == target.ticket_id:
            raise ValidationFailed("must be another ticket", field="into")
        held: dict[str, Ticket] = {}
        # Locked in a fixed order, to avoid a deadlock between two merges.
        for wanted in sorted({source.ticket_id, target.ticket_id}):
            ticket = await store.lock(tx, project_id, wanted)
            if ticket is None:
                raise NotFound("there is no ticket {number!r}", number=wanted)
            if ticket.merged_into is not None:
                raise Conflict(
                    "ticket {number} was merged into {other}",
                    number=ticket.number,
                    other=ticket.merged_into,
                )
            held[wanted] = ticket
        source, target = held[source.ticket_id], held[target.ticket_id]
        if not source.is_virtual and source.subscriber_id != target.subscriber_id:
            raise Conflict(
                "the ticket of another customer, who would get the answers", field="into"
            )
        await entry_store.move(tx, project_id, source.ticket_id, target.ticket_id)
        await store.redirect(tx, project_id, source.ticket_id, target.ticket_id)
        waits = {"waiting_since_ms": _earlier(source.waiting_since_ms, target.waiting_since_ms)}
        source_waits = source.waiting_since_ms is not None
        source = await self._write(tx, source, {"merged_into": target.ticket_id})
        await self._set_status(tx, source, "closed", merged_into=target.ticket_id)
        last_ms = max(source.last_message_at_ms, target.last_message_at_ms)
        if target.status == "closed":
            waits = {}
        elif target.status == "pending" and source_waits:
            target = await self._set_status(tx, target, "open")
        return await self._write(tx, target, {"last_message_at_ms": last_ms, **waits})

    async def delete(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """Removes a ticket for good, what was merged into it and all that was said. Raises `NotFound`."""
        ticket = await self.lock(tx, project_id, ticket_id)
        merged = await store.merged_into(tx, project_id, ticket.ticket_id)
        await removing.remove(self._files, tx, project_id, [ticket.ticket_id, *merged])

    # ---- parts ----------------------------------------------------------------------------------

    async def _target_ticket(
        self,
        tx: Tx,
        project_id: str,
        subscriber_id: str,
        message: CustomerMessage,
        about: str | None,
    ) -> Ticket | None:
        thread = await self._thread_of(tx, message)
        if thread is not None and thread.project_id == project_id:
            known = await self.get(tx, project_id, thread.ticket_id)
            # The person may have another subscription by now.
            return known if known.subscriber_id == subscriber_id else None
        if about is not None:
            named = await entry_store.ticket_of_message(tx, project_id, about)
            ticket = None if named is None else await self.get(tx, project_id, named)
            if ticket and ticket.subscriber_id == subscriber_id and self._accepts_messages(ticket):
                return ticket
        if message.thread is not None:
            return None
        if message.subject or message.refers_to:
            return await self._ticket_of_conversation(tx, project_id, subscriber_id, message)
        return await store.latest_of(tx, project_id, subscriber_id)

    async def _ticket_of_conversation(
        self, tx: Tx, project_id: str, subscriber_id: str, message: CustomerMessage
    ) -> Ticket | None:
        """The ticket with one of the messages that this one refers to, or else with its subject; the latest
        for other messages but those that begin a conversation."""
        named = await entry_store.ticket_of_refs(
            tx, project_id, message.bot or "", message.chat_id or "", message.refers_to
        )
        known = None if named is None else await self.get(tx, project_id, named)
        if known and known.subscriber_id == subscriber_id and self._accepts_messages(known):
            return known
        if message.subject:
            known = await store.latest_of(tx, project_id, subscriber_id, subject=message.subject)
            if known is not None and self._accepts_messages(known):
                return known
        if message.begins:
            return None
        return await store.latest_of(tx, project_id, subscriber_id)

    async def _thread_of(self, tx: Tx, message: CustomerMessage) -> TicketThread | None:
        if message.thread is None or message.bot is None or message.chat_id is None:
            return None
        return await self.find_thread(tx, message.bot, message.chat_id, message.thread)

    async def _bind_thread(self, tx: Tx, ticket: Ticket, message: CustomerMessage) -> None:
        """Makes the thread in which a ticket was opened its own. Until now it may be that of one which is
        long closed."""
        if message.thread is None or message.bot is None or message.chat_id is None:
            return
        await thread_store.delete(tx, message.bot, message.chat_id, message.thread)
        thread = TicketThread(
            project_id=ticket.project_id,
            ticket_id=ticket.ticket_id,
            bot=message.bot,
            chat_id=message.chat_id,
            thread=message.thread,
        )
        await thread_store.insert(tx, thread)

    def _accepts_messages(self, ticket: Ticket) -> bool:
        """Whether a customer's message belongs to it: not if it was closed too long ago."""
        if ticket.closed_at_ms is None:
            return True
        return self._clock.now_ms() - ticket.closed_at_ms < self._settings.reopen_days * DAY_MS

    async def _continue(self, tx: Tx, ticket: Ticket, message: CustomerMessage) -> Ticket:
        """Adds what the customer said to a ticket that is held, and opens it."""
        if ticket.assignee_id is None:
            # It is offered as soon as it is open, with these words.
            entry = await self._insert_customer_message(tx, ticket, message)
            ticket = await self._set_status(tx, ticket, "open")
        else:
            ticket = await self._set_status(tx, ticket, "open")
            entry = await self._insert_customer_message(tx, ticket, message)
        changes: dict[str, Any] = {"last_message_at_ms": entry.created_at_ms}
        if ticket.waiting_since_ms is None:
            changes |= {"waiting_since_ms": entry.created_at_ms, "told_waiting_at_ms": None}
        ticket = await self._write(tx, ticket, changes)
        await self.emit(tx, ticket, names.REPLIED, {"author": "customer", "text": message.text})
        return ticket

    async def _insert_customer_message(
        self, tx: Tx, ticket: Ticket, message: CustomerMessage, source_id: str | None = None
    ) -> Entry:
        entry = self._entry(
            ticket,
            author="customer",
            text=message.text,
            bot=message.bot,
            chat_id=message.chat_id,
            message_ref=message.message_ref,
            files_digest=message.files_digest,
            source_id=source_id,
            file_ids=await self._retain_files(tx, ticket.project_id, message.file_ids),
        )
        await entry_store.insert(tx, entry)
        return entry

    async def _insert_reply(
        self, tx: Tx, ticket: Ticket, reply: AgentReply, actor: Actor, message_id: str | None
    ) -> Entry:
        files = () if reply.file_id is None else (reply.file_id,)
        entry = self._entry(
            ticket,
            author="agent",
            member_id=actor.member_id,
            internal=reply.internal,
            text=reply.content.text,
            format=reply.content.format,
            media=reply.content.media,
            message_id=message_id,
            file_ids=await self._retain_files(tx, ticket.project_id, files),
        )
        await entry_store.insert(tx, entry)
        return entry

    def _entry(self, ticket: Ticket, **fields: Any) -> Entry:
        nothing = dict.fromkeys(
            ("member_id", "media", "message_id", "bot", "chat_id", "message_ref")
        )
        return Entry(
            project_id=ticket.project_id,
            entry_id=new_id("tmg"),
            ticket_id=ticket.ticket_id,
            created_at_ms=self._clock.now_ms(),
            **{"internal": False, "format": "plain", **nothing, **fields},
        )

    async def _retain_files(
        self, tx: Tx, project_id: str, file_ids: Sequence[str]
    ) -> tuple[str, ...]:
        """The files, which stay from now on. Raises `NotFound` for one that is not there."""
        found = await self._files.get_many(tx, project_id, file_ids)
        known = {file.file_id for file in found}
        for file_id in file_ids:
            if file_id not in known:
                raise NotFound("there is no file {file_id!r}", file_id=file_id)
        await self._files.retain(tx, project_id, file_ids)
        return tuple(dict.fromkeys(file_ids))


def _beginning(message: CustomerMessage | None) -> str:
    """The first line of a text, as a subject."""
    lines = message.text.split("\n") if message is not None else []
    return next((line.strip() for line in lines if line.strip()), "")


def _with_subject(message: CustomerMessage, ticket: Ticket) -> CustomerMessage:
    """The message with its subject before its text, if it is another than that of its ticket."""
    if not message.subject or message.subject == ticket.subject:
        return message
    return replace(message, text=f"{message.subject}\n\n{message.text}".strip())


def _earlier(one: int | None, other: int | None) -> int | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known, default=None)
