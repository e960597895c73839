"""The way in: an update from a messenger, taken once, goes to the one who knows what to do with it.

Order: a start payload by its prefix, a button by its prefix, a text to those who want it. What nobody
claims is answered kindly and logged; it never stops the bot.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import structlog

from msgsvc_core.channels import calls
from msgsvc_core.channels.contract import ChannelIdentity
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.outgoing import OutgoingMessage
from msgsvc_core.channels.updates import (
    Blocked,
    ButtonPressed,
    Started,
    TextReceived,
    Unblocked,
    Update,
)
from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.texts import Translate

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Buttons of ours begin with this; the data of an integrator's button must not.
OWN_BUTTON = "~"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with a bot, and the project that it belongs to until it starts another's link."""

    channel: str
    chat_id: str
    project_id: str | None


@dataclass(slots=True)
class InboundContext:
    """One update, in the transaction of its effects. `_` translates to the person's language.

    `channel` is the key of the bot, which chats, seals and `subscribers.ensure` go by; projects know
    it as `channel_name`.
    """

    service: "Service"
    tx: Tx
    channel: str
    channel_name: str
    update: Update
    chat: Chat
    lang: str
    _: Translate

    def serves(self, project_id: str) -> bool:
        """Whether the bot may act for this project; a project's own does so for nobody else.

        Whoever finds a project by a payload asks this first, and leaves the update unclaimed if not.
        """
        own = self.service.channels[self.channel].identity.project_id
        return own in {None, project_id}

    async def reply(self, message: OutgoingMessage) -> None:
        """Has `message` sent to the chat, after the commit."""
        await calls.enqueue_send(self.service, self.tx, self.channel, self.update.chat_id, message)

    async def edit(self, message_ref: str, message: OutgoingMessage) -> None:
        """Has a message of the bot replaced, after the commit."""
        await calls.enqueue_edit(
            self.service, self.tx, self.channel, self.update.chat_id, message_ref, message
        )

    async def answer_button(self, text: str | None = None) -> None:
        """Ends the waiting state of the pressed button, with an optional notice."""
        assert isinstance(self.update, ButtonPressed)
        await calls.enqueue_answer(
            self.service, self.tx, self.channel, self.update.button_ref, text
        )

    async def enter_project(self, project_id: str) -> None:
        """Makes the chat belong to this project from now on. Raises `ForeignBot`: see `serves`."""
        if not self.serves(project_id):
            raise ForeignBot(f"the bot {self.channel} serves another project")
        await self.tx.execute(
            "UPDATE core_chats SET project_id = :project_id"
            " WHERE channel = :channel AND chat_id = :chat_id",
            {
                "project_id": project_id,
                "channel": self.channel,
                "chat_id": self.update.chat_id,
            },
        )
        self.chat = Chat(self.channel, self.update.chat_id, project_id)


#: Returns False to leave the update to the next rule.
InboundHandler = Callable[[InboundContext], Awaitable[bool | None]]


@dataclass(frozen=True, slots=True)
class InboundRule:
    """Declares who handles which updates (hook `register_inbound`).

    `start`: payloads that begin with `prefix`, e.g. `auth_`; whose handler finds a project by one asks
    `ctx.serves` whether the bot may act for it, and returns False if not. `button`: data that begins
    with `~` and `prefix`. `text`: any text; lower `priority` first.
    """

    on: Literal["start", "button", "text"]
    handler: InboundHandler
    prefix: str = ""
    priority: int = 50


class Inbound:
    """`service.inbound`: takes updates from channels."""

    def __init__(self, service: "Service", rules: Iterable[InboundRule]) -> None:
        self._service = service
        self._rules = sorted(rules, key=lambda rule: (rule.priority, -len(rule.prefix)))
        self._refuse_clashes()

    async def receive(self, channel: str, update: Update) -> None:
        """Handles an update once, however often the platform sends it. `channel` is the bot's key.

        Raises `DatabaseUnavailable` when it could not be taken, so that the platform sends it again.
        A handler that fails is logged, and its update is not tried again.
        """
        try:
            try:
                await self._take(channel, update, self._handle)
            except ForeignBot:
                # Nothing of it is left. A payload of another project is none that this bot knows.
                await self._take(channel, update, self._leave_unclaimed)
        except DatabaseUnavailable:
            raise
        except Exception:
            log.exception("update_failed", channel=channel, update_id=update.update_id)

    async def _take(
        self, channel: str, update: Update, handle: Callable[[InboundContext], Awaitable[None]]
    ) -> None:
        bot = await self._service.channels.find(channel)
        if bot is None:
            log.info("update_of_gone_channel", channel=channel)
            return
        async with self._service.db.transaction() as tx:
            if await self._is_new(tx, channel, update):
                await handle(await self._context(tx, bot.identity, update))

    async def _is_new(self, tx: Tx, channel: str, update: Update) -> bool:
        return bool(
            await tx.execute(
                "INSERT INTO core_updates (channel, update_id, received_at_ms)"
                " VALUES (:channel, :update_id, :now_ms) ON CONFLICT DO NOTHING",
                {
                    "channel": channel,
                    "update_id": update.update_id,
                    "now_ms": self._service.clock.now_ms(),
                },
            )
        )

    async def _context(self, tx: Tx, bot: ChannelIdentity, update: Update) -> InboundContext:
        row = await tx.fetch_one(
            "INSERT INTO core_chats (channel, chat_id, user_id, project_id, seen_at_ms)"
            " VALUES (:channel, :chat_id, :user_id, :project_id, :now_ms)"
            " ON CONFLICT (channel, chat_id) DO UPDATE SET seen_at_ms = :now_ms"
            " RETURNING project_id",
            {
                "channel": bot.key,
                "chat_id": update.chat_id,
                "user_id": update.user.user_id,
                "project_id": bot.project_id,
                "now_ms": self._service.clock.now_ms(),
            },
        )
        assert row is not None
        lang = self._service.texts.choose(update.user.lang)
        return InboundContext(
            service=self._service,
            tx=tx,
            channel=bot.key,
            channel_name=bot.name,
            update=update,
            chat=Chat(bot.key, update.chat_id, row["project_id"]),
            lang=lang,
            _=self._service.texts.into(lang),
        )

    async def _leave_unclaimed(self, ctx: InboundContext) -> None:
        match ctx.update:
            case Started(payload=payload):
                await self._unknown_start(ctx, payload)
            case ButtonPressed():
                await self._unknown_button(ctx)
            case _:
                log.info("update_unclaimed", channel=ctx.channel)

    async def _handle(self, ctx: InboundContext) -> None:
        match ctx.update:
            case Started(payload=payload):
                if not await self._offer(ctx, "start", payload):
                    await self._unknown_start(ctx, payload)
            case ButtonPressed(data=data) if data.startswith(OWN_BUTTON):
                handled = await self._offer(ctx, "button", data.removeprefix(OWN_BUTTON))
                if not handled:
                    await self._unknown_button(ctx)
            case ButtonPressed():
                await self._service.messages.button_pressed(ctx)
            case TextReceived():
                if not await self._offer(ctx, "text", ""):
                    log.info("text_unclaimed", channel=ctx.channel)
            case Blocked():
                await self._service.subscribers.block(
                    ctx.tx, ctx.channel, ctx.update.user.user_id, reason="user_blocked_bot"
                )
            case Unblocked():
                log.info("bot_unblocked", channel=ctx.channel)
            case _:
                log.warning("update_unknown", kind=type(ctx.update).__name__, channel=ctx.channel)

    async def _offer(self, ctx: InboundContext, on: str, text: str) -> bool:
        for rule in self._rules:
            applies = rule.on == on and text.startswith(rule.prefix)
            if applies and await rule.handler(ctx) is not False:
                return True
        return False

    async def _unknown_button(self, ctx: InboundContext) -> None:
        log.info("button_unknown", channel=ctx.channel)
        await ctx.answer_button(ctx._("This button no longer works."))

    async def _unknown_start(self, ctx: InboundContext, payload: str) -> None:
        if payload:
            log.info("start_unknown", channel=ctx.channel)
            text = ctx._("This link is not valid any more. Please ask the site for a new one.")
        else:
            text = ctx._("Hello! Open a link from a site that works with this bot to begin.")
        await ctx.reply(OutgoingMessage(text))

    def _refuse_clashes(self) -> None:
        seen: set[tuple[str, str]] = set()
        for rule in self._rules:
            key: tuple[str, str] = (rule.on, rule.prefix)
            if rule.on != "text" and (not rule.prefix or key in seen):
                raise ValueError(
                    f"two rules, or one without a prefix, for {rule.on} {rule.prefix!r}"
                )
            seen.add(key)
