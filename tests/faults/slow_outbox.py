"""A messenger for killing: slow, and it keeps what it was told across its process's death.

Half of a call's time passes before the message is in the outbox and half after, so that a kill can
come between what the platform did and what we know of it.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelIdentity, ChannelKind, OutgoingMessage
from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel


class SlowOutboxSettings(Section):
    """`outbox` gets a JSON line for each message; a call takes `delay_s`."""

    outbox: Path
    delay_s: float


class SlowOutboxChannel(SendOnlyChannel):
    """Appends each message to the outbox, slowly."""

    def __init__(
        self, _context: Any, identity: ChannelIdentity, settings: SlowOutboxSettings
    ) -> None:
        super().__init__(identity)
        self._outbox = settings.outbox
        self._delay_s = settings.delay_s

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await asyncio.sleep(self._delay_s / 2)
        # One short write to a file opened for appending: the kernel has all of it or nothing.
        with self._outbox.open("a") as file:
            line = {"chat_id": chat_id, "text": message.text, "at_s": time.time()}
            file.write(json.dumps(line) + "\n")
        await asyncio.sleep(self._delay_s / 2)
        return uuid.uuid4().hex

    def parse_chat_id(self, text: str) -> str:
        if not text.isdecimal():
            raise InvalidValue("must be a number")
        return text


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("slow_outbox", SlowOutboxSettings, SlowOutboxChannel)]
