"""Forwards an agent's reply to the customer, or tells the agent why it was refused."""

from collections.abc import Sequence

from msgsvc_core.channels import InboundContext
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.channels.updates import ReceivedFile
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.errors import ApiError, BillingBlocked
from msgsvc_core.kernel.i18n import Texts, Translate, explained
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_core.members.service import Members
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk.agents import store, texts
from msgsvc_helpdesk.agents.buttons import button
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.models import Seat
from msgsvc_helpdesk.models import Actor, AgentReply, Ticket
from msgsvc_helpdesk.service import Tickets


class Answering:
    """Replies to customers on behalf of agents who write to the bot."""

    def __init__(
        self,
        *,
        texts: Texts,
        members: Members,
        outbox: BotOutbox,
        files: Files,
        subscribers: Subscribers,
        tickets: Tickets,
        desk: AgentDesk,
    ) -> None:
        self._texts = texts
        self._members = members
        self._outbox = outbox
        self._files = files
        self._subscribers = subscribers
        self._tickets = tickets
        self._desk = desk

    async def answer(
        self,
        ctx: InboundContext,
        seat: Seat,
        ticket_id: str,
        text: str,
        files: Sequence[ReceivedFile],
    ) -> None:
        """Sends what an agent wrote to the customer, and says that it did, or why not.

        An answer to an unassigned ticket assigns it. Files follow when they are downloaded.
        """
        _, project_id = ctx._, seat.project_id
        if not text.strip() and not files:
            # A sticker or a place, say, which arrives as a message without words.
            reason = _("Only text and files can be sent to a customer.")
            await ctx.reply(OutgoingMessage(_nobody_got_it(_, reason)))
            return
        ticket = await self._tickets.lock(ctx.tx, project_id, ticket_id)
        refused = await self.why_not(ctx.tx, ticket, _, seat)
        if refused is not None:
            rows: tuple[tuple[Button, ...], ...] = ()
            if ticket.status == "closed":
                rows = ((button(_("Reopen"), "reopen", ticket.ticket_id),),)
            said = _nobody_got_it(_, refused)
            await ctx.reply(OutgoingMessage(said, buttons=rows))
            return
        try:
            async with ctx.tx.savepoint():
                await self._claim_if_unassigned(ctx.tx, seat, ticket)
                if text.strip() and not files:
                    await self._reply(
                        ctx.tx, seat, ticket, AgentReply(OutgoingMessage(text.replace("\0", "")))
                    )
        except ApiError as error:
            await ctx.reply(OutgoingMessage(self.refusal(_, error)))
            return
        await self._desk.open_in_chat(ctx.tx, seat, ticket.ticket_id)
        for file in await self._received(ctx, seat, ticket, files, text):
            if file.status == "failed":
                await ctx.reply(OutgoingMessage(_file_failed(_, file)))
        if not files:
            await ctx.reply(OutgoingMessage(_sent(_, ticket), silent=True))

    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        """A file of an agent is here: it goes to the customer of the ticket that they answered."""
        waiting = await store.pop_file(tx, file.project_id, file.file_id)
        if waiting is None:
            return
        member = await self._members.find_by_subscriber(
            tx, file.project_id, waiting["subscriber_id"]
        )
        key = (file.project_id, waiting["subscriber_id"])
        subscriber = (await self._subscribers.get_many(tx, [key])).get(key)
        if subscriber is None:
            return
        _ = self._texts.into(subscriber.lang, __name__)
        if member is None or not member.is_agent:
            said = _("You no longer answer customers here. Your message was not delivered.")
        elif not file.is_ready:
            said = _file_failed(_, file)
        else:
            seat = Seat(member, subscriber)
            ticket = await self._tickets.lock(tx, file.project_id, waiting["ticket_id"])
            said = await self._send_file(tx, seat, ticket, file, waiting["text"], _)
        message = OutgoingMessage(said, silent=True)
        await self._outbox.send(tx, subscriber.bot, subscriber.chat_id, message)

    async def _send_file(
        self, tx: Tx, seat: Seat, ticket: Ticket, file: StoredFile, text: str, _: Translate
    ) -> str:
        """What to say of it."""
        refused = await self.why_not(tx, ticket, _, seat)
        if refused is not None:
            return _nobody_got_it(_, refused)
        # No message is without words: one that is a file alone is called by its name.
        said = AgentReply(
            OutgoingMessage(text.strip() or one_line(file.filename)), file_id=file.file_id
        )
        try:
            async with tx.savepoint():
                await self._reply(tx, seat, ticket, said)
        except ApiError as error:
            return self.refusal(_, error)
        return _sent(_, ticket)

    async def why_not(
        self, tx: Tx, ticket: Ticket, _: Translate, seat: Seat | None = None
    ) -> str | None:
        """Why an agent can't act on a ticket that is held; None if they can."""
        if ticket.status == "closed":
            return _("#{number} is closed.", number=ticket.number)
        if ticket.assignee_id is not None and (
            seat is None or ticket.assignee_id != seat.member.member_id
        ):
            name = await self._desk.name_of(tx, ticket)
            return _("#{number} is already assigned to {agent}.", number=ticket.number, agent=name)
        return None

    def refusal(self, _: Translate, error: ApiError) -> str:
        """For an agent, in their language."""
        if isinstance(error, BillingBlocked):
            reason = _("The project's credits are used up.")
        else:
            reason = _("Rejected: {reason}.", reason=explained(error.findings, _))
        return _nobody_got_it(_, reason)

    async def _claim_if_unassigned(self, tx: Tx, seat: Seat, ticket: Ticket) -> None:
        if ticket.assignee_id is None:
            member_id = seat.member.member_id
            actor = Actor("agent", member_id)
            await self._tickets.claim(tx, seat.project_id, ticket.ticket_id, member_id, actor)

    async def _reply(self, tx: Tx, seat: Seat, ticket: Ticket, reply: AgentReply) -> None:
        actor = Actor("agent", seat.member.member_id)
        await self._tickets.reply(tx, seat.project_id, ticket.ticket_id, reply, actor)

    async def _received(
        self,
        ctx: InboundContext,
        seat: Seat,
        ticket: Ticket,
        files: Sequence[ReceivedFile],
        text: str,
    ) -> list[StoredFile]:
        """Notes the files of an answer; the words go with the first that comes."""
        subscriber_id = seat.subscriber.subscriber_id
        noted = await self._files.receive(ctx, seat.project_id, subscriber_id, files)
        for file in noted:
            if file.status == "pending":
                said, text = text, ""
                await store.insert_file(
                    ctx.tx, seat.project_id, file.file_id, ticket.ticket_id, subscriber_id, said
                )
        return noted


def _nobody_got_it(_: Translate, reason: str) -> str:
    return _("{reason} Your message was not delivered.", reason=reason)


def _sent(_: Translate, ticket: Ticket) -> str:
    who = texts.customer(ticket, _)
    return _("Sent to {customer}, #{number}.", customer=who, number=ticket.number)


def _file_failed(_: Translate, file: StoredFile) -> str:
    name = one_line(file.filename)
    reason = file.reason or _("it did not arrive")
    return _("{file} was not sent to the customer: {reason}.", file=name, reason=reason)
