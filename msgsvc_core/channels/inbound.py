"""The way in: an update from a messenger, taken once, goes to the one who knows what to do with it.

Order: a start payload by its prefix, a button by its prefix, a command by its name, any other message to
those who want it, and a change of one to the same. What nobody claims is answered kindly and logged; it
never stops the bot.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import structlog

from msgsvc_core.channels import offers, words
from msgsvc_core.channels.commands import (
    COMMAND_NAME,
    START_PAYLOAD,
    BotCommand,
    read_command,
)
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.updates import (
    Blocked,
    ButtonPressed,
    ChatMoved,
    MessageEdited,
    MessageReceived,
    Started,
    Unblocked,
    Update,
)
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.kernel.i18n import Translate, package_of

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
    it as `channel_name`. `lang` is what the person chose in this chat, else their messenger's.
    `argument` is what follows the name of a command.
    """

    service: "Service"
    tx: Tx
    channel: str
    channel_name: str
    update: Update
    chat: Chat
    lang: str
    _: Translate
    argument: str = ""
    #: Whether something was said to this update already: see `answer_button`.
    replied: bool = False

    def serves(self, project_id: str) -> bool:
        """Whether the bot may act for this project; a project's own does so for nobody else.

        Whoever finds a project by a payload asks this first, and leaves the update unclaimed if not.
        """
        own = self.service.channels[self.channel].identity.project_id
        return own in {None, project_id}

    @property
    def answers_in_words(self) -> bool:
        """Whether the platform has no buttons, and people answer with a number or a word."""
        return self.service.channels[self.channel].capabilities.buttons == "words"

    async def reply(self, message: OutgoingMessage, *, asks: bool = False) -> None:
        """Has `message` sent to the chat, after the commit.

        `asks` says that words are expected as its answer: where people answer in words, what the chat was
        offered before counts no more.
        """
        if asks and self.answers_in_words:
            await offers.end(self.tx, self.channel, self.update.chat_id)
        self.replied = True
        await self.service.outbox.send(
            self.tx, self.channel, self.update.chat_id, message, lang=self.lang
        )

    async def edit(
        self, message_ref: str, message: OutgoingMessage, otherwise: OutgoingMessage | None = None
    ) -> None:
        """Has a message of the bot replaced, after the commit; with `otherwise` where the platform does
        not take `message`, e.g. a button's address."""
        chat_id = self.update.chat_id
        if self.answers_in_words:
            # Its question is over, or is asked anew by `message`.
            await offers.end(self.tx, self.channel, chat_id)
        self.replied = True
        await self.service.outbox.edit(
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

        Where the press was made in words, the notice is a message, unless something was said already.
        """
        assert isinstance(self.update, ButtonPressed)
        if self.answers_in_words:
            if text is not None and not self.replied:
                await self.reply(OutgoingMessage(text))
            return
        await self.service.outbox.answer(self.tx, self.channel, self.update.button_ref, text)

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
    with `~` and `prefix`. `command`: a text `/name`, in any case, also as `/name@bot`, with or without
    an argument after it; `about` says in a few words what it is for, where people look for commands.
    `message`: any text or files; `edit`: a message that the person changed. Of these, lower
    `priority` first: 20 where a dialogue is under way, 90 for who takes whatever is left.
    `aside`: after a start, a bot's button or a command that somebody took, for who has a dialogue under
    way in the chat and comes back to it later; its answer means nothing.
    """

    on: Literal["start", "button", "command", "message", "edit", "aside"]
    handler: InboundHandler
    prefix: str = ""
    priority: int = 50
    name: str = ""
    #: E.g. `lambda _: _("Where your order is")`; without it the command works, and nobody is told of it.
    about: Callable[[Translate], str] | None = None


class Inbound:
    """`service.inbound`: takes updates from channels."""

    def __init__(self, service: "Service", rules: Iterable[InboundRule]) -> None:
        self._service = service
        self._rules = sorted(rules, key=lambda rule: (rule.priority, -len(rule.prefix)))
        self._refuse_clashes()

    @property
    def commands(self) -> list[InboundRule]:
        """The commands that people are told of, in the order in which they were declared."""
        return [rule for rule in self._rules if rule.on == "command" and rule.about is not None]

    def menu(self) -> list[BotCommand]:
        """The same, as platforms show them."""
        texts = self._service.texts
        languages = dict.fromkeys((*texts.spoken, texts.default_lang))
        return [
            BotCommand(rule.name, {lang: self.about(rule, lang) for lang in languages})
            for rule in self.commands
        ]

    def about(self, rule: InboundRule, lang: str) -> str:
        """What a command is for, in the words of whose command it is."""
        assert rule.about is not None, "people are not told of it"
        return rule.about(self._service.texts.into(lang, package_of(rule.about)))

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
                await handle(await self._context(tx, bot, update))

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

    async def _context(self, tx: Tx, channel: Channel, update: Update) -> InboundContext:
        bot = channel.identity
        row = await tx.fetch_one(
            "INSERT INTO core_chats (channel, chat_id, user_id, project_id, seen_at_ms)"
            " VALUES (:channel, :chat_id, :user_id, :project_id, :now_ms)"
            " ON CONFLICT (channel, chat_id) DO UPDATE SET seen_at_ms = :now_ms"
            " RETURNING project_id, lang",
            {
                "channel": bot.key,
                "chat_id": update.chat_id,
                "user_id": update.user.user_id,
                "project_id": bot.project_id,
                "now_ms": self._service.clock.now_ms(),
            },
        )
        assert row is not None
        lang = self._service.texts.choose(row["lang"] or update.user.lang)
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
            case Started():
                await self._unknown_start(ctx)
            case ButtonPressed():
                await self._unknown_button(ctx)
            case _:
                log.info("update_unclaimed", channel=ctx.channel)

    async def _follow_chat(self, ctx: InboundContext) -> None:
        """Where somebody is now is where they can be reached."""
        update, subscribers = ctx.update, self._service.subscribers
        if isinstance(update, ChatMoved):
            await subscribers.move_chat(ctx.tx, ctx.channel, update.chat_id, update.new_chat_id)
            return
        is_group = self._service.channels[ctx.channel].is_group(update.chat_id)
        if not is_group and not isinstance(update, Blocked):
            await subscribers.seen_in_chat(ctx.tx, ctx.channel, update.user.user_id, update.chat_id)

    async def _handle(self, ctx: InboundContext) -> None:
        # A message's id is unique in its chat alone: a press is looked up where the message was sent to.
        is_press = isinstance(ctx.update, ButtonPressed)
        if not is_press:
            await self._follow_chat(ctx)
        await self._dispatch(ctx)
        if is_press:
            await self._follow_chat(ctx)

    async def _dispatch(self, ctx: InboundContext) -> None:
        match ctx.update:
            case ChatMoved():
                pass
            case Started(payload=""):
                await self._offer(ctx, "command", "start")
            case Started(payload=payload):
                if not await self._offer(ctx, "start", payload):
                    await self._unknown_start(ctx)
            case ButtonPressed(data=data) if data.startswith(OWN_BUTTON):
                handled = await self._offer(ctx, "button", data.removeprefix(OWN_BUTTON))
                if not handled:
                    await self._unknown_button(ctx)
            case ButtonPressed():
                await self._service.messages.button_pressed(ctx)
            case MessageReceived() | MessageEdited():
                await self._words(ctx, ctx.update)
            case Blocked() | Unblocked():
                await self._access_changed(ctx)
            case _:
                log.warning("update_unknown", kind=type(ctx.update).__name__, channel=ctx.channel)

    async def _access_changed(self, ctx: InboundContext) -> None:
        subscribers, user_id = self._service.subscribers, ctx.update.user.user_id
        if isinstance(ctx.update, Blocked):
            await subscribers.block(ctx.tx, ctx.channel, user_id, reason="user_blocked_bot")
        else:
            await subscribers.unblock(ctx.tx, ctx.channel, user_id)

    async def _words(self, ctx: InboundContext, message: MessageReceived | MessageEdited) -> None:
        if isinstance(message, MessageEdited):
            # A command is not given anew by mending it.
            if not await self._offer(ctx, "edit", ""):
                log.info("edit_unclaimed", channel=ctx.channel)
            return
        if await self._answer_in_words(ctx, message):
            return
        command = read_command(message.text)
        profile = self._service.channels[ctx.channel].profile
        if command is not None and command.is_for(profile.username if profile else None):
            if command.name == "start" and START_PAYLOAD.fullmatch(command.argument):
                # A link's payload, from a messenger that leaves it to people to write it.
                await self._handle(_as_started(ctx, command.argument))
                return
            ctx.argument = command.argument
            if await self._offer(ctx, "command", command.name):
                return
        if not await self._offer(ctx, "message", ""):
            log.info("message_unclaimed", channel=ctx.channel)

    async def _answer_in_words(self, ctx: InboundContext, message: MessageReceived) -> bool:
        """Takes a text for the press of a button, or for a start, where the platform has none of them."""
        takes = self._service.channels[ctx.channel].capabilities
        found = await words.press_in(ctx, message.text)
        if found is not None:
            choice, message_ref = found
            await self._handle(_as_pressed(ctx, choice, message_ref))
            return True
        if takes.start_links:
            return False
        payload = await self._service.start_codes.payload_in(ctx.tx, message.text)
        if payload is None:
            return False
        await self._handle(_as_started(ctx, payload))
        return True

    async def _offer(self, ctx: InboundContext, on: str, text: str) -> bool:
        for rule in self._rules:
            if rule.on != on or not _fits(rule, text):
                continue
            if await self._run(rule, ctx) is not False:
                if on in {"start", "button", "command"}:
                    await self._tell_of_aside(ctx)
                return True
        return False

    async def _tell_of_aside(self, ctx: InboundContext) -> None:
        for rule in self._rules:
            if rule.on == "aside":
                await self._run(rule, ctx)

    async def _run(self, rule: InboundRule, ctx: InboundContext) -> bool | None:
        """Calls the handler, which speaks with the texts of its own package."""
        ctx._ = self._service.texts.into(ctx.lang, package_of(rule.handler))
        try:
            return await rule.handler(ctx)
        finally:
            ctx._ = self._service.texts.into(ctx.lang)

    async def _unknown_button(self, ctx: InboundContext) -> None:
        log.info("button_unknown", channel=ctx.channel)
        await ctx.answer_button(ctx._("This button no longer works."))

    async def _unknown_start(self, ctx: InboundContext) -> None:
        log.info("start_unknown", channel=ctx.channel)
        text = ctx._("This link is not valid any more. Please ask the site for a new one.")
        await ctx.reply(OutgoingMessage(text))

    def _refuse_clashes(self) -> None:
        seen: set[tuple[str, str]] = set()
        for rule in self._rules:
            if rule.on == "command":
                if not COMMAND_NAME.fullmatch(rule.name):
                    raise ValueError(
                        f"the command {rule.name!r}: its name is 1-32 of a-z, 0-9 and _"
                    )
                key: tuple[str, str] = (rule.on, rule.name)
            else:
                key = (rule.on, rule.prefix)
            if rule.on not in {"message", "edit", "aside"} and (not key[1] or key in seen):
                raise ValueError(f"two rules, or one without a prefix, for {rule.on} {key[1]!r}")
            seen.add(key)


def _fits(rule: InboundRule, text: str) -> bool:
    return rule.name == text if rule.on == "command" else text.startswith(rule.prefix)


def _as_pressed(ctx: InboundContext, choice: words.Choice, message_ref: str) -> InboundContext:
    update = ctx.update
    press = ButtonPressed(
        update_id=update.update_id,
        chat_id=update.chat_id,
        user=update.user,
        data=choice.data,
        message_ref=message_ref,
        # Nobody waits for the end of such a press.
        button_ref="",
        text=choice.label,
    )
    return replace(ctx, update=press)


def _as_started(ctx: InboundContext, payload: str) -> InboundContext:
    update = ctx.update
    start = Started(
        update_id=update.update_id, chat_id=update.chat_id, user=update.user, payload=payload
    )
    return replace(ctx, update=start)
