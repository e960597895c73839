"""A messenger for killing who receives: its updates are lines of a file, its polls are written down.

What came is noted in a table without any constraint, so that an effect that happened twice shows.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import (
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    InboundContext,
    InboundRule,
    OutgoingMessage,
    Polled,
    Started,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel

TABLE = "CREATE TABLE mailroom_effects (payload TEXT)"

#: Updates in an answer to a poll, and seconds that a poll waits for the first.
MOST, WAIT_S = 20, 0.2

#: Seconds that an effect takes, so that a kill comes in the middle of many.
EFFECT_S = 0.01


class MailroomSettings(Section):
    """`folder` holds `arrivals`, a payload a line, and `polls.jsonl`."""

    folder: Path


class MailroomChannel(SendOnlyChannel):
    """The cursor is the number of lines taken."""

    receiving = "poll"

    def __init__(
        self, _context: Any, identity: ChannelIdentity, settings: MailroomSettings
    ) -> None:
        super().__init__(identity)
        self._folder = settings.folder

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return "1"

    async def poll_updates(self, cursor: str | None) -> Polled:
        taken = int(cursor or 0)
        poll = {"pid": os.getpid(), "cursor": taken, "at": time.monotonic()}
        # One short write to a file opened for appending: the kernel has all of it or nothing.
        with (self._folder / "polls.jsonl").open("a") as file:
            file.write(json.dumps(poll) + "\n")
        lines = self._new_lines(taken)
        if not lines:
            await asyncio.sleep(WAIT_S)
            lines = self._new_lines(taken)
        updates = [_update(taken + number, line) for number, line in enumerate(lines)]
        return Polled(tuple(updates), str(taken + len(lines)))

    def _new_lines(self, taken: int) -> list[str]:
        lines = (self._folder / "arrivals").read_text().split("\n")
        # The last has no end yet, or is empty.
        return lines[:-1][taken : taken + MOST]


def _update(number: int, payload: str) -> Started:
    user = ChannelUser(f"user-{number}", "Ann")
    return Started(update_id=f"u{number}", chat_id=f"chat-{number}", user=user, payload=payload)


async def note(ctx: InboundContext) -> None:
    assert isinstance(ctx.update, Started)
    await asyncio.sleep(EFFECT_S)
    await ctx.tx.insert("mailroom_effects", {"payload": ctx.update.payload})


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("mailroom", MailroomSettings, MailroomChannel)]


@hookimpl
def register_inbound() -> Sequence[InboundRule]:
    return [InboundRule("start", note, prefix="mail_")]
