"""The conformance kit of channels, on Synapse: what needs no faults of the homeserver."""

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote

import pytest

from msgsvc_core.channels import Channel, ChannelUser, Format, MediaType, Reason
from msgsvc_devkit import Fault, Messenger, ReceivingContract, Shown, cannot
from msgsvc_devkit.conformance.editing import Changing
from msgsvc_devkit.conformance.reports import Reports
from msgsvc_devkit.conformance.sending import Sending
from msgsvc_devkit.platforms.matrix.html import read_html
from msgsvc_matrix import plugin
from tests.synapse.homeserver import Homeserver, User

MSGTYPES = {"image": "m.image", "video": "m.video", "document": "m.file"}
TYPES: dict[str, MediaType] = {"m.image": "image", "m.video": "video", "m.file": "document"}


class SynapseMessenger(Messenger):
    """Ann, on Synapse."""

    def __init__(self, bot: User, ann: User) -> None:
        self._bot = bot
        self._ann = ann
        self._last = ""
        self.settings = {"homeserver_url": bot.homeserver.url, "token": bot.token}
        self.user = ChannelUser(ann.user_id, "Ann", ann.user_id[1:])
        self.chat_id = "!not-opened-yet:matrix.example"

    async def follow(self, link: str) -> None:
        assert link == f"https://matrix.to/#/{self._bot.user_id}"
        await self.start()

    async def start(self, payload: str = "") -> None:
        await self._ann.start(self._bot, trusted=False)
        # As a homeserver does that accepts invitations for bots: a check may not have polled yet.
        self._bot.room_id = self.chat_id = self._ann.room_id
        await self._bot.change_room("join")

    async def write(self, text: str) -> None:
        self._last = await self._ann.write(text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        uri = await self._ann.upload(content, "application/octet-stream", filename)
        fields: dict[str, Any] = {"url": uri, "info": {"size": len(content)}}
        if text:
            fields["filename"] = filename
        self._last = await self._ann.write(text or filename, MSGTYPES[media_type], fields)

    async def edit_text(self, text: str) -> None:
        await self._ann.edit(self._last, text)

    async def reply(self, ref: str, text: str) -> None:
        relates = {"m.in_reply_to": {"event_id": ref}}
        await self._ann.write(text, fields={"m.relates_to": relates})

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        if state not in {"read", "accepted"}:
            cannot("a homeserver tells only what was read")
        # Nobody but Ann learns of the second.
        kind = "m.read" if state == "read" else "m.read.private"
        path = f"rooms/{quote(self._ann.room_id)}/receipt/{kind}/{quote(ref)}"
        await self._ann.call("POST", path, {})

    async def press(self, ref: str, data: str) -> None:
        cannot("there are no buttons to press")

    async def block(self) -> None:
        await self._ann.change_room("kick", {"user_id": self._bot.user_id})

    async def unblock(self) -> None:
        cannot("who wants a bot back that they removed starts another chat with it")

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                said.event_id,
                _text_of(said.content),
                media_type=TYPES.get(said.content["msgtype"]),
                silent=said.content["msgtype"] == "m.notice",
            )
            for said in await self._ann.messages()
        ]

    async def notices(self) -> Sequence[str]:
        return []

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        cannot("a homeserver that runs is not told how to fail")

    async def break_next(self, fault: Fault) -> None:
        cannot("a homeserver that runs is not told how to fail")

    async def kill(self) -> None:
        cannot("the homeserver is that of all tests")

    async def restart(self) -> None:
        cannot("the homeserver is that of all tests")

    async def revoke(self) -> None:
        await self._bot.call("POST", "logout")

    async def puzzle(self) -> None:
        # An edit of nothing, which a homeserver takes.
        await self._ann.write("x", fields={"m.relates_to": {"rel_type": "m.replace"}})


class TestMatrixOnSynapse(Sending, Changing, Reports, ReceivingContract):
    plugin = plugin
    kind = "matrix"

    @pytest.fixture
    async def messenger(self, synapse: Homeserver, bot: User, ann: User) -> Messenger:
        return SynapseMessenger(bot, ann)

    @pytest.mark.parametrize("text_format", ["html"])
    async def test_a_text_shows_the_same_in_every_format_whatever_it_holds(
        self, channel: Channel, messenger: Messenger, chat_id: str, text_format: Format
    ) -> None:
        # The others are as well on the fake, and take a Synapse seconds.
        await super().test_a_text_shows_the_same_in_every_format_whatever_it_holds(
            channel, messenger, chat_id, text_format
        )


def _text_of(content: dict[str, Any]) -> str:
    if "formatted_body" in content:
        return read_html(content["formatted_body"])[0]
    return "" if content.get("filename") == content["body"] else str(content["body"])
