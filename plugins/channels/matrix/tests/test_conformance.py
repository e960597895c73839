"""The channel keeps the core's contract."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal

import pytest

from msgsvc_core.channels import ChannelUser, MediaType, Reason
from msgsvc_devkit import ChannelContract, Fault, Messenger, PluginContract, Shown, cannot
from msgsvc_devkit.conformance.mischief import NOISE, OVERSIZED, Mischief, Trick
from msgsvc_devkit.platforms.matrix import Break, FakeMatrix, Refused
from msgsvc_devkit.platforms.matrix.people import Kind
from msgsvc_matrix import plugin

#: The refusals in the homeserver's words.
REFUSALS = {
    Reason.CHAT_NOT_FOUND: (403, "M_FORBIDDEN", "User not in room"),
    Reason.BOT_BANNED: (401, "M_UNKNOWN_TOKEN", "Invalid access token passed."),
    Reason.INVALID_MESSAGE: (400, "M_BAD_JSON", "body: must be a text"),
    Reason.RATE_LIMITED: (429, "M_LIMIT_EXCEEDED", "Too Many Requests"),
    Reason.PLATFORM_UNAVAILABLE: (502, "M_UNKNOWN", "Bad Gateway"),
    Reason.UNKNOWN: (403, "M_EXCLUSIVE", "Reserved by an application service"),
}

#: The homeserver's files, in our words.
MEDIA: dict[str, MediaType] = {"m.image": "image", "m.video": "video", "m.file": "document"}

FILES: dict[MediaType, Kind] = {"image": "m.image", "video": "m.video", "document": "m.file"}


class MatrixMessenger(Messenger):
    """Ann, on the fake homeserver."""

    tricks = frozenset({"malformed", "oversized"})

    def __init__(self, homeserver: FakeMatrix) -> None:
        self._homeserver = homeserver
        self._ann = homeserver.person("Ann")
        self.settings = homeserver.settings
        self.user = ChannelUser(self._ann.user_id, "Ann", self._ann.user_id[1:])
        self.chat_id = "!not-opened-yet:fake.example"

    async def follow(self, link: str) -> None:
        await self._ann.open(link)
        self.chat_id = self._ann.chat_id

    async def start(self, payload: str = "") -> None:
        # No link holds it: the user types what the service shows them.
        await self._ann.start()
        self.chat_id = self._ann.chat_id

    async def write(self, text: str) -> None:
        await self._ann.write(text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        await self._ann.send_file(FILES[media_type], content, filename, text)

    async def edit_text(self, text: str) -> None:
        await self._ann.edit(text)

    async def reply(self, ref: str, text: str) -> None:
        await self._ann.reply(ref, text)

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        if state == "read":
            await self._ann.read(ref)
        elif state == "accepted":
            # As of a later version of the specification.
            await self._ann.read(ref, kind="m.seen")
        else:
            cannot("a homeserver tells only what was read")

    async def press(self, ref: str, data: str) -> None:
        cannot("there are no buttons to press")

    async def block(self) -> None:
        await self._ann.ban()

    async def unblock(self) -> None:
        cannot("who wants a bot back that they removed starts another chat with it")

    async def leave(self) -> None:
        await self._ann.leave()

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                message.event_id,
                message.text,
                media_type=MEDIA.get(message.msgtype),
                silent=message.msgtype == "m.notice",
            )
            for message in self._ann.messages
        ]

    async def notices(self) -> Sequence[str]:
        return []

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        if reason is Reason.USER_BLOCKED_BOT:
            await self._ann.ban()
        else:
            self._homeserver.faults.fail_next(Refused(*REFUSALS[reason], retry_after_s))

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            done: dict[Fault, Break] = {
                "504": "gateway",
                "reset": "lost",
                "garbage": "garbage",
                "hang": "hang",
            }
            self._homeserver.faults.break_next(done[fault])

    async def kill(self) -> None:
        await self._homeserver.kill()

    async def restart(self) -> None:
        await self._homeserver.restart()

    async def revoke(self) -> None:
        self._homeserver.revoked = True

    async def misbehave(self, trick: Trick, mischief: Mischief) -> None:
        text = NOISE * (OVERSIZED // len(NOISE)) if trick == "oversized" else NOISE
        content = {"msgtype": "m.text", "body": text, "m.relates_to": {"m.in_reply_to": {}}}
        spoilt = mischief.spoilt(content) if trick == "malformed" else content
        self._homeserver.add(self._ann.room, "m.room.message", self._ann.user_id, spoilt)

    async def puzzle(self) -> None:
        room, ann = self._ann.room, self._ann.user_id
        self._homeserver.add(room, "m.room.message", ann, {"msgtype": "m.moon"})
        self._homeserver.add(room, "m.room.message", ann, {"msgtype": "m.text", "body": 7})


class TestMatrix(ChannelContract):
    plugin = plugin
    kind = "matrix"

    @pytest.fixture
    async def messenger(self) -> AsyncIterator[Messenger]:
        async with FakeMatrix() as homeserver:
            yield MatrixMessenger(homeserver)


class TestMatrixPlugin(PluginContract):
    """The rules for every plugin."""

    plugin = plugin
    name = "matrix"
