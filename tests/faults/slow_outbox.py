"""A messenger for killing: slow, and it keeps what it was told across its process's death.

Half of a call's time passes before the message is in the outbox and half after, so that a kill can
come between what the platform did and what we know of it.
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import Channel, ChannelHealth, ChannelKind, OutgoingMessage
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.settings import Section


class SlowOutboxSettings(Section):
    """`outbox` gets a JSON line for each message; a call takes `delay_s`."""

    outbox: Path
    delay_s: float


class SlowOutboxChannel(Channel):
    """Appends each message to the outbox, slowly."""

    def __init__(self, _service: Any, name: str, settings: SlowOutboxSettings) -> None:
        super().__init__(name)
        self._outbox = settings.outbox
        self._delay_s = settings.delay_s

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await asyncio.sleep(self._delay_s / 2)
        # One short write to a file opened for appending: the kernel has all of it or nothing.
        with self._outbox.open("a") as file:
            file.write(json.dumps({"chat_id": chat_id, "text": message.text}) + "\n")
        await asyncio.sleep(self._delay_s / 2)
        return uuid.uuid4().hex

    # The fault tests only send; a call of one of these would be a mistake of theirs, and shows here.

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise NotImplementedError

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise NotImplementedError

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        raise NotImplementedError

    def deep_link(self, payload: str) -> str:
        return f"slow:{self.name}?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(ok=True)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("slow_outbox", SlowOutboxSettings, SlowOutboxChannel)]
