"""/stop: unsubscribes a user."""

from collections.abc import Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.subscribers.conversation import buttons, texts
from msgsvc_core.subscribers.conversation.known import KnownSubscriptions
from msgsvc_core.subscribers.conversation.models import Subscription, Subscriptions
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.service import Subscribers

#: The `reason` of `subscription.deleted`.
REASON = "stop"

#: What a user may send after /stop instead of a number, on messengers without buttons.
ALL = "all"


class Leaving:
    """Unsubscribes from the only project immediately; with several, asks which."""

    def __init__(
        self,
        *,
        clock: Clock,
        known: KnownSubscriptions,
        subscribers: Subscribers,
        greetings: Greetings,
    ) -> None:
        self._clock = clock
        self._known = known
        self._subscribers = subscribers
        self._greetings = greetings
        self.presses: dict[str, buttons.Press] = {
            "stop": self._on_choose,
            "stops": self._on_turn_page,
            "keep": self._on_keep,
        }

    async def handle_command(self, ctx: InboundContext) -> None:
        known = await self._known.of(ctx)
        one = known.by_number(ctx.argument)
        if one is not None:
            await ctx.reply(await self._unsubscribe(ctx, [one]))
        elif not known.active:
            await ctx.reply(texts.not_subscribed(ctx))
        elif len(known.active) == 1 or ctx.argument.lower() == ALL:
            await ctx.reply(await self._unsubscribe(ctx, known.active))
        else:
            await ctx.reply(self._question(ctx, known, 0))

    async def _on_choose(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        which, stamp = (*parts, "", "")[:2]
        known = await self._known.of(ctx)
        one = known.by_id(which)
        # "All" means the projects in the question, and none that were added since.
        chosen = known.active if which == _all_of(known) else [one] if one else []
        if not chosen or not buttons.is_fresh(stamp, self._clock.now_ms()):
            old = texts.too_old(ctx, "stop")
            await buttons.replace(ctx, old, notice=old.text)
            return
        await buttons.replace(ctx, await self._unsubscribe(ctx, chosen))

    async def _on_turn_page(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        known = await self._known.of(ctx)
        page = buttons.page_of((*parts, "")[0], len(known.active))
        await buttons.replace(ctx, self._question(ctx, known, page))

    async def _on_keep(self, ctx: InboundContext, _parts: Sequence[str]) -> None:
        known = await self._known.of(ctx)
        _ = ctx._
        names = texts.named(ctx, known.active)
        text = _("Nothing has changed. You get notifications from {projects}.", projects=names)
        await buttons.replace(ctx, OutgoingMessage(text) if names else texts.not_subscribed(ctx))

    async def _unsubscribe(
        self, ctx: InboundContext, chosen: Sequence[Subscription]
    ) -> OutgoingMessage:
        """Ends these subscriptions; returns the response."""
        gone = [
            one
            for one in chosen
            if await self._subscribers.unsubscribe(
                ctx.tx, one.project_id, one.subscriber_id, reason=REASON
            )
        ]
        if not gone:
            return texts.not_subscribed_to(ctx, chosen)
        if len(gone) == 1:
            said = await self._greetings.farewell(ctx, gone[0].project_id)
            if said is not None:
                return OutgoingMessage(said)
        return texts.unsubscribed(ctx, gone)

    def _question(self, ctx: InboundContext, known: Subscriptions, page: int) -> OutgoingMessage:
        _, active = ctx._, known.active
        text = _("Whose notifications do you want to stop?")
        if not buttons.are_shown(ctx):
            how = _("Write /stop and the number, or /stop all.")
            return OutgoingMessage(f"{text}\n\n{texts.numbered(active)}\n\n{how}")
        stamp = buttons.stamp(self._clock.now_ms())
        each = [
            (Button(one.project, data=buttons.data("stop", one.subscriber_id, stamp)),)
            for one in active
        ]
        everything = Button(_("All of them"), data=buttons.data("stop", _all_of(known), stamp))
        keep = Button(_("Cancel"), data=buttons.data("keep"))
        return OutgoingMessage(
            text,
            buttons=(
                *buttons.on_page(each, page),
                *buttons.turning(page, len(each), lambda to: buttons.data("stops", to)),
                (everything, keep),
            ),
        )


def _all_of(known: Subscriptions) -> str:
    return f"{ALL}-{buttons.digest(*(one.subscriber_id for one in known.active))}"
