"""The bot for agents: buttons under tickets, replies, `/tickets`.

Anyone who is not an active agent of the project that a button or message belongs to is refused; people who
never were agents do not notice that these features exist.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgsvc_core.channels import ButtonPressed, InboundContext, InboundRule, MessageReceived
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members.service import Members
from msgsvc_core.messages.service import Messages
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import store as ticket_store
from msgsvc_helpdesk.agents import buttons, store, texts
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.agents.models import Seat
from msgsvc_helpdesk.models import Actor, CustomerMessage, Ticket
from msgsvc_helpdesk.service import Tickets

#: An answer to a ticket's message comes before a dialogue under way, for it says what it is about.
REPLY_PRIORITY = 10

#: Other words of an agent: after every dialogue, before they would become a customer's.
WORDS_PRIORITY = 80

#: Tickets that `/tickets` shows.
MOST_LISTED = 10

#: What a press does to a ticket.
Press = Callable[[InboundContext, Seat, Ticket, Sequence[str]], Awaitable[str | None]]


class AgentBot:
    """Handles what agents do in their chats."""

    def __init__(
        self,
        *,
        clock: Clock,
        projects: Projects,
        members: Members,
        subscribers: Subscribers,
        messages: Messages,
        tickets: Tickets,
        desk: AgentDesk,
        answering: Answering,
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._members = members
        self._subscribers = subscribers
        self._messages = messages
        self._tickets = tickets
        self._desk = desk
        self._answering = answering
        self._presses: dict[str, Press] = {
            "take": self._claim,
            "close": self._close,
            "show": self._show,
            "reopen": self._reopen,
            "snoozes": self._offer_snoozes,
            "snooze": self._snooze,
        }

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("button", self._pressed, prefix=buttons.PREFIX),
            # Customers do not see it in the help; agents learn it from their welcome.
            InboundRule("command", self._listed, name="tickets"),
            InboundRule("message", self._replied, priority=REPLY_PRIORITY),
            InboundRule("message", self._wrote, priority=WORDS_PRIORITY),
        ]

    # ---- buttons --------------------------------------------------------------------------------

    async def _pressed(self, ctx: InboundContext) -> bool:
        action, parts = buttons.read(ctx)
        if action in {"send", "own", "drop"}:
            await ctx.answer_button(await self._decided(ctx, action, parts))
            return True
        press = self._presses.get(action)
        if press is None or not parts:
            return False
        found = await self._ticket_of_press(ctx, parts[0])
        if found is None:
            await ctx.answer_button(ctx._("You no longer answer customers here."))
            return True
        try:
            async with ctx.tx.savepoint():
                notice = await press(ctx, *found, parts[1:])
        except ApiError as error:
            notice = self._answering.refusal(ctx._, error)
        await ctx.answer_button(notice)
        return True

    async def _ticket_of_press(
        self, ctx: InboundContext, ticket_id: str
    ) -> tuple[Seat, Ticket] | None:
        """The agent who presses, and the ticket, whichever project the chat belongs to now."""
        for seat in await self._seats(ctx):
            ticket = await ticket_store.find(ctx.tx, seat.project_id, ticket_id)
            if ticket is not None:
                if ticket.merged_into is not None:
                    ticket = await self._tickets.get(ctx.tx, seat.project_id, ticket_id)
                return seat, ticket
        return None

    async def _claim(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, _parts: Sequence[str]
    ) -> str | None:
        member_id = seat.member.member_id
        held = await self._tickets.lock(ctx.tx, seat.project_id, ticket.ticket_id)
        if held.assignee_id == member_id:
            return ctx._("Assigned to you.")
        if held.assignee_id is not None or held.status == "closed":
            # Tells the agent who was first, and removes the button.
            await self._desk.refresh(ctx.tx, held)
            return await self._answering.why_not(ctx.tx, held, ctx._)
        await self._tickets.claim(
            ctx.tx, seat.project_id, ticket.ticket_id, member_id, Actor("agent", member_id)
        )
        return ctx._("#{number} is assigned to you.", number=held.number)

    async def _close(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, _parts: Sequence[str]
    ) -> str | None:
        held = await self._tickets.lock(ctx.tx, seat.project_id, ticket.ticket_id)
        if held.assignee_id not in {None, seat.member.member_id} and held.status != "closed":
            await self._desk.refresh(ctx.tx, held)
            return await self._answering.why_not(ctx.tx, held, ctx._)
        await self._tickets.close(ctx.tx, seat.project_id, ticket.ticket_id, _actor(seat))
        return ctx._("#{number} is closed.", number=held.number)

    async def _reopen(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, _parts: Sequence[str]
    ) -> str | None:
        held = await self._tickets.lock(ctx.tx, seat.project_id, ticket.ticket_id)
        if held.status in {"closed", "snoozed"}:
            if held.assignee_id is None:
                # First, so that it is offered to nobody else.
                await self._tickets.assign(
                    ctx.tx, seat.project_id, held.ticket_id, seat.member.member_id, _actor(seat)
                )
            await self._tickets.set_status(
                ctx.tx, seat.project_id, held.ticket_id, "open", _actor(seat)
            )
        return ctx._("#{number} is open.", number=held.number)

    async def _show(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, _parts: Sequence[str]
    ) -> str | None:
        await self._desk.send_card(ctx.tx, seat, ticket)
        return None

    async def _offer_snoozes(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, _parts: Sequence[str]
    ) -> str | None:
        _ = ctx._
        assert isinstance(ctx.update, ButtonPressed)
        text = _("{ticket}\n\nFor how long?", ticket=texts.head(ticket, _))
        rows = texts.snooze_buttons(ticket, _)
        await ctx.edit(ctx.update.message_ref, OutgoingMessage(text, buttons=rows))
        return None

    async def _snooze(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket, parts: Sequence[str]
    ) -> str | None:
        hours = next((each for each in texts.SNOOZES if [str(each)] == list(parts)), None)
        if hours is None:
            return ctx._("This button no longer works.")
        held = await self._tickets.lock(ctx.tx, seat.project_id, ticket.ticket_id)
        if held.assignee_id not in {None, seat.member.member_id}:
            await self._desk.refresh(ctx.tx, held)
            return await self._answering.why_not(ctx.tx, held, ctx._)
        until_ms = self._clock.now_ms() + hours * HOUR_MS
        await self._tickets.snooze(
            ctx.tx, seat.project_id, ticket.ticket_id, until_ms, _actor(seat)
        )
        return ctx._("#{number} is snoozed.", number=ticket.number)

    # ---- words ----------------------------------------------------------------------------------

    async def _replied(self, ctx: InboundContext) -> bool:
        """An answer to a message about a ticket."""
        update = ctx.update
        assert isinstance(update, MessageReceived)
        if update.reply_to is None:
            return False
        note = await store.find_by_ref(ctx.tx, ctx.channel, update.chat_id, update.reply_to)
        if note is None:
            return False
        seat = await self._seat(ctx, note.project_id)
        if seat is None:
            text = ctx._("You no longer answer customers here. Your message was not delivered.")
            await ctx.reply(OutgoingMessage(text))
            return True
        await self._answering.answer(ctx, seat, note.ticket_id, update.text, update.files)
        return True

    async def _wrote(self, ctx: InboundContext) -> bool:
        """Text that is no reply. It is not sent to a customer before the agent has chosen which."""
        update = ctx.update
        assert isinstance(update, MessageReceived)
        seat = await self._seat(ctx, ctx.chat.project_id)
        if seat is None or not (update.text.strip() or update.files):
            return False
        if await self._answers_project(ctx, update):
            return False
        ticket = await self._open_ticket(ctx, seat)
        if ticket is not None and not self._desk.tells_replies(ctx.channel):
            await self._answering.answer(ctx, seat, ticket.ticket_id, update.text, update.files)
            return True
        # A file is not kept until they decide, and without it its words would be about nothing.
        await self._ask_target(ctx, seat, ticket, "" if update.files else update.text)
        return True

    async def _answers_project(self, ctx: InboundContext, update: MessageReceived) -> bool:
        """Whether they answer what the project sent them as anybody else, e.g. in a ticket of their own."""
        if update.reply_to is None:
            return False
        user_id = update.user.user_id
        found = await self._messages.find_by_ref(
            ctx.tx, ctx.channel, update.chat_id, user_id, update.reply_to
        )
        return found is not None

    async def _ask_target(
        self, ctx: InboundContext, seat: Seat, ticket: Ticket | None, text: str
    ) -> None:
        _ = ctx._
        said = _(
            "This was not sent to anyone. To answer a customer, reply to a message about their "
            "ticket; /tickets lists the tickets."
        )
        draft_id = new_id("tad")
        rows = []
        if text.strip():
            await self._desk.save_draft(ctx.tx, seat, draft_id, text)
            if ticket is not None:
                label = _("Send to #{number}", number=ticket.number)
                rows.append((buttons.button(label, "send", draft_id),))
            rows.append((buttons.button(_("Ask as a customer"), "own", draft_id),))
            rows.append((buttons.button(_("Discard"), "drop", draft_id),))
        await ctx.reply(OutgoingMessage(said, buttons=tuple(rows)))

    async def _decided(self, ctx: InboundContext, action: str, parts: Sequence[str]) -> str | None:
        """Where a text goes that an agent wrote without answering anything."""
        assert isinstance(ctx.update, ButtonPressed)
        for seat in await self._seats(ctx):
            draft = await store.pop_draft(
                ctx.tx, seat.project_id, seat.subscriber.subscriber_id, "".join(parts[:1])
            )
            if draft is None:
                continue
            text = ctx._("Not delivered to anyone.")
            if action == "send" and draft.ticket_id is not None:
                await self._answering.answer(ctx, seat, draft.ticket_id, draft.text, ())
                text = draft.text
            elif action == "own":
                ticket, _is_new = await self._tickets.receive_customer_message(
                    ctx.tx,
                    seat.project_id,
                    seat.subscriber.subscriber_id,
                    CustomerMessage(draft.text),
                )
                text = ctx._("Added to your own ticket #{number}.", number=ticket.number)
            await ctx.edit(ctx.update.message_ref, OutgoingMessage(text))
            return None
        return ctx._("This button no longer works.")

    async def _listed(self, ctx: InboundContext) -> bool:
        """`/tickets`, or `/tickets 12` for one of them; a customer's is a message as any other."""
        seat = await self._seat(ctx, ctx.chat.project_id)
        if seat is None:
            return False
        _, number = ctx._, ctx.argument.strip().removeprefix("#")
        if number:
            try:
                ticket = await self._tickets.get(ctx.tx, seat.project_id, number)
            except ApiError:
                text = _("There is no ticket {number}.", number=number[:20])
                await ctx.reply(OutgoingMessage(text))
            else:
                await self._desk.send_card(ctx.tx, seat, ticket)
            return True
        found = await store.waiting_for(ctx.tx, seat.project_id, seat.member.member_id, MOST_LISTED)
        rows, lines = [], []
        for ticket_id in found:
            ticket = await self._tickets.get(ctx.tx, seat.project_id, ticket_id)
            mark = "•" if ticket.assignee_id is None else "✓"
            lines.append(f"{mark} {texts.head(ticket, _)}")
            label = f"{mark} #{ticket.number} {texts.customer(ticket, _)}"
            rows.append((buttons.button(label[: texts.MOST_OF_LABEL], "show", ticket_id),))
        if not found:
            text = _("There is no ticket to answer.")
        else:
            hint = _(
                "✓ is assigned to you, • is unassigned. Write /tickets and a number to see one."
            )
            text = "\n".join([*lines, "", hint])
        await ctx.reply(OutgoingMessage(text, buttons=tuple(rows)))
        return True

    # ---- identity ------------------------------------------------------------------------------

    async def _seats(self, ctx: InboundContext) -> list[Seat]:
        """As whom the person may act by this bot."""
        found = await self._members.list_by_person(ctx.tx, ctx.channel, ctx.update.user.user_id)
        keys = [(member.project_id, subscriber_id) for subscriber_id, member in found]
        known = await self._subscribers.get_many(ctx.tx, keys)
        return [
            Seat(member, known[key])
            for key, (_id, member) in zip(keys, found, strict=True)
            if member.is_agent
            and key in known
            and ctx.serves(member.project_id)
            and await self._is_active(ctx, member.project_id)
        ]

    async def _is_active(self, ctx: InboundContext, project_id: str) -> bool:
        return (await self._projects.get(ctx.tx, project_id)).status == "active"

    async def _seat(self, ctx: InboundContext, project_id: str | None) -> Seat | None:
        return next(
            (seat for seat in await self._seats(ctx) if seat.project_id == project_id), None
        )

    async def _open_ticket(self, ctx: InboundContext, seat: Seat) -> Ticket | None:
        """The ticket that an agent has open, as long as it is theirs."""
        ticket_id = await store.opened_in_chat(
            ctx.tx, seat.project_id, seat.subscriber.subscriber_id
        )
        if ticket_id is None:
            return None
        ticket = await ticket_store.find(ctx.tx, seat.project_id, ticket_id)
        if ticket is None or ticket.assignee_id != seat.member.member_id:
            return None
        return ticket if ticket.status != "closed" else None


def _actor(seat: Seat) -> Actor:
    return Actor("agent", seat.member.member_id)
