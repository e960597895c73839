"""Routes an update to its handler.

Order: a start payload by its prefix, a button by its prefix, a command by its name, any other message by
priority, and an edited message likewise. Unhandled updates get a default reply and are logged; they never
stop the bot.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Protocol

import structlog

from msgsvc_core.channels.buttons.fallbacks import Choice, TypedAnswers
from msgsvc_core.channels.commands import (
    COMMAND_NAME,
    START_PAYLOAD,
    ListedCommand,
    read_command,
)
from msgsvc_core.channels.inbound.processing import (
    OWN_BUTTON,
    InboundContext,
    InboundHandler,
    InboundRule,
)
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.channels.updates import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    Started,
    Unblocked,
)
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.i18n import Texts, package_of

log = structlog.get_logger(__name__)


class ChatDirectory(Protocol):
    """Stores users' chats, and whether they can be reached. `channel` is the bot's key."""

    async def reached(self, tx: Tx, channel: str, user_id: str) -> None: ...

    async def move_chat(self, tx: Tx, channel: str, chat_id: str, new_chat_id: str) -> None: ...

    async def move_user(self, tx: Tx, channel: str, user_id: str, new_user_id: str) -> None: ...

    async def record_chat(self, tx: Tx, channel: str, user_id: str, chat_id: str) -> None: ...

    async def block(
        self,
        tx: Tx,
        channel: str,
        user_id: str,
        *,
        reason: str,
        by_failure: bool,
        chat_id: str | None = None,
    ) -> None: ...

    async def unblock(self, tx: Tx, channel: str, user_id: str) -> None: ...


#: Records a phone number that a platform has verified: key and name of the channel, and its user.
PhoneRecorder = Callable[[Tx, str, str, ChannelUser], Awaitable[None]]

#: Records that a user of a channel, by its key, has written or pressed a button.
AnswerRecorder = Callable[[Tx, str, str], Awaitable[None]]

#: Records what a platform reports of a message: the key of the channel, and its report.
ReportRecorder = Callable[[Tx, str, DeliveryReported], Awaitable[None]]

#: Records a bot that a person made: the key of the channel that manages it, and what it says.
BotRecorder = Callable[[Tx, str, BotCreated], Awaitable[None]]


class InboundDispatcher:
    """Passes updates to the rules that handle them.

    `on_project_button` handles presses of projects' buttons; `on_phone` is awaited after an update whose
    platform tells the user's phone number; `on_report` for what it reports of messages;
    `on_answer` after a message or a press; `on_bot_created` for a bot that a person made."""

    def __init__(
        self,
        *,
        texts: Texts,
        typed_answers: TypedAnswers,
        start_codes: StartCodes,
        chats: ChatDirectory,
        on_project_button: InboundHandler,
        on_phone: PhoneRecorder | None = None,
        on_report: ReportRecorder | None = None,
        on_answer: AnswerRecorder | None = None,
        on_bot_created: BotRecorder | None = None,
    ) -> None:
        self._on_answer = on_answer
        self._on_bot_created = on_bot_created
        self._on_phone = on_phone
        self._on_report = on_report
        self._texts = texts
        self._typed_answers = typed_answers
        self._start_codes = start_codes
        self._chats = chats
        self._on_project_button = on_project_button
        self._rules: list[InboundRule] = []

    def declare(self, rules: Iterable[InboundRule]) -> None:
        """Adds rules, before the first update. Raises `ValueError` for conflicting ones."""
        self._rules = sorted(
            (*self._rules, *rules), key=lambda rule: (rule.priority, -len(rule.prefix))
        )
        self._refuse_clashes()

    @property
    def commands(self) -> list[ListedCommand]:
        """The listed commands, in the order of their declaration."""
        return [
            ListedCommand(rule.name, rule.about)
            for rule in self._rules
            if rule.on == "command" and rule.about is not None
        ]

    async def handle(self, ctx: InboundContext) -> None:
        # A message's id is unique only in its chat: a press is looked up in the chat of the message.
        is_press = isinstance(ctx.update, ButtonPressed)
        if is_press or isinstance(ctx.update, MessageReceived):
            # Whatever failed before: somebody writes, so they are reached.
            await self._chats.reached(ctx.tx, ctx.channel, ctx.update.user.user_id)
        if not is_press:
            await self._follow_chat(ctx)
        await self._dispatch(ctx)
        if is_press:
            await self._follow_chat(ctx)
        is_answer = is_press or isinstance(ctx.update, MessageReceived)
        if is_answer and self._on_answer is not None:
            await self._on_answer(ctx.tx, ctx.channel, ctx.update.user.user_id)
        if self._on_phone is not None and ctx.update.user.phone is not None:
            # Afterwards: what was handled may have subscribed the user.
            await self._on_phone(ctx.tx, ctx.channel, ctx.channel_name, ctx.update.user)

    async def handle_unclaimed(self, ctx: InboundContext) -> None:
        match ctx.update:
            case Started():
                await self._unknown_start(ctx)
            case ButtonPressed():
                await self._unknown_button(ctx)
            case _:
                log.info("update_unclaimed", channel=ctx.channel)

    async def record_report(self, tx: Tx, channel: str, report: DeliveryReported) -> None:
        if self._on_report is not None:
            await self._on_report(tx, channel, report)

    async def record_bot(self, tx: Tx, channel: str, created: BotCreated) -> None:
        if self._on_bot_created is not None:
            await self._on_bot_created(tx, channel, created)

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
                await self._on_project_button(ctx)
            case MessageReceived() | MessageEdited():
                await self._words(ctx, ctx.update)
            case Blocked() | Unblocked():
                await self._access_changed(ctx)
            case _:
                log.warning("update_unknown", kind=type(ctx.update).__name__, channel=ctx.channel)

    async def _follow_chat(self, ctx: InboundContext) -> None:
        """Records the chat that the user used last: messages are sent to it."""
        update, chats = ctx.update, self._chats
        if isinstance(update, ChatMoved):
            await chats.move_chat(ctx.tx, ctx.channel, update.chat_id, update.new_chat_id)
            if update.new_user_id is not None:
                user_id = update.user.user_id
                await chats.move_user(ctx.tx, ctx.channel, user_id, update.new_user_id)
            return
        is_group = ctx.bot.is_group(update.chat_id)
        if not is_group and not isinstance(update, Blocked):
            await chats.record_chat(ctx.tx, ctx.channel, update.user.user_id, update.chat_id)

    async def _access_changed(self, ctx: InboundContext) -> None:
        chats, user_id = self._chats, ctx.update.user.user_id
        if isinstance(ctx.update, Blocked):
            await chats.block(
                ctx.tx,
                ctx.channel,
                user_id,
                reason="chat_not_found" if ctx.update.by_failure else "user_blocked_bot",
                by_failure=ctx.update.by_failure,
                # On some platforms a person may have left an earlier chat with the bot.
                chat_id=ctx.update.chat_id,
            )
        else:
            await chats.unblock(ctx.tx, ctx.channel, user_id)

    async def _words(self, ctx: InboundContext, message: MessageReceived | MessageEdited) -> None:
        if isinstance(message, MessageEdited):
            # Editing a command does not run it again.
            if not await self._offer(ctx, "edit", ""):
                log.info("edit_unclaimed", channel=ctx.channel)
            return
        if await self._answer_in_words(ctx, message):
            return
        command = read_command(message.text)
        profile = ctx.bot.profile
        if command is not None and command.is_for(profile.username if profile else None):
            if command.name == "start" and START_PAYLOAD.fullmatch(command.argument):
                # A link's payload, on a messenger where users send it as a text.
                await self.handle(_as_started(ctx, command.argument))
                return
            ctx.argument = command.argument
            if await self._offer(ctx, "command", command.name):
                return
        if not await self._offer(ctx, "message", ""):
            log.info("message_unclaimed", channel=ctx.channel)

    async def _answer_in_words(self, ctx: InboundContext, message: MessageReceived) -> bool:
        """Treats a text as the press of a button, or as a start, on a platform without buttons or start
        links."""
        takes = ctx.bot.capabilities
        found = await self._typed_answers.press_in(ctx.tx, ctx.bot, message.chat_id, message.text)
        if found is not None:
            choice, message_ref = found
            await self.handle(_as_pressed(ctx, choice, message_ref))
            return True
        if takes.start_links:
            return False
        payload = await self._start_codes.payload_in(ctx.tx, message.text)
        if payload is None:
            return False
        await self.handle(_as_started(ctx, payload))
        return True

    async def _offer(self, ctx: InboundContext, on: str, text: str) -> bool:
        for rule in self._rules:
            if rule.on != on or not _fits(rule, text):
                continue
            if await self._run(rule, ctx) is not False:
                if on in {"start", "button", "command"}:
                    await self._run_after_handled(ctx)
                return True
        return False

    async def _run_after_handled(self, ctx: InboundContext) -> None:
        for rule in self._rules:
            if rule.on == "aside":
                await self._run(rule, ctx)

    async def _run(self, rule: InboundRule, ctx: InboundContext) -> bool | None:
        """Calls the handler, with the texts of its own package."""
        ctx._ = self._texts.into(ctx.lang, package_of(rule.handler))
        try:
            return await rule.handler(ctx)
        finally:
            ctx._ = self._texts.into(ctx.lang)

    async def _unknown_button(self, ctx: InboundContext) -> None:
        log.info("button_unknown", channel=ctx.channel)
        await ctx.answer_button(ctx._("This button no longer works."))

    async def _unknown_start(self, ctx: InboundContext) -> None:
        log.info("start_unknown", channel=ctx.channel)
        text = ctx._("This link is no longer valid. Please ask the site for a new one.")
        await ctx.reply_by_itself("unknown_start", OutgoingMessage(text))

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


def _as_pressed(ctx: InboundContext, choice: Choice, message_ref: str) -> InboundContext:
    update = ctx.update
    press = ButtonPressed(
        update_id=update.update_id,
        chat_id=update.chat_id,
        user=update.user,
        data=choice.data,
        message_ref=message_ref,
        # Nobody waits for the response to such a press.
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
