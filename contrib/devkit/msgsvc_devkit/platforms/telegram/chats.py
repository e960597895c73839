"""Chats with a bot, and the messages in them."""

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from msgsvc_devkit.platforms.telegram.calls import Refusal, bad_request


@dataclass(slots=True)
class ShownFile:
    """A file in a chat. `url` is the one from which Telegram fetched it, None for an upload."""

    kind: Literal["photo", "video", "document"]
    filename: str
    content: bytes = field(repr=False)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that a user sent. `path` is for downloads by bots."""

    path: str
    content: bytes = field(repr=False)


@dataclass(slots=True)
class ShownMessage:
    """A message as the user sees it. `text` is the caption if there is a file."""

    message_id: int
    text: str
    from_bot: bool
    entities: list[dict[str, Any]] = field(default_factory=list)
    buttons: list[list[dict[str, Any]]] = field(default_factory=list)
    file: ShownFile | None = None
    silent: bool = False
    #: The InputRichMessage of a rich message; `text` is its text.
    rich: dict[str, Any] | None = None
    #: The topic that it is in.
    topic: int | None = None
    edits: int = 0
    #: Telegram doesn't let bots delete messages older than 48 hours.
    old: bool = False

    @property
    def labels(self) -> list[list[str]]:
        return [[button["text"] for button in row] for row in self.buttons]

    def button(self, label: str) -> dict[str, Any] | None:
        return next((b for row in self.buttons for b in row if b["text"] == label), None)


class Chat:
    """A chat of a bot. Messages are numbered across all chats of the bot, as in Telegram."""

    def __init__(self, chat_id: int, info: dict[str, Any], numbers: "count[int]") -> None:
        self.chat_id = chat_id
        #: Telegram's Chat object.
        self.info = info
        self.messages: dict[int, ShownMessage] = {}
        #: Names of the topics, by their ids.
        self.topics: dict[int, str] = {}
        self._numbers = numbers
        self._changed = asyncio.Event()

    def check_writable(self) -> None:
        """Raises `Refusal` unless the bot may write here."""

    def add(self, text: str, *, from_bot: bool, **looks: Any) -> ShownMessage:
        message = ShownMessage(next(self._numbers), text, from_bot, **looks)
        self.messages[message.message_id] = message
        self.changed()
        return message

    def open_topic(self, name: str) -> int:
        """The id of a new topic: that of the service message that a user sees."""
        topic = next(self._numbers)
        self.topics[topic] = name
        self.changed()
        return topic

    def changed(self) -> None:
        """Wakes tasks that wait for a change in the chat."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self) -> None:
        """Returns at the next change."""
        await self._changed.wait()


class PrivateChat(Chat):
    """A chat with one user, who has to start it."""

    started = False
    blocked = False
    deactivated = False

    def check_writable(self) -> None:
        if self.deactivated:
            raise Refusal(403, "Forbidden: user is deactivated")
        if self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if not self.started:
            raise Refusal(403, "Forbidden: bot can't initiate conversation with a user")


class Group(Chat):
    """A chat with many users; the bot is a member until it is removed."""

    kicked = False
    migrated_to: int | None = None

    def check_writable(self) -> None:
        if self.migrated_to is not None:
            refusal = bad_request("group chat was upgraded to a supergroup chat")
            refusal.parameters["migrate_to_chat_id"] = self.migrated_to
            raise refusal
        if self.kicked:
            raise Refusal(403, "Forbidden: bot was kicked from the group chat")
