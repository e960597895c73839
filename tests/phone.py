"""A messenger that tests play from outside: updates are posted to its hook, calls are lines of a file.

A call takes `delay_s`, half of it before its line stands in the outbox and half after, so that a kill
can come between what the platform did and what we know of it.
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import (
    BotProfile,
    ButtonPressed,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    OutgoingMessage,
    Started,
    Update,
    WebhookCall,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl


class PhoneSettings(Section):
    """`outbox` gets a JSON line for each call."""

    outbox: Path
    delay_s: float = 0.0


class PhoneChannel(Channel):
    """`{"id", "chat_id", "payload"}` opens a link, `{"id", "chat_id", "data", "ref"}` presses a button.

    A chat has one person, of the same id.
    """

    receiving = "webhook"

    def __init__(self, _context: Any, identity: ChannelIdentity, settings: PhoneSettings) -> None:
        super().__init__(identity)
        self._outbox = settings.outbox
        self._delay_s = settings.delay_s

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        ref = uuid.uuid4().hex
        await self._write("send", chat_id, ref, message)
        return ref

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self._write("edit", chat_id, message_ref, message)

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise NotImplementedError("no test of those that use this phone deletes a message")

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """The person's phone does nothing but end its hourglass."""

    async def set_webhook(self, url: str, secret: str) -> None:
        """It calls whatever its player calls."""

    def parse_update(self, call: WebhookCall) -> list[Update]:
        said = json.loads(call.body)
        chat_id = said["chat_id"]
        common: dict[str, Any] = {
            "update_id": said["id"],
            "chat_id": chat_id,
            "user": ChannelUser(chat_id, f"Person {chat_id}", None, "en"),
        }
        if "payload" in said:
            return [Started(**common, payload=said["payload"])]
        ref = said["ref"]
        return [ButtonPressed(**common, data=said["data"], message_ref=ref, button_ref=ref)]

    def deep_link(self, payload: str) -> str:
        return f"https://{self.name}.example/bot?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(True, "in your hand", BotProfile(self.name))

    async def _write(self, call: str, chat_id: str, ref: str, message: OutgoingMessage) -> None:
        buttons = [button.data for row in message.buttons for button in row if button.data]
        line = {"call": call, "chat_id": chat_id, "ref": ref, "text": message.text, "data": buttons}
        await asyncio.sleep(self._delay_s / 2)
        # One short write to a file opened for appending: the kernel has all of it or nothing.
        with self._outbox.open("a") as file:
            file.write(json.dumps(line) + "\n")
        await asyncio.sleep(self._delay_s / 2)


def calls(outbox: Path) -> list[dict[str, Any]]:
    """What the phone was told so far."""
    return [json.loads(line) for line in outbox.read_text().splitlines()] if outbox.exists() else []


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("phone", PhoneSettings, PhoneChannel)]
