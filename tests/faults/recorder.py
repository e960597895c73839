"""A messenger in process that notes every call by its own clock, and refuses as it is told to."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.channels import (
    Channel,
    ChannelIdentity,
    ChannelKind,
    ChannelUser,
    DeliveryError,
    OutgoingMessage,
    Pace,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.db import WriteBatch
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.channel import SendOnlyChannel

#: Seconds that a call takes.
CALL_S = 0.004


@dataclass(slots=True)
class Call:
    """A call as the platform saw it: when it came and was answered, in seconds, and the refusal."""

    chat_id: str
    text: str
    came_s: float
    answered_s: float = 0.0
    refusal: DeliveryError | None = None


#: Says how the platform answers; None is a yes.
Answer = Callable[[Call], DeliveryError | None]


def yes(_call: Call) -> None:
    return None


@dataclass(slots=True)
class Recorder:
    """A plugin that brings the messenger `recorder`, and its log."""

    pace: Pace
    answer: Answer = yes
    calls: list[Call] = field(default_factory=list)

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
            return RecordedChannel(identity, self)

        return [ChannelKind("recorder", Section, create)]

    def taken(self) -> list[Call]:
        """The calls that were answered with a yes."""
        return [call for call in self.calls if call.refusal is None and call.answered_s]

    def most_in(self, window_s: float, chat_id: str | None = None) -> int:
        """The most calls that came within any time of that length."""
        return most_in(
            [call.came_s for call in self.calls if chat_id is None or call.chat_id == chat_id],
            window_s,
        )


def most_in(times_s: Sequence[float], window_s: float) -> int:
    """The most of `times_s` that lie within any time of that length."""
    ordered = sorted(times_s)
    return max(
        (bisect_left(ordered, time_s + window_s) - number for number, time_s in enumerate(ordered)),
        default=0,
    )


class RecordedChannel(SendOnlyChannel):
    def __init__(self, identity: ChannelIdentity, recorder: Recorder) -> None:
        super().__init__(identity)
        self.pace = recorder.pace
        self._recorder = recorder

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        call = Call(chat_id, message.text, time.monotonic())
        self._recorder.calls.append(call)
        await asyncio.sleep(CALL_S)
        call.refusal = self._recorder.answer(call)
        call.answered_s = time.monotonic()
        if call.refusal is not None:
            raise call.refusal
        return f"m{len(self._recorder.calls)}"


async def subscribed(service: Service, project_id: str, people: int) -> list[str]:
    """The ids of so many new subscribers; the n-th is in the chat `chat-<n>`."""
    async with service.db.transaction() as tx:
        return [
            (
                await service.subscribers.ensure(
                    tx,
                    project_id,
                    "messenger_a",
                    ChannelUser(f"user-{number}", f"P{number}", None, "en"),
                    f"chat-{number}",
                    source="api",
                )
            ).subscriber_id
            for number in range(people)
        ]


async def queue(service: Service, project_id: str, people: Sequence[str], count: int) -> None:
    """Queues `count` messages, to each of `people` in turn: the n-th says `<n>`."""
    unit = WriteBatch()
    for number in range(count):
        body = SendBody(subscriber_id=people[number % len(people)], text=str(number))
        await service.messages.add(unit, project_id, body)
    await service.db.write(unit)
