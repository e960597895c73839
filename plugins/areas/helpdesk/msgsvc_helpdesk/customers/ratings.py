"""After a ticket is closed, its customer is asked for a rating: 1-5 by buttons, then a comment.

The event is emitted once, with score and comment: see docs/decisions/0040-tickets.md.
"""

from collections.abc import Sequence

from msgsvc_core.channels import ButtonPressed, InboundContext, InboundRule, MessageReceived
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import NORMAL, Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import MINUTE_MS, Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import blocklist_store, store, thread_store
from msgsvc_helpdesk.correspondence import Correspondence
from msgsvc_helpdesk.customers import rating_store
from msgsvc_helpdesk.customers.rating_store import OpenRating
from msgsvc_helpdesk.events import CLOSED, CSAT_RECEIVED
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.settings import TICKETS_AT_ONCE, HelpdeskSettings

PREFIX = "csat:"
SCORES = (1, 2, 3, 4, 5)

#: A comment that was asked for is a dialogue under way.
PRIORITY = 20

END_JOB = "helpdesk.end_rating"

#: Characters of a comment that are kept.
MOST_OF_COMMENT = 4000


class RatingRequests:
    """Asks customers for a rating when their ticket is closed."""

    def __init__(
        self,
        *,
        texts: Texts,
        channels: Channels,
        outbox: BotOutbox,
        projects: Projects,
        subscribers: Subscribers,
        correspondence: Correspondence,
        settings: HelpdeskSettings,
    ) -> None:
        self._texts = texts
        self._channels = channels
        self._correspondence = correspondence
        self._outbox = outbox
        self._projects = projects
        self._subscribers = subscribers
        self._settings = settings

    async def on_event(self, tx: Tx, event: Event) -> None:
        """Asks the customer of a ticket that was closed, unless they have rated it before."""
        if event.name != CLOSED or not self._settings.ask_rating:
            return
        ticket = await store.find(tx, event.project_id, event.data["ticket_id"])
        if ticket is None or ticket.subscriber_id is None:
            return
        if ticket.merged_into is not None or ticket.csat_score is not None:
            return
        if await blocklist_store.find(tx, ticket.project_id, ticket.subscriber_id) is not None:
            return
        key = (ticket.project_id, ticket.subscriber_id)
        customer = (await self._subscribers.get_many(tx, [key])).get(key)
        if customer is None or not await self._may_ask(tx, customer):
            return
        _ = self._texts.into(customer.lang, __name__)
        thread = await thread_store.find_of(
            tx, ticket.project_id, ticket.ticket_id, customer.bot, customer.chat_id
        )
        target = await self._correspondence.reply_target(tx, ticket, customer.bot, customer.chat_id)
        question = (await self._question(tx, ticket, _)).in_thread(thread).replying_to(target)
        # After the answer with which the ticket was closed.
        await self._outbox.send(tx, customer.bot, customer.chat_id, question, priority=NORMAL)

    async def _may_ask(self, tx: Tx, customer: Subscriber) -> bool:
        if customer.status != "active":
            return False
        bot = await self._channels.find(customer.bot)
        # Where nobody can answer, there is nothing to ask.
        if bot is None or not bot.capabilities.answers:
            return False
        return await self._outbox.may_answer(
            tx, customer.bot, customer.chat_id, "rating", TICKETS_AT_ONCE
        )

    async def _question(self, tx: Tx, ticket: Ticket, _: Translate) -> OutgoingMessage:
        project = await self._projects.get(tx, ticket.project_id)
        text = _(
            "{project} closed your question #{number}. How would you rate the help you got? 1 is "
            "very poor, 5 is excellent. If you still have a question, just write it here.",
            project=project.public_name,
            number=ticket.number,
        )
        row = tuple(_button(str(score), "rate", ticket.ticket_id, score) for score in SCORES)
        return OutgoingMessage(text, buttons=(row,))


class Ratings:
    """Handles customers' ratings, and emits the event."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        texts: Texts,
        outbox: BotOutbox,
        subscribers: Subscribers,
        tickets: Tickets,
        settings: HelpdeskSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._texts = texts
        self._outbox = outbox
        self._subscribers = subscribers
        self._tickets = tickets
        self._settings = settings

    @property
    def spec(self) -> JobSpec:
        """The job that ends the time for a comment."""
        return JobSpec(END_JOB, self.finish_all)

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule("button", self._pressed, prefix=PREFIX),
            InboundRule("message", self._commented, priority=PRIORITY),
        ]

    async def _pressed(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, ButtonPressed)
        data = ctx.update.data.removeprefix(OWN_BUTTON + PREFIX)
        action, *parts = data.split(":")
        ticket = await self._own_ticket(ctx, parts[0]) if parts else None
        if ticket is None:
            return False
        if action == "skip":
            await self._skip(ctx, ticket)
        elif action == "rate" and parts[1:] in [[str(score)] for score in SCORES]:
            await self._rate(ctx, ticket, int(parts[1]))
        else:
            return False
        return True

    async def _rate(self, ctx: InboundContext, ticket: Ticket, score: int) -> None:
        assert isinstance(ctx.update, ButtonPressed)
        _, now_ms = ctx._, self._clock.now_ms()
        project_id, ticket_id = ticket.project_id, ticket.ticket_id
        if not await rating_store.score(ctx.tx, project_id, ticket_id, score, now_ms):
            await ctx.answer_button(await self._why_not(ctx, ticket))
            return
        minutes = self._settings.csat_comment_minutes
        rating = OpenRating(
            project_id=project_id,
            ticket_id=ticket_id,
            subscriber_id=ticket.subscriber_id or "",
            bot=ctx.channel,
            chat_id=ctx.update.chat_id,
            message_ref=ctx.update.message_ref,
            ends_at_ms=now_ms + minutes * MINUTE_MS,
        )
        await rating_store.insert(ctx.tx, rating)
        payload = {"project_id": project_id, "ticket_id": ticket_id}
        await self._jobs.enqueue(
            ctx.tx,
            NewJob(END_JOB, payload, project_id=project_id, run_at_ms=rating.ends_at_ms),
        )
        text = _(
            "You rated {score} of 5, thank you. Would you like to say why? What you write here "
            "within {minutes} minutes is saved as your comment; nobody will answer it.",
            score=score,
            minutes=minutes,
        )
        skip = _button(_("Skip"), "skip", ticket_id)
        await ctx.edit(ctx.update.message_ref, OutgoingMessage(text, buttons=((skip,),)))
        await ctx.answer_button()

    async def _why_not(self, ctx: InboundContext, ticket: Ticket) -> str:
        # Another process may have rated or opened it a moment ago.
        now = await store.find(ctx.tx, ticket.project_id, ticket.ticket_id)
        if now is not None and now.csat_score is not None:
            return ctx._("You have rated this already.")
        return ctx._("This conversation is still open; you can rate it when it is closed.")

    async def _skip(self, ctx: InboundContext, ticket: Ticket) -> None:
        rating = await rating_store.delete(ctx.tx, ticket.project_id, ticket.ticket_id)
        if rating is not None:
            await self._emit(ctx.tx, rating, None)
            await self._thank(ctx.tx, rating, ctx._)
        await ctx.answer_button()

    async def _commented(self, ctx: InboundContext) -> bool:
        """Text alone is a comment; files need an agent, and so are a new message, as is a new subject."""
        update = ctx.update
        assert isinstance(update, MessageReceived)
        text = update.text.replace("\0", "").strip()
        if not text or update.files or update.begins or text.startswith("/"):
            return False
        rating = await self._open_rating(ctx, update)
        # What answers another message of the bot says by that what it is about.
        if rating is None or update.reply_to not in {None, rating.message_ref}:
            return False
        if update.reply_to is None and await self._was_reopened(ctx.tx, rating):
            return False
        if await rating_store.delete(ctx.tx, rating.project_id, rating.ticket_id) is None:
            return False
        await self._emit(ctx.tx, rating, text[:MOST_OF_COMMENT])
        await self._thank(ctx.tx, rating, ctx._)
        await ctx.reply(OutgoingMessage(ctx._("Thank you, your comment is saved.")))
        return True

    async def _open_rating(self, ctx: InboundContext, update: MessageReceived) -> OpenRating | None:
        """The newest in the chat; what is written in a thread is about the ticket of that thread alone."""
        project_id, ticket_id = ctx.chat.project_id, None
        if update.thread is not None:
            thread = await self._tickets.find_thread(
                ctx.tx, ctx.channel, update.chat_id, update.thread
            )
            if thread is None or not ctx.serves(thread.project_id):
                return None
            project_id, ticket_id = thread.project_id, thread.ticket_id
        if project_id is None:
            return None
        return await rating_store.find_in_chat(
            ctx.tx, ctx.channel, update.chat_id, project_id, self._clock.now_ms(), ticket_id
        )

    async def _was_reopened(self, tx: Tx, rating: OpenRating) -> bool:
        """Whether the ticket was reopened: then a message is for its agent."""
        ticket = await store.find(tx, rating.project_id, rating.ticket_id)
        return ticket is not None and ticket.status != "closed"

    async def finish_all(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Each in a transaction with the end of its job."""
        for job in jobs:
            async with ctx.completing(job) as tx:
                await self.finish(tx, job.payload["project_id"], job.payload["ticket_id"])

    async def finish(self, tx: Tx, project_id: str, ticket_id: str) -> None:
        """The time for a comment is over: the score is emitted alone."""
        rating = await rating_store.delete(tx, project_id, ticket_id)
        if rating is None:
            return
        await self._emit(tx, rating, None)
        key = (project_id, rating.subscriber_id)
        customer = (await self._subscribers.get_many(tx, [key])).get(key)
        if customer is not None:
            await self._thank(tx, rating, self._texts.into(customer.lang, __name__))

    async def _emit(self, tx: Tx, rating: OpenRating, comment: str | None) -> None:
        if comment is not None:
            await rating_store.comment(tx, rating.project_id, rating.ticket_id, comment)
        ticket = await store.find(tx, rating.project_id, rating.ticket_id)
        assert ticket is not None, "the rating's foreign key"
        told = {"score": ticket.csat_score, "comment": comment}
        await self._tickets.emit(tx, ticket, CSAT_RECEIVED, told)

    async def _thank(self, tx: Tx, rating: OpenRating, _: Translate) -> None:
        """The question promises no more that words would be a comment."""
        ticket = await store.find(tx, rating.project_id, rating.ticket_id)
        text = _("You rated {score} of 5, thank you.", score=ticket.csat_score if ticket else "")
        await self._outbox.edit(
            tx, rating.bot, rating.chat_id, rating.message_ref, OutgoingMessage(text)
        )

    async def _own_ticket(self, ctx: InboundContext, ticket_id: str) -> Ticket | None:
        """The ticket, if the person who presses is its customer."""
        known = await self._subscribers.list_by_user(ctx.tx, ctx.channel, ctx.update.user.user_id)
        for one in known:
            ticket = await store.find(ctx.tx, one.project_id, ticket_id)
            if ticket is not None:
                return ticket if ticket.subscriber_id == one.subscriber_id else None
        return None


def _button(label: str, action: str, *parts: object) -> Button:
    return Button(one_line(label), data=OWN_BUTTON + PREFIX + ":".join([action, *map(str, parts)]))
