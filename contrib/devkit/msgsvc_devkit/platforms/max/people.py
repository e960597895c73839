"""Users of the bot: their actions, and what they see."""

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgsvc_devkit.platforms.max.dialogs import Dialog, Message, Profile

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.max.platform import FakeMax


#: Types of attachments that are files (schema: UploadType).
Kind = Literal["image", "video", "audio", "file"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as the user sees it: `text` is without markup, `buttons` are the schema's."""

    mid: str
    text: str
    markup: tuple[dict[str, Any], ...]
    buttons: tuple[tuple[dict[str, Any], ...], ...]
    #: `image`, `video` or `file`; None without a file.
    media: str | None
    silent: bool
    edited: bool


class Person:
    """A user of MAX. Actions have taken effect when the call returns."""

    def __init__(self, platform: "FakeMax", dialog: Dialog) -> None:
        self._platform = platform
        self._dialog = dialog

    @property
    def profile(self) -> Profile:
        return self._dialog.person

    @property
    def user_id(self) -> int:
        return self._dialog.person.user_id

    @property
    def chat_id(self) -> int:
        """The dialog's id."""
        return self._dialog.chat_id

    @property
    def messages(self) -> list[Shown]:
        """The bot's messages except deleted ones, oldest first."""
        return [_shown(message) for message in self._dialog.messages if message.sender.is_bot]

    @property
    def notices(self) -> list[str]:
        """The notices that button presses got, in order; an empty text if there was none."""
        return list(self._dialog.notices)

    async def open(self, link: str) -> None:
        """Opens a link of the bot, and presses Start. Raises ValueError for any other link."""
        found = re.fullmatch(r"https://max\.ru/([^/?]+)(?:\?start=([^&]*))?", link)
        if found is None or found[1] != self._platform.bot.username:
            raise ValueError(f"{link!r} does not lead to {self._platform.bot.username}")
        await self.start(found[2] or None)

    async def start(self, payload: str | None = None) -> None:
        """Presses Start; a stopped bot is started again."""
        self._dialog.started, self._dialog.suspended = True, False
        fields = {} if payload is None else {"payload": payload}
        self._platform.tell("bot_started", self._dialog, **fields)

    async def write(self, text: str) -> None:
        """Sends a text to the bot."""
        self._platform.receive(self._dialog, text, [])

    async def send_picture(self) -> None:
        """Sends a picture without a text."""
        picture = {"type": "image", "payload": {"photo_id": 1, "token": "p", "url": "https://i"}}
        self._platform.receive(self._dialog, "", [picture])

    async def send_file(
        self, kind: Kind, content: bytes, filename: str = "", text: str = ""
    ) -> None:
        """Sends a file, with or without a text."""
        platform = self._platform
        sent = platform.files.sent(kind, content, filename, platform.url)
        platform.receive(self._dialog, text, [sent])

    async def reply(self, mid: str, text: str) -> None:
        """Replies to a message of the bot."""
        self._platform.receive(self._dialog, text, [], self._platform.message(mid))

    async def edit(self, text: str) -> None:
        """Edits the text of their last message."""
        mine = [one for one in self._dialog.messages if not one.sender.is_bot]
        self._platform.change(mine[-1], text)

    async def press(self, label: str, mid: str | None = None) -> str:
        """Presses the latest button with that label or payload; returns the press's id.

        Raises LookupError if there is none, or if it is a link.
        """
        for message in reversed(self._dialog.messages):
            for button in (one for row in message.rows for one in row):
                wanted = label in {button["text"], button.get("payload")}
                if wanted and mid in {None, message.mid} and button["type"] == "callback":
                    return self._platform.press(self._dialog, message, button["payload"])
        raise LookupError(f"no button {label!r} in {self.messages}")

    async def block(self) -> None:
        """Stops the bot."""
        self._dialog.suspended = True
        self._platform.tell("bot_stopped", self._dialog)

    async def remove_dialog(self) -> None:
        """Deletes the dialog, which stops the bot too."""
        await self.block()
        self._platform.tell("dialog_removed", self._dialog)

    async def clear_dialog(self) -> None:
        """Deletes the messages on the user's side only."""
        self._dialog.messages.clear()
        self._platform.tell("dialog_cleared", self._dialog)

    async def wait_for(
        self, text: str | None = None, *, button: str | None = None, timeout_s: float = 60.0
    ) -> Shown:
        """The latest message that contains `text` and has a button with that label. Raises TimeoutError."""
        try:
            async with asyncio.timeout(timeout_s):
                while (found := self._newest(text, button)) is None:
                    await self._platform.changed()
                return found
        except TimeoutError:
            raise TimeoutError(f"no {text or button!r} in {self.messages}") from None

    def _newest(self, text: str | None, button: str | None) -> Shown | None:
        for message in reversed(self.messages):
            labels = [one["text"] for row in message.buttons for one in row]
            if (text is None or text in message.text) and (button is None or button in labels):
                return message
        return None


def _shown(message: Message) -> Shown:
    files = [one["type"] for one in message.attachments if one["type"] != "inline_keyboard"]
    return Shown(
        mid=message.mid,
        text=message.shown,
        markup=tuple(message.markup),
        buttons=tuple(tuple(row) for row in message.rows),
        media=files[0] if files else None,
        silent=message.silent,
        edited=message.edited,
    )
