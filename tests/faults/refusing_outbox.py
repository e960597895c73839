"""A messenger for killing that refuses 30 % of its users for good, and drops repeats by their key.

It keeps what it was told across its process's death: a message whose call was in progress is sent again, and
shown once. Who is refused depends on the channel and the chat alone.
"""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from msgsvc_core.channels import (
    Capabilities,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel

#: Of a hundred users.
REFUSED = 30


def refuses(channel: str, chat_id: str) -> bool:
    """Whether the channel takes no message for this chat."""
    return crc32(f"{channel} {chat_id}".encode()) % 100 < REFUSED


class RefusingOutboxSettings(Section):
    """`outbox` gets a JSON line for each message; a call takes `delay_s`."""

    outbox: Path
    delay_s: float


class RefusingOutboxChannel(SendOnlyChannel):
    """Appends each message to the outbox, slowly."""

    capabilities = Capabilities(repeatable=True)

    def __init__(
        self, _context: Any, identity: ChannelIdentity, settings: RefusingOutboxSettings
    ) -> None:
        super().__init__(identity)
        self._outbox = settings.outbox
        self._delay_s = settings.delay_s
        self._refs: dict[str, str] | None = None

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        await asyncio.sleep(self._delay_s / 2)
        if refuses(self.name, chat_id):
            raise DeliveryError(Reason.INVALID_MESSAGE, "not taken here")
        ref = self._known.get(message.key)
        if ref is None:
            ref = self._known[message.key] = uuid.uuid4().hex
            # One short write to a file opened for appending: the kernel has all of it or nothing.
            with self._outbox.open("a") as file:
                line = {
                    "channel": self.name,
                    "chat_id": chat_id,
                    "key": message.key,
                    "ref": ref,
                }
                file.write(json.dumps(line) + "\n")
        await asyncio.sleep(self._delay_s / 2)
        return ref

    @property
    def _known(self) -> dict[str, str]:
        """What was shown before, also to earlier processes."""
        if self._refs is None:
            lines = self._outbox.read_text().splitlines() if self._outbox.exists() else []
            found = [line for line in map(json.loads, lines) if line["channel"] == self.name]
            self._refs = {line["key"]: line["ref"] for line in found}
        return self._refs


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("refusing_outbox", RefusingOutboxSettings, RefusingOutboxChannel)]
