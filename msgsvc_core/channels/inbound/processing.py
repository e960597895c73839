"""Inbound updates: each is processed once, in one transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import structlog

from msgsvc_core.channels import chats
from msgsvc_core.channels.buttons import offers
from msgsvc_core.channels.commands import BotCommand, CommandCatalogue
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.inbound import received_updates
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.shelf.service import Shelf, storable_id
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.channels.updates import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChatMoved,
    DeliveryReported,
    MessageReceived,
    Unblocked,
    Unreadable,
    Update,
)
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.kernel.tracing import Tracing, first_span
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

#: Prefix of system buttons; data of a project's own buttons must not start with it.
OWN_BUTTON = "~"

#: Prefix of the recorded ids of items that could not be read: should one be read later, that is the first
#: time.
UNREADABLE = "unreadable:"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with a bot, and the project that it belongs to until it starts another's link."""

    channel: str
    chat_id: str
    project_id: str | None


@dataclass(slots=True)
class InboundContext:
    """One update, in the transaction of its effects. `_` translates to the user's language.

    `channel` is the key of the bot, used for chats, encryption and `subscribers.ensure`; `channel_name` is
    its name in the API. `lang` is the language that the user chose in this chat, or else their messenger's.
    `argument` is the text after the name of a command.
    """

    tx: Tx
    bot: Channel
    outbox: BotOutbox
    channel: str
    channel_name: str
    update: Update
    chat: Chat
    lang: str
    _: Translate
    argument: str = ""
    #: Whether a reply was sent already: see `answer_button`.
    replied: bool = False
    #: If the button was pressed on a page, its place for replies and edits: the page shows them, and nothing
    #: is sent.
    shown: list[OutgoingMessage] | None = None

    def serves(self, project_id: str) -> bool:
        """Whether the bot may act for this project; a project's own bot only acts for that project.

        Handlers that find a project by a payload check this first, and do not handle the update if it is
        False.
        """
        return self.bot.identity.project_id in {None, project_id}

    @property
    def answers_in_words(self) -> bool:
        """Whether the platform has no buttons, and users reply with a number or a word."""
        return self.bot.capabilities.buttons == "words"

    async def reply(self, message: OutgoingMessage, *, asks: bool = False) -> None:
        """Sends `message` to the chat, and there to the thread of the update, after the commit. It
        answers the message of the update, where messages have subjects.

        `asks` means that a text is expected as the answer: on a platform without buttons, earlier numbered
        replies in the chat are then invalid.
        """
        if asks and self.answers_in_words:
            await offers.delete(self.tx, self.channel, self.update.chat_id)
        self.replied = True
        if self.shown is not None:
            self.shown.append(message)
            return
        if message.thread is None and self.update.thread is not None:
            message = message.in_thread(self.update.thread)
        if message.in_reply_to is None and isinstance(self.update, MessageReceived):
            message = message.replying_to(self.update.as_reply_target)
        await self.outbox.send(self.tx, self.channel, self.update.chat_id, message, lang=self.lang)

    async def reply_by_itself(
        self, kind: str, message: OutgoingMessage, *, asks: bool = False, share: int = 1
    ) -> bool:
        """A reply that the user did not ask for, such as a notice that their message has arrived; withheld,
        and False, where `may_answer` says so."""
        allowed = await self.may_answer(kind, share)
        if allowed:
            await self.reply(message, asks=asks)
        return allowed

    async def may_answer(self, kind: str, share: int = 1) -> bool:
        """Whether the chat may get one more answer of a kind that nobody asked for; it is counted. See
        `AutomaticAnswers.take`. On a page, where a person has just pressed something, always."""
        if self.shown is not None:
            return True
        return await self.outbox.may_answer(self.tx, self.channel, self.update.chat_id, kind, share)

    async def edit(
        self, message_ref: str, message: OutgoingMessage, otherwise: OutgoingMessage | None = None
    ) -> None:
        """Edits a message of the bot, after the commit; with `otherwise` if the platform can't show
        `message`, e.g. a button's URL."""
        chat_id = self.update.chat_id
        if self.shown is not None:
            self.replied = True
            self.shown.append(message)
            return
        if self.answers_in_words:
            # The open question is closed, or repeated by `message`.
            await offers.delete(self.tx, self.channel, chat_id)
        self.replied = True
        await self.outbox.edit(
            self.tx,
            self.channel,
            chat_id,
            message_ref,
            message,
            otherwise,
            lang=self.lang,
        )

    async def answer_button(self, text: str | None = None) -> None:
        """Ends the waiting state of the pressed button, with an optional notice.

        If the user replied in words, or pressed on a page, or the platform has no notices, the notice is a
        message, unless a reply was sent already.
        """
        assert isinstance(self.update, ButtonPressed)
        has_notices = self.bot.capabilities.notices and self.shown is None
        if self.answers_in_words or not has_notices:
            if text is not None and not self.replied:
                await self.reply(OutgoingMessage(text))
            return
        await self.outbox.answer(self.tx, self.channel, self.update.button_ref, text)

    async def enter_project(self, project_id: str) -> None:
        """Assigns the chat to this project. Raises `ForeignBot`: see `serves`."""
        if not self.serves(project_id):
            raise ForeignBot(f"the bot {self.channel} serves another project")
        await chats.set_project(self.tx, self.channel, self.update.chat_id, project_id)
        self.chat = Chat(self.channel, self.update.chat_id, project_id)


#: Returns False to leave the update to the next rule.
InboundHandler = Callable[[InboundContext], Awaitable[bool | None]]


@dataclass(frozen=True, slots=True)
class InboundRule:
    """Declares which updates a plugin handles (hook `register_inbound`).

    `start`: payloads with `prefix`, e.g. `auth_`; a handler that finds a project by one checks
    `ctx.serves`, and returns False if the bot may not act for it. `button`: data that starts with `~` and
    `prefix`. `command`: a text `/name`, in any case, also as `/name@bot`, with or without an argument;
    `about` is its description in lists of commands. `message`: any text or files; `edit`: an edited
    message. Of these, lower `priority` first: 20 for an active dialogue, 90 for a handler of everything
    left. `after_handled`: after a start, a bot's button or a command was handled, for an active dialogue in
    the chat that resumes later; its result is ignored.
    """

    on: Literal["start", "button", "command", "message", "edit", "aside"]
    handler: InboundHandler
    prefix: str = ""
    priority: int = 50
    name: str = ""
    #: E.g. `lambda _: _("Where your order is")`; without it the command works, but is not listed.
    about: Callable[[Translate], str] | None = None


class Dispatcher(Protocol):
    """Handles updates: see `dispatch.InboundDispatcher`."""

    async def handle(self, ctx: InboundContext) -> None: ...

    async def handle_unclaimed(self, ctx: InboundContext) -> None: ...

    async def record_report(self, tx: Tx, channel: str, report: DeliveryReported) -> None: ...

    async def record_bot(self, tx: Tx, channel: str, created: BotCreated) -> None: ...


class Inbound:
    """`service.inbound`: processes updates from channels."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        texts: Texts,
        channels: Channels,
        outbox: BotOutbox,
        dispatcher: Dispatcher,
        commands: CommandCatalogue,
        shelf: Shelf,
        metrics: ChannelMetrics,
        tracing: Tracing | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._texts = texts
        self._channels = channels
        self._outbox = outbox
        self._dispatcher = dispatcher
        self._shelf = shelf
        self._metrics = metrics
        self.commands = commands
        self._tracing = tracing

    def menu(self) -> list[BotCommand]:
        """The listed commands, in the form of platforms' menus."""
        return self.commands.menu()

    async def last_update_ms(self, channel: str, chat_id: str) -> int | None:
        """When the last update of a chat was received, in Unix milliseconds; None for an unknown chat.

        `channel` is the bot's key. Raises `DatabaseUnavailable`.
        """
        async with self._db.read() as tx:
            return await chats.find_seen_ms(tx, channel, chat_id)

    async def receive(self, channel: str, update: Update) -> None:
        """Processes an update once, however often the platform sends it. `channel` is the bot's key.

        Raises `DatabaseUnavailable` if it could not be processed, so that the platform sends it again. An
        update whose handler fails is kept on the channel's shelf, and processed again if somebody has it
        taken anyway.
        """
        kind = type(update).__name__
        attributes = {"msgsvc.channel": channel, "msgsvc.update.type": kind}
        try:
            with first_span(self._tracing, f"process {kind}", "consumer", attributes):
                await self.process(channel, update)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            self._metrics.received(channel, "failed")
            log.exception("update_failed", channel=channel, update_id=update.update_id)
            if not isinstance(update, Unreadable):
                await self._shelve(channel, update, error)

    async def _shelve(self, channel: str, update: Update, error: Exception) -> None:
        """Keeps an update whose handler failed. It does not count as received: what the platform sends once
        more may be handled."""
        try:
            async with self._db.transaction() as tx:
                await self._shelf.put_failed(tx, channel, update, error)
        except DatabaseUnavailable:
            raise
        except Exception:
            # The edge: an update that can't be kept must not stop those after it.
            log.exception("update_lost", channel=channel, update_id=update.update_id)

    async def process(
        self, channel: str, update: Update, received_at_ms: int | None = None
    ) -> None:
        """As `receive`, and raises what a handler raises: the update can then be processed again. One that
        came earlier, `received_at_ms`, tells nothing of now."""
        process = partial(self._process, channel, update, received_at_ms=received_at_ms)
        try:
            await process(self._dispatcher.handle)
        except ForeignBot:
            # Its effects are rolled back. The payload belongs to another project, so this bot does not know
            # it.
            await process(self._dispatcher.handle_unclaimed)

    async def press(self, channel: str, press: ButtonPressed) -> list[OutgoingMessage] | None:
        """Processes a press on a page once: returns what the bot says to it, which is not sent; None if it
        was processed before, or the channel is gone.

        Raises `DatabaseUnavailable`, and what a handler raises.
        """
        attributes = {"msgsvc.channel": channel, "msgsvc.update.type": "ButtonPressed"}
        with first_span(self._tracing, "process ButtonPressed", "consumer", attributes):
            shown: list[OutgoingMessage] = []
            try:
                known = await self._process(channel, press, self._dispatcher.handle, shown)
            except ForeignBot:
                shown.clear()
                handle = self._dispatcher.handle_unclaimed
                known = await self._process(channel, press, handle, shown)
        return shown if known else None

    async def _process(
        self,
        channel: str,
        update: Update,
        handle: Callable[[InboundContext], Awaitable[None]],
        shown: list[OutgoingMessage] | None = None,
        received_at_ms: int | None = None,
    ) -> bool:
        """False for an update of a channel that is gone, and for one that was processed before."""
        bot = await self._channels.find(channel)
        if bot is None:
            log.info("update_of_gone_channel", channel=channel)
            return False
        async with self._db.transaction() as tx:
            update_id = update.update_id
            if isinstance(update, Unreadable):
                update_id = f"{UNREADABLE}{storable_id(update_id)}"
            if not await received_updates.insert_update(
                tx, channel, update_id, self._clock.now_ms()
            ):
                return False
            if isinstance(update, Unreadable):
                await self._shelf.put(tx, channel, update)
                return True
            if received_at_ms is not None and await _is_outdated(
                tx, channel, update, received_at_ms
            ):
                return True
            if isinstance(update, DeliveryReported):
                # Nobody has done anything in the chat.
                await self._dispatcher.record_report(tx, channel, update)
            elif isinstance(update, BotCreated):
                await self._dispatcher.record_bot(tx, channel, update)
            else:
                ctx = await self._context(tx, bot, update, received_at_ms)
                ctx.shown = shown
                await handle(ctx)
            tx.on_commit(partial(self._metrics.received, channel, "handled"))
        return True

    async def _context(
        self, tx: Tx, channel: Channel, update: Update, received_at_ms: int | None
    ) -> InboundContext:
        bot = channel.identity
        row = await chats.touch(
            tx,
            bot.key,
            update.chat_id,
            user_id=update.user.user_id,
            project_id=bot.project_id,
            now_ms=self._clock.now_ms() if received_at_ms is None else received_at_ms,
        )
        lang = self._texts.choose(row["lang"] or update.user.lang)
        return InboundContext(
            tx=tx,
            bot=channel,
            outbox=self._outbox,
            channel=bot.key,
            channel_name=bot.name,
            update=update,
            chat=Chat(bot.key, update.chat_id, row["project_id"]),
            lang=lang,
            _=self._texts.into(lang),
        )


async def _is_outdated(tx: Tx, channel: str, update: Update, received_at_ms: int) -> bool:
    """Whether an update that came then tells how a chat was before it was used again."""
    if not isinstance(update, Blocked | Unblocked | ChatMoved):
        return False
    seen_at_ms = await chats.find_seen_ms(tx, channel, update.chat_id)
    return seen_at_ms is not None and seen_at_ms > received_at_ms
