"""Users of the bot: their actions, and what they see."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgsvc_devkit.platforms.matrix.html import read_html
from msgsvc_devkit.platforms.matrix.rooms import Event, MatrixRoom

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.matrix.homeserver import FakeMatrix

#: Types of messages with a file.
Kind = Literal["m.image", "m.video", "m.audio", "m.file", "m.sticker"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as the user sees it: `text` is without markup, `tags` are its HTML's."""

    event_id: str
    text: str
    msgtype: str
    tags: tuple[str, ...] = ()
    url: str | None = None
    edited: bool = False


class Person:
    """A user of the homeserver, or of another. Actions have taken effect when the call returns."""

    def __init__(self, homeserver: "FakeMatrix", user_id: str, name: str) -> None:
        self._homeserver = homeserver
        self.user_id = user_id
        self.name = name
        self._room: MatrixRoom | None = None

    @property
    def room(self) -> MatrixRoom:
        """The chat with the bot that they opened last. Raises LookupError before."""
        if self._room is None:
            raise LookupError(f"{self.name} has no chat with the bot")
        return self._room

    @property
    def chat_id(self) -> str:
        return self.room.room_id

    @property
    def messages(self) -> list[Shown]:
        """The bot's messages in that chat except redacted ones, oldest first.

        An edit whose message is gone is shown as a message, as by clients that know no edits.
        """
        room, bot = self.room, self._homeserver.bot_id
        shown = []
        for event in room.events:
            if event.kind != "m.room.message" or event.sender != bot or event.redacted_by:
                continue
            above = event.content.get("m.relates_to", {}).get("event_id")
            original = room.event(above) if above else None
            if original is not None and not original.redacted_by:
                continue
            edits = [] if above else [e for e in room.edits_of(event) if not e.redacted_by]
            shown.append(_shown(event, edits))
        return shown

    async def open(self, link: str) -> None:
        """Follows a link to the bot, and opens a chat. Raises ValueError for any other link."""
        if link != f"https://matrix.to/#/{self._homeserver.bot_id}":
            raise ValueError(f"{link!r} does not lead to {self._homeserver.bot_id}")
        await self.start()

    async def start(self, *, direct: bool = True, encrypted: bool = False, first: str = "") -> None:
        """Opens a chat with the bot, with `first` as the first message."""
        homeserver = self._homeserver
        self._room = homeserver.new_room(self, direct=direct)
        if encrypted:
            algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
            homeserver.add(self.room, "m.room.encryption", self.user_id, algorithm, state_key="")
        homeserver.invite(self.room, self.user_id)
        if first:
            await self.write(first)
        homeserver.auto_join(self.room)

    async def upgrade(self, *, invites: bool = True, closed: bool = False) -> MatrixRoom:
        """Upgrades the chat to a new version of rooms, as clients do; the old room is returned.

        A client invites the members of the old room, without `is_direct`. With `closed` the bot may no
        longer write in the old room.
        """
        old = self.room
        self._room = self._homeserver.upgrade(old, self, closed=closed)
        if invites:
            await self.invite()
        return old

    async def invite(self) -> None:
        """Invites the bot into the chat."""
        self._homeserver.invite(self.room, self.user_id)

    async def write(self, text: str, msgtype: str = "m.text") -> str:
        """Sends a text to the bot; the event's id."""
        return self._message({"msgtype": msgtype, "body": text})

    async def reply(self, event_id: str, text: str) -> str:
        """Replies to a message of the bot."""
        relates = {"m.in_reply_to": {"event_id": event_id}}
        return self._message({"msgtype": "m.text", "body": text, "m.relates_to": relates})

    async def edit(self, text: str, event_id: str | None = None) -> str:
        """Edits the text of their last message, or of another."""
        return self._message(
            {
                "msgtype": "m.text",
                "body": f"* {text}",
                "m.new_content": {"msgtype": "m.text", "body": text},
                "m.relates_to": {"rel_type": "m.replace", "event_id": event_id or self._last()},
            }
        )

    async def redact(self, event_id: str | None = None) -> None:
        """Takes back their last message, or another."""
        self._homeserver.redact(self.room, event_id or self._last(), self.user_id)

    async def send_file(
        self, kind: Kind, content: bytes, filename: str, text: str = "", mime_type: str = ""
    ) -> str:
        """Sends a file, with or without a caption."""
        uri = self._homeserver.keep_file(content, mime_type or "application/octet-stream", filename)
        info = {"size": len(content), **({"mimetype": mime_type} if mime_type else {})}
        said = {"body": text, "filename": filename} if text else {"body": filename}
        if kind == "m.sticker":
            return self._homeserver.add(
                self.room, kind, self.user_id, {"body": filename, "url": uri, "info": info}
            ).event_id
        return self._message({"msgtype": kind, "url": uri, "info": info, **said})

    async def read(
        self, event_id: str | None = None, *, kind: str = "m.read", thread_id: str | None = None
    ) -> None:
        """Has read everything up to an event, or up to the last one."""
        up_to = event_id or self.room.events[-1].event_id
        self._homeserver.receipt(self.room, kind, self.user_id, up_to, thread_id)

    async def leave(self) -> None:
        """Leaves the chat."""
        self._homeserver.member(self.room, self.user_id, "leave", self.user_id)

    async def rejoin(self) -> None:
        """Comes back into a chat that lets them."""
        self._homeserver.member(self.room, self.user_id, "join", self.user_id)

    async def kick(self) -> None:
        """Removes the bot from the chat."""
        self._homeserver.member(self.room, self._homeserver.bot_id, "leave", self.user_id)

    async def ban(self) -> None:
        """Removes the bot for good."""
        self._homeserver.member(self.room, self._homeserver.bot_id, "ban", self.user_id)

    async def encrypt(self) -> None:
        """Turns encryption on, which can't be turned off again."""
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
        self._homeserver.add(self.room, "m.room.encryption", self.user_id, algorithm, state_key="")

    async def bring(self, other: "Person") -> None:
        """Has another user join the chat."""
        self._homeserver.member(self.room, other.user_id, "join", other.user_id)
        other._room = self.room

    def _message(self, content: dict[str, Any]) -> str:
        return self._homeserver.add(self.room, "m.room.message", self.user_id, content).event_id

    def _last(self) -> str:
        mine = [
            event.event_id
            for event in self.room.events
            if event.sender == self.user_id
            and event.kind == "m.room.message"
            and "m.new_content" not in event.content
        ]
        return mine[-1]


def _shown(event: Event, edits: list[Event]) -> Shown:
    content = edits[-1].content["m.new_content"] if edits else event.content
    text: str = content["body"]
    tags: tuple[str, ...] = ()
    if "formatted_body" in content:
        text, tags = read_html(content["formatted_body"])
    elif content.get("filename") == text:
        # The name of a file without a caption.
        text = ""
    return Shown(
        event.event_id, text, content["msgtype"], tags, content.get("url"), edited=bool(edits)
    )
