"""Users of a bot: their actions, and what they see."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.telegram.calls import bad_request
from msgsvc_devkit.platforms.telegram.chats import PrivateChat, SentFile, ShownMessage

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.telegram.bots import FakeBot

T = TypeVar("T")

#: Default timeout in seconds for a bot's reaction.
PATIENCE_S = patient(60.0)

#: The field of Telegram's Message object that contains a file.
FileKind = Literal["photo", "video", "animation", "video_note", "voice", "audio", "document"]

_user_ids = count(1001)
_file_ids = count(1)
_query_ids = count(5_000_001)


def sign_init_data(fields: dict[str, str], token: str) -> str:
    """Signs as Telegram does (Mini Apps, "Validating data received via the Mini App")."""
    key = hmac.new(b"WebAppData", token.encode(), hashlib.sha256).digest()
    text = "\n".join(sorted(f"{name}={value}" for name, value in fields.items()))
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return urlencode({**fields, "hash": signature}, quote_via=quote)


class Press:
    """A button press, which shows a progress indicator until the bot answers."""

    def __init__(self, query_id: str, update_id: int | None) -> None:
        self.query_id = query_id
        self.update_id = update_id
        #: The bot's answer: a notice, or an empty text.
        self.notice: str | None = None
        #: Telegram accepts an answer only for a while.
        self.too_old = False
        self._answered = asyncio.Event()

    async def answered(self, timeout_s: float = PATIENCE_S) -> str:
        """The notice, once the bot has answered. Raises `TimeoutError`."""
        async with asyncio.timeout(timeout_s):
            await self._answered.wait()
        return self.notice or ""

    def answer(self, text: str) -> None:
        """Answers the press. Raises `Refusal` for a second answer, and for a late one."""
        if self.too_old or self.notice is not None:
            raise bad_request(
                "query is too old and response timeout expired or query ID is invalid"
            )
        self.notice = text
        self._answered.set()


class Person:
    """One user and their chat with one bot. Actions return the id of their update."""

    def __init__(
        self, bot: "FakeBot", name: str, *, username: str | None, lang: str | None
    ) -> None:
        self.bot = bot
        #: Their messages by id, as Telegram's Message objects.
        self._written: dict[int, dict[str, Any]] = {}
        self.user_id = next(_user_ids)
        names = {"first_name": name, "username": username}
        self._names = {key: value for key, value in names.items() if value is not None}
        self.user: dict[str, Any] = {"id": self.user_id, "is_bot": False, **self._names}
        if lang is not None:
            self.user["language_code"] = lang
        info = {"id": self.user_id, "type": "private", **self._names}
        self.chat = PrivateChat(self.user_id, info, bot.numbers)
        bot.chats[self.user_id] = self.chat

    # ---- actions --------------------------------------------------------------------------------

    async def start(self, payload: str = "") -> int | None:
        """Presses Start, after a link with `payload`."""
        if self.chat.blocked:
            await self.unblock()
        return await self.write(f"/start {payload}".strip())

    async def open(self, link: str) -> int | None:
        """Opens a link to the bot, and presses Start. Raises `ValueError` for any other link."""
        parts = urlsplit(link)
        if parts.hostname != "t.me" or parts.path != f"/{self.bot.username}":
            raise ValueError(f"{link} does not lead to @{self.bot.username}")
        return await self.start(parse_qs(parts.query).get("start", [""])[0])

    async def write(
        self, text: str | None = None, *, topic: int | None = None, **content: Any
    ) -> int | None:
        """Sends a text, or a message with other fields of Telegram's Message object; into a topic."""
        self.chat.started = True
        shown = self.chat.add(text or "", from_bot=False, topic=topic)
        if topic is not None:
            content |= {"message_thread_id": topic, "is_topic_message": True}
        message = self._message(shown, **content)
        if text is not None:
            message["text"] = text
        self._written[shown.message_id] = message
        return self.bot.updates.add("message", message)

    async def reply(self, answered: ShownMessage, text: str) -> int | None:
        """Replies to a message of the bot."""
        above = self.bot.message_object(self.chat, answered)
        return await self.write(text, reply_to_message=above)

    def open_topic(self, name: str) -> int:
        """Opens a topic of their own, where the bot lets them; returns its id."""
        return self.chat.open_topic(name)

    def topic(self, name: str) -> int:
        """The id of the topic whose name contains `name`."""
        return next(topic for topic, known in self.chat.topics.items() if name in known)

    def delete_topic(self, topic: int) -> None:
        """Deletes a topic with all its messages."""
        del self.chat.topics[topic]
        for message in [one for one in self.chat.messages.values() if one.topic == topic]:
            del self.chat.messages[message.message_id]
        self.chat.changed()

    async def send_file(
        self,
        kind: FileKind,
        content: bytes,
        *,
        name: str | None = None,
        mime_type: str | None = None,
        caption: str | None = None,
    ) -> int | None:
        """Sends a file, with or without a caption."""
        told = {"file_name": name, "mime_type": mime_type, "file_size": len(content)}
        found = self._put(kind, content, {key: it for key, it in told.items() if it is not None})
        fields: dict[str, Any] = {kind: found}
        if kind == "photo":
            # The same picture in several sizes, the largest last.
            small = self._put(kind, content[: len(content) // 2], {"width": 90, "height": 90})
            fields["photo"] = [small, found | {"width": 1280, "height": 720}]
        if kind == "animation":
            # "For backward compatibility, when this field is set, `document` is set too."
            fields["document"] = found
        if caption is not None:
            fields["caption"] = caption
        return await self.write(None, **fields)

    async def edit(self, text: str, message_id: int | None = None) -> int | None:
        """Edits the text or caption of their last message, or of another one."""
        message = self._written[message_id or max(self._written)]
        field = "text" if "text" in message else "caption"
        message |= {field: text, "edit_date": 1_780_000_100}
        self.chat.messages[message["message_id"]].text = text
        self.chat.changed()
        return self.bot.updates.add("edited_message", dict(message))

    @property
    def last_message_id(self) -> int:
        """The id of their own last message."""
        return max(self._written)

    async def press(
        self, label: str, message: ShownMessage | None = None, *, inaccessible: bool = False
    ) -> Press:
        """Presses a button of `message`, or of the first message with such a button.

        `inaccessible`: the message is so old that Telegram sends the bot only its id.
        """
        if message is None:
            message = await self.wait_for(button=label)
        button = message.button(label)
        if button is None or "callback_data" not in button:
            raise ValueError(f"{label!r} sends nothing back; there are {message.labels}")
        query_id = str(next(_query_ids))
        shown = self.bot.message_object(self.chat, message)
        if inaccessible:
            shown = {"message_id": message.message_id, "chat": self.chat.info, "date": 0}
        query = {
            "id": query_id,
            "from": self.user,
            "message": shown,
            "chat_instance": "1",
            "data": button["callback_data"],
        }
        press = Press(query_id, None)
        self.bot.presses[query_id] = press
        press.update_id = self.bot.updates.add("callback_query", query)
        return press

    async def block(self) -> int | None:
        """Stops the bot."""
        self.chat.blocked = True
        return self._membership("member", "kicked")

    async def unblock(self) -> int | None:
        self.chat.blocked = False
        return self._membership("kicked", "member")

    def open_mini_app(self, payload: str = "") -> str:
        """Opens the bot's mini app; returns the `initData` that its page gets."""
        fields = {
            "query_id": str(next(_query_ids)),
            "user": json.dumps(self.user),
            "auth_date": str(int(time.time())),
            **({"start_param": payload} if payload else {}),
        }
        return sign_init_data(fields, self.bot.token)

    # ---- what they see --------------------------------------------------------------------------

    @property
    def messages(self) -> list[ShownMessage]:
        """The bot's messages except deleted ones, oldest first."""
        return [message for message in self.chat.messages.values() if message.from_bot]

    async def wait_for(
        self,
        text: str | None = None,
        *,
        button: str | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> ShownMessage:
        """Waits for a message that contains `text` and has a button labelled `button`; returns the latest.

        Raises `TimeoutError` with the messages found instead.
        """

        def find() -> ShownMessage | None:
            for message in reversed(self.messages):
                if (text is None or text in message.text) and (
                    button is None or message.button(button)
                ):
                    return message
            return None

        return await self.wait_until(find, timeout_s=timeout_s)

    async def wait_until(self, find: Callable[[], T | None], *, timeout_s: float = PATIENCE_S) -> T:
        """The result of `find` once it is true; it is called at every change of the chat."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (found := find()):
                    await self.chat.change()
        except TimeoutError:
            seen = [(message.text, message.labels) for message in self.messages]
            raise TimeoutError(f"what there was instead: {seen}") from None
        return found

    def _message(self, shown: ShownMessage, **content: Any) -> dict[str, Any]:
        return {
            "message_id": shown.message_id,
            "from": self.user,
            "chat": self.chat.info,
            "date": 1_780_000_000,
            **content,
        }

    def _put(self, kind: FileKind, content: bytes, told: dict[str, Any]) -> dict[str, Any]:
        file_id = f"{kind}-{next(_file_ids)}"
        self.bot.files[file_id] = SentFile(f"{kind}s/{file_id} of people", content)
        return {"file_id": file_id, "file_unique_id": "u", **told}

    def _membership(self, before: str, after: str) -> int | None:
        return self.bot.updates.add(
            "my_chat_member",
            {
                "chat": self.chat.info,
                "from": self.user,
                "date": 1_780_000_000,
                "old_chat_member": {"user": self.bot.user, "status": before},
                "new_chat_member": {"user": self.bot.user, "status": after},
            },
        )
