"""Buttons on platforms without them: numbered replies, URLs as lines of the text, and pages.

A channel's `Capabilities.buttons` says what its platform has. If that is `words`, the buttons are numbered
below the text and stored for the chat, and a reply with a number or a button's label counts as a press
(docs/decisions/0059-buttons-as-text.md). If it is `pages`, each gets the URL of a page: see `button_pages`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from html import escape as escape_html

import structlog

from msgsvc_core.channels import chats
from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.buttons import offers
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.content.markup import to_html, to_spans
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import DecryptionError, SecretBox

#: Called when a channel's chat continues under another id.
OnChatMoved = Callable[[Tx, str, str, str], Awaitable[None]]

#: The language of a channel's bot for a user who chose none in the chat.
LanguageOf = Callable[[Tx, str, str], Awaitable[str | None]]

#: Characters that a backslash escapes in Markdown: see `markup`.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*_~\[\]()#+.!>-]")

#: Prefixes of the ids of questions: of the system (a sign-in, a rating), and of projects.
OWN_QUESTION, PROJECTS_QUESTION = "own", "off"

#: Prefix of system buttons' data: see `inbound.OWN_BUTTON`.
_OWN_BUTTON = "~"

#: Milliseconds for which a system question stays open regardless of later messages: the default lifetime
#: of a sign-in.
OWN_QUESTION_MS = 600_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """A button as a numbered reply: `number` is None if its label is a number."""

    number: int | None
    label: str
    data: str


def choices_of(message: OutgoingMessage) -> list[Choice]:
    """The replies to a message's buttons. A label that is a number stands only for itself."""
    pressed = [button for row in message.buttons for button in row if button.data is not None]
    taken = {button.text.strip() for button in pressed if _is_number(button.text)}
    free = (number for number in range(1, 1000) if str(number) not in taken)
    return [
        Choice(None if _is_number(button.text) else next(free), button.text, button.data or "")
        for button in pressed
    ]


def links_of(message: OutgoingMessage) -> list[str]:
    """The buttons that open pages, as lines of a text."""
    links = [b for row in message.buttons for b in row if b.url is not None]
    return [f"{_one_line(link.text)}: {link.url}" for link in links]


def replies_of(message: OutgoingMessage) -> list[str]:
    """The replies to the other buttons, as lines of a text."""
    choices = choices_of(message)
    plain = ", ".join(choice.label.strip() for choice in choices if choice.number is None)
    named = [f"{each.number} - {_one_line(each.label)}" for each in choices if each.number]
    return [line for line in (plain, *named) if line]


def in_words(message: OutgoingMessage, _: Translate, *, answered: bool) -> OutgoingMessage:
    """The message with its buttons as lines of its text; without those that send data unless `answered`."""
    lines = links_of(message)
    offered = replies_of(message) if answered else []
    if offered:
        offered.append(_("Answer with the number."))
    added = "\n\n".join("\n".join(part) for part in (lines, offered) if part)
    text = "\n\n".join(part for part in (message.text, _escaped(added, message.format)) if part)
    return replace(message, text=text, buttons=())


def pressed(text: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that a reply names: by its label, or by its number."""
    said = _folded(text)
    named = [choice for choice in choices if _folded(choice.label) == said]
    if len(named) == 1:
        return named[0]
    return next((each for each in choices if each.number and str(each.number) == said), None)


class ChannelSender:
    """Sends and edits messages with their buttons in the form that the channel's platform supports.

    `on_moved` is awaited if the platform reports a new id of the chat; `language_of` is called for users who
    chose no language in the chat.
    """

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        secrets: SecretBox,
        texts: Texts,
        pages: ButtonPages,
        on_moved: OnChatMoved,
        language_of: LanguageOf,
    ) -> None:
        self._db = db
        self._pages = pages
        self._clock = clock
        self._secrets = secrets
        self._texts = texts
        self._on_moved = on_moved
        self._language_of = language_of

    async def send(
        self,
        channel: Channel,
        chat_id: str,
        message: OutgoingMessage,
        *,
        lang: str | None = None,
    ) -> str:
        """`channel.send`, with buttons in the form that the platform supports.

        The choices are stored before the call, since a user may reply at once, and replace the chat's earlier
        ones. If the platform reports a new chat id, the message is sent there, and the subscribers in the
        chat are moved. Raises what `channel.send` does.
        """
        message = without_blocks(channel, message)
        try:
            return await self._send(channel, chat_id, message, lang)
        except DeliveryError as error:
            if error.moved_to is None or error.moved_to == chat_id:
                raise
            moved_to = error.moved_to
        log.info("chat_moved", channel=channel.key)
        try:
            async with self._db.transaction() as tx:
                await self._on_moved(tx, channel.key, chat_id, moved_to)
        except DatabaseUnavailable as error:
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        return await self._send(channel, moved_to, message, lang)

    async def _send(
        self,
        channel: Channel,
        chat_id: str,
        message: OutgoingMessage,
        lang: str | None,
    ) -> str:
        takes = channel.capabilities
        kind = takes.buttons_of(message)
        asks = kind == "words" and any(b.data is not None for row in message.buttons for b in row)
        if takes.buttons == "words" and not asks:
            await self._follow_question(channel, chat_id)
        if kind == "native" or not message.buttons:
            return await channel.send(chat_id, message)
        if kind == "pages":
            return await self._send_with_pages(channel, chat_id, message, lang)
        choices = choices_of(message) if kind == "words" else []
        own = all(choice.data.startswith(_OWN_BUTTON) for choice in choices)
        offer_id = new_id(OWN_QUESTION if own else PROJECTS_QUESTION)
        try:
            async with self._db.transaction() as tx:
                lang = lang or await self._language(tx, channel.key, chat_id)
                if choices:
                    await offers.save(
                        tx,
                        channel.key,
                        chat_id,
                        offer_id=offer_id,
                        sealed=_sealed(self._secrets, choices),
                        now_ms=self._clock.now_ms(),
                    )
        except DatabaseUnavailable as error:
            # The platform was not called.
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        shown = in_words(message, self._texts.into(lang or ""), answered=kind == "words")
        ref = await channel.send(chat_id, shown)
        if choices:
            try:
                async with self._db.transaction() as tx:
                    await offers.set_ref(tx, channel.key, chat_id, offer_id, ref)
            except DatabaseUnavailable as error:
                # It was sent and must not be sent again; a reply to it is matched by its text.
                log.warning("offer_without_message", channel=channel.key, error=str(error))
        return ref

    async def _send_with_pages(
        self, channel: Channel, chat_id: str, message: OutgoingMessage, lang: str | None
    ) -> str:
        linked, digest = await self._on_pages(channel, chat_id, message, lang)
        ref = await channel.send(chat_id, linked)
        if digest is not None:
            try:
                async with self._db.transaction() as tx:
                    await self._pages.set_ref(tx, digest, ref)
            except DatabaseUnavailable as error:
                # It was sent and must not be sent again; a press then names no message.
                log.warning("offer_without_message", channel=channel.key, error=str(error))
        return ref

    async def _on_pages(
        self, channel: Channel, chat_id: str, message: OutgoingMessage, lang: str | None
    ) -> tuple[OutgoingMessage, str | None]:
        """The message with URLs in all of its buttons, and the digest of their pages; None without any."""
        if not any(button.data is not None for row in message.buttons for button in row):
            return message, None
        try:
            async with self._db.transaction() as tx:
                lang = lang or await self._language(tx, channel.key, chat_id)
                linked, digest = await self._pages.offer(tx, channel, chat_id, message, lang or "")
        except DatabaseUnavailable as error:
            # The platform was not called.
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        if channel.capabilities.buttons in {"words", "links"}:
            linked = in_words(linked, self._texts.into(lang or ""), answered=False)
        return linked, digest

    async def _language(self, tx: Tx, channel_key: str, chat_id: str) -> str | None:
        """The language that the chat's user chose, or subscribed in; None if neither is known."""
        known = await chats.find_language(tx, channel_key, chat_id)
        if known is None:
            return None
        user_id, chosen = known
        return chosen or await self._language_of(tx, channel_key, user_id)

    async def _follow_question(self, channel: Channel, chat_id: str) -> None:
        """Updates the open question after a message: a number refers to the bot's latest message, see
        docs/decisions/0059-buttons-as-text.md."""
        own_since_ms = self._clock.now_ms() - OWN_QUESTION_MS
        try:
            # Most messages follow no question, and cost no write.
            async with self._db.read() as tx:
                if not await offers.is_asked(tx, channel.key, chat_id):
                    return
            async with self._db.transaction() as tx:
                await offers.follow(tx, channel.key, chat_id, OWN_QUESTION, own_since_ms)
        except DatabaseUnavailable as error:
            # The platform was not called.
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error

    async def edit(
        self, channel: Channel, chat_id: str, message_ref: str, message: OutgoingMessage
    ) -> None:
        """`channel.edit`, with buttons in the form that the platform supports."""
        message = without_blocks(channel, message)
        kind = channel.capabilities.buttons_of(message)
        if kind == "native":
            await channel.edit(chat_id, message_ref, message)
            return
        if kind == "pages":
            await self._edit_with_pages(channel, chat_id, message_ref, message)
            return
        choices = choices_of(message) if kind == "words" else []
        try:
            async with self._db.transaction() as tx:
                lang = await self._language(tx, channel.key, chat_id)
                await offers.change(
                    tx,
                    channel.key,
                    chat_id,
                    message_ref,
                    sealed=_sealed(self._secrets, choices) if choices else None,
                )
        except DatabaseUnavailable as error:
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        shown = in_words(message, self._texts.into(lang or ""), answered=kind == "words")
        await channel.edit(chat_id, message_ref, shown)

    async def _edit_with_pages(
        self, channel: Channel, chat_id: str, message_ref: str, message: OutgoingMessage
    ) -> None:
        try:
            async with self._db.transaction() as tx:
                await self._pages.withdraw(tx, channel, chat_id, message_ref)
        except DatabaseUnavailable as error:
            # The platform was not called.
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        linked, digest = await self._on_pages(channel, chat_id, message, None)
        if digest is not None:
            async with self._db.transaction() as tx:
                await self._pages.set_ref(tx, digest, message_ref)
        await channel.edit(chat_id, message_ref, linked)


class TypedAnswers:
    """Interprets users' texts as presses of buttons, on platforms without buttons.

    A question in a chat stays open for `answer_hours`.
    """

    def __init__(self, *, clock: Clock, secrets: SecretBox, answer_hours: int) -> None:
        self._clock = clock
        self._secrets = secrets
        self._answer_hours = answer_hours

    async def press_in(
        self, tx: Tx, channel: Channel, chat_id: str, text: str
    ) -> tuple[Choice, str] | None:
        """The choice that a text makes among those open in its chat, and their message.

        None for other texts, and if no question is open or it has expired.
        """
        if not text.strip() or channel.capabilities.buttons != "words":
            return None
        since_ms = self._clock.now_ms() - self._answer_hours * HOUR_MS
        offer = await offers.find(tx, channel.key, chat_id, since_ms)
        if offer is None:
            return None
        try:
            kept = json.loads(self._secrets.decrypt(offer.sealed))
        except DecryptionError:
            log.warning("offer_unreadable", channel=channel.key)
            return None
        choice = pressed(text, [Choice(*each) for each in kept])
        return None if choice is None else (choice, offer.message_ref or "")


async def close_question(tx: Tx, channel_key: str, chat_id: str) -> None:
    """Closes the chat's question, so that a number is no longer an answer: the conversation is with a
    human."""
    await offers.delete(tx, channel_key, chat_id)


def _sealed(secrets: SecretBox, choices: Sequence[Choice]) -> str:
    """Encrypted: the system's choices contain tokens of sign-ins."""
    return secrets.encrypt(to_json([[each.number, each.label, each.data] for each in choices]))


def _is_number(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdigit()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".)!")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def without_blocks(channel: Channel, message: OutgoingMessage) -> OutgoingMessage:
    """The message without the format `rich` if the platform has nothing like it."""
    if message.format != "rich" or channel.capabilities.rich:
        return message
    text = to_html(to_spans(message.text, message.format))
    return replace(message, text=text, format="html")


def _escaped(text: str, text_format: Format) -> str:
    if text_format in {"html", "rich"}:
        return escape_html(text)
    if text_format == "markdown":
        return _MARKDOWN_SPECIAL.sub(lambda match: "\\" + match[0], text)
    return text
