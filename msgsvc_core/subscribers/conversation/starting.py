"""/start without a link: resubscribes a user, or greets them."""

from collections.abc import Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.conversation import buttons, texts
from msgsvc_core.subscribers.conversation.known import KnownSubscriptions
from msgsvc_core.subscribers.conversation.models import Subscription, Subscriptions
from msgsvc_core.subscribers.service import Subscribers


class Starting:
    """Start resubscribes a former subscriber, and subscribes anybody who opens a project's own bot."""

    def __init__(
        self,
        *,
        clock: Clock,
        projects: Projects,
        known: KnownSubscriptions,
        subscribers: Subscribers,
        commands: texts.Commands,
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._known = known
        self._subscribers = subscribers
        self._commands = commands
        self.presses: dict[str, buttons.Press] = {"back": self._on_choose}

    async def handle_start(self, ctx: InboundContext) -> None:
        known = await self._known.of(ctx)
        project_id = await self._subscribes_to(ctx, known)
        if project_id is not None:
            await self._subscribe(ctx, project_id)
        elif known.active:
            await ctx.reply(self._hello(ctx, known))
        elif known.resumable:
            await ctx.reply(self._project_question(ctx, known))
        else:
            await ctx.reply(texts.stranger(ctx))

    async def _subscribes_to(self, ctx: InboundContext, known: Subscriptions) -> str | None:
        """The project that this Start is for; None if that is ambiguous."""
        own = ctx.bot.identity.project_id
        if own is not None and known.by_project(own) is None:
            return own if await self._is_active(ctx, own) else None
        if known.active:
            # With other active subscriptions, Start may not have meant this project; `_back` offers it.
            return None
        here = known.by_project(ctx.chat.project_id)
        if here is not None and here.can_return:
            return here.project_id
        return known.resumable[0].project_id if len(known.resumable) == 1 else None

    async def _on_choose(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        which, stamp = (*parts, "", "")[:2]
        known = await self._known.of(ctx)
        one = known.by_id(which)
        if (
            one is None
            or not one.project_is_active
            or not buttons.is_fresh(stamp, self._clock.now_ms())
        ):
            old = texts.too_old(ctx, "start")
            await buttons.replace(ctx, old, notice=old.text)
            return
        if not one.is_active:
            await self._subscribe(ctx, one.project_id)
            known = await self._known.of(ctx)
        await buttons.replace(ctx, self._hello(ctx, known))

    async def _subscribe(self, ctx: InboundContext, project_id: str) -> None:
        """Subscribes the user; `Greetings` sends the welcome."""
        await ctx.enter_project(project_id)
        await self._subscribers.ensure(
            ctx.tx,
            project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="deep_link",
        )

    async def _is_active(self, ctx: InboundContext, project_id: str) -> bool:
        return (await self._projects.get(ctx.tx, project_id)).status == "active"

    def _hello(self, ctx: InboundContext, known: Subscriptions) -> OutgoingMessage:
        text = texts.hello(ctx, known.active, self._commands(ctx.lang))
        return OutgoingMessage(text, buttons=self._back(ctx, known))

    def _project_question(self, ctx: InboundContext, known: Subscriptions) -> OutgoingMessage:
        if buttons.are_shown(ctx):
            return OutgoingMessage(texts.welcome_back(ctx), buttons=self._back(ctx, known))
        return texts.stranger(ctx)

    def _back(self, ctx: InboundContext, known: Subscriptions) -> tuple[tuple[Button, ...], ...]:
        """A button for each project that the user has left; only the newest ones if there are many."""
        if not buttons.are_shown(ctx):
            return ()
        return tuple(
            (self._resubscribe_button(ctx, one),) for one in known.resumable[-buttons.ROWS :]
        )

    def _resubscribe_button(self, ctx: InboundContext, one: Subscription) -> Button:
        _ = ctx._
        text = _("Subscribe again: {project}", project=one.project)
        stamp = buttons.stamp(self._clock.now_ms())
        return Button(text, data=buttons.data("back", one.subscriber_id, stamp))
