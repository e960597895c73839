"""Users of WhatsApp: their actions, and what they see."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.whatsapp.platform import FakeWhatsApp

#: Seconds in which a business may write freely after a user's message (Cloud API: "Customer service
#: windows").
WINDOW_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class ShownButton:
    """A button: `url` opens a page, all others send their `id`. `about` is the description of a list's
    row."""

    label: str
    id: str | None = None
    url: str | None = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the business as the user sees it: `text` is without markup, which is in `looks` as
    (look, text)."""

    ref: str
    kind: str
    text: str
    looks: tuple[tuple[str, str], ...] = ()
    buttons: tuple[ShownButton, ...] = ()
    #: `image`, `video` or `document`; None without a file.
    media: str | None = None
    filename: str | None = None
    previews_url: bool = False
    #: The name of the template that it was sent by.
    template: str | None = None


class Person:
    """A user of WhatsApp, who has not written yet. Actions have taken effect when the call returns."""

    def __init__(
        self,
        platform: "FakeWhatsApp",
        name: str,
        *,
        user_id: str,
        number: str,
        username: str | None,
    ) -> None:
        self._platform = platform
        self.name = name
        self.user_id = user_id
        self.number = number
        self.username = username
        #: Whether the platform tells businesses the number; it does not for users with a username whom the
        #: business does not know.
        self.shows_number = True
        self.opted_out = False
        self.has_blocked = False
        #: When they wrote last, by the platform's clock.
        self.wrote_at_s: float | None = None
        self.messages: list[Shown] = []
        self._refs: list[str] = []

    @property
    def window_is_open(self) -> bool:
        return self.wrote_at_s is not None and self._platform.now_s() - self.wrote_at_s < WINDOW_S

    async def open(self, link: str) -> None:
        """Opens a link to the chat, and sends the text that it has written. Raises ValueError for any other
        link."""
        parts = urlsplit(link)
        number = parts.path.removeprefix("/")
        texts = parse_qs(parts.query, strict_parsing=True).get("text", [])
        if (parts.scheme, parts.netloc, number) != ("https", "wa.me", self._platform.number) or len(
            texts
        ) != 1:
            raise ValueError(f"{link!r} does not lead to {self._platform.number} with a text")
        await self.write(texts[0])

    async def start(self, payload: str = "") -> None:
        """Writes what a link would have written."""
        await self.write(f"start {payload}".strip())

    async def write(self, text: str, **fields: Any) -> str:
        """Sends a text to the business; returns the id of the message."""
        return self._tell("text", {"body": text}, **fields)

    async def reply(self, ref: str, text: str) -> None:
        """Replies to a message of the business."""
        await self.write(text, context=self._context(ref))

    async def send_file(
        self, kind: str, content: bytes, mime_type: str, filename: str = "", caption: str = ""
    ) -> None:
        """Sends an `image`, a `video`, a `document`, an `audio` or a `sticker`."""
        media_id = self._platform.files.store(content, filename, mime_type)
        file = self._platform.files.by_id[media_id]
        fields = {"id": media_id, "mime_type": mime_type, "sha256": file.sha256}
        if kind == "document":
            fields["filename"] = filename
        if caption:
            fields["caption"] = caption
        self._tell(kind, fields)

    async def edit(self, text: str) -> None:
        """Edits their last message, a text."""
        content = {"type": "text", "text": {"body": text}}
        original = self._refs[-1]
        self._tell("edit", {"original_message_id": original, "message": content})
        self._refs.append(original)

    async def press(self, label: str, ref: str | None = None) -> str:
        """Presses the latest button with that label, description or id; returns the id of the message that
        this sends.

        Raises LookupError if there is none.
        """
        for message in reversed(self.messages):
            for button in message.buttons:
                known = {button.label, button.about, button.id}
                if label in known and ref in {None, message.ref} and button.id is not None:
                    return self._press(message, button)
        raise LookupError(f"no button {label!r} in {self.messages}")

    async def read(self, ref: str | None = None) -> None:
        """Reads a message of the business, the latest one by default; the platform tells it."""
        self._platform.tell_status(self, ref or self.messages[-1].ref, "read")

    async def opt_out(self) -> None:
        """Stops marketing messages of this business."""
        self.opted_out = True
        self._platform.tell_preference(self, "stop")

    async def opt_in(self) -> None:
        """Resumes marketing messages of this business."""
        self.opted_out = False
        self._platform.tell_preference(self, "resume")

    async def block(self) -> None:
        """Blocks the business, which is told to nobody: messages are accepted, and not delivered."""
        self.has_blocked = True

    async def change_number(self, number: str) -> None:
        """Moves to another phone number, which changes the business-scoped user id too."""
        before = self.user_id
        self.number, self.user_id = number, self._platform.new_user_id()
        self._platform.tell_change(self, before)

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
            labels = {one for each in message.buttons for one in (each.label, each.about)}
            if (text is None or text in message.text) and (button is None or button in labels):
                return message
        return None

    def _press(self, message: Shown, button: ShownButton) -> str:
        kind = "list_reply" if message.kind == "list" else "button_reply"
        reply = {"id": button.id, "title": button.label}
        if button.about:
            reply["description"] = button.about
        return self._tell(
            "interactive", {"type": kind, kind: reply}, context=self._context(message.ref)
        )

    def _context(self, ref: str) -> dict[str, str]:
        return {"from": self._platform.number, "id": ref}

    def _tell(self, kind: str, content: dict[str, Any], **fields: Any) -> str:
        ref = self._platform.receive(self, kind, content, **fields)
        self._refs.append(ref)
        return ref


def buttons_of(action: dict[str, Any]) -> Sequence[ShownButton]:
    """The buttons of an interactive message's action."""
    if action.get("name") == "cta_url":
        fields = action["parameters"]
        return [ShownButton(fields["display_text"], url=fields["url"])]
    replies = [one["reply"] for one in action.get("buttons", [])]
    rows = [row for section in action.get("sections", []) for row in section["rows"]]
    return [
        ShownButton(one["title"], one["id"], about=one.get("description", ""))
        for one in (*replies, *rows)
    ]


def number_of(text: str) -> str:
    """The digits of a phone number."""
    return re.sub(r"\D", "", text)
