"""Finds out when all of a bot's state was there before, relative to the time: then the future repeats too."""

import math
from typing import Any

from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.jobs.lane import Lane
from msgsvc_core.kernel.values import value_object
from tests.simulation.memory_lane import MemoryQueue
from tests.simulation.virtual_time import VirtualLoop, VirtualTime

#: Seconds to which two states must agree.
EQUAL_S = 1e-6

#: Moments at which the state is looked at after an event before giving up until the next.
LOOKS = 4000

#: Seconds at the end of a backlog that are stepped.
STEPPED_S = 60


@value_object
class Period:
    """What repeats: so many messages in so many seconds."""

    seconds: float
    messages: int

    def times(self, backlog: int, within_s: float) -> int:
        """How often it fits into a time and a backlog, the end of which is stepped."""
        most = max(0, backlog // self.messages - math.ceil(STEPPED_S / self.seconds))
        return most if within_s == math.inf else min(most, int(within_s / self.seconds))


class Repetition:
    """The states of one bot since the last event."""

    def __init__(self, virtual: VirtualTime, queue: MemoryQueue) -> None:
        self._virtual = virtual
        self._queue = queue
        #: When each state was there, and the backlog then.
        self._seen: dict[Any, tuple[float, int]] = {}
        self._looks = 0

    def restart(self) -> None:
        """Something has happened: what was before says nothing of what follows."""
        self._seen.clear()
        self._looks = 0

    def stop(self) -> None:
        """Looks no more until the restart."""
        self._seen.clear()
        self._looks = LOOKS

    def look(self, gate: OutboundGate, lane: Lane, loop: VirtualLoop) -> Period | None:
        """The period, if the present state was there before."""
        if self._looks >= LOOKS:
            return None
        self._looks += 1
        state = self._state(gate, lane, loop)
        if state is None:
            return None
        now_s, backlog = self._virtual.now_s, self._queue.backlog
        before = self._seen.get(state)
        self._seen[state] = now_s, backlog
        if before is None:
            return None
        seconds, messages = now_s - before[0], before[1] - backlog
        if messages <= 0 or seconds <= 0:
            self._seen.clear()
            return None
        return Period(seconds, messages)

    def _state(self, gate: OutboundGate, lane: Lane, loop: VirtualLoop) -> Any:
        """All that the future depends on while only the backlog flows, relative to the time. None if
        something else is going on."""
        now_s = self._virtual.now_s
        pacer = gate._rate_limits._pacer
        waits = any(
            not job.payload["chat_id"].startswith("many-") for job in self._queue.running.values()
        )
        if pacer is None or pacer.bot is None or waits or self._queue._waiting:
            return None
        if gate.order or gate._pauses.has_chats or gate.closed:
            return None
        bot, limit = pacer.bot, gate.concurrency

        def since(at_s: float) -> int:
            return round((at_s - now_s) / EQUAL_S)

        planned = loop._scheduled  # type: ignore[attr-defined]  # of asyncio's own
        timers = sorted(since(t.when()) for t in planned if not t.cancelled())
        under_way = sorted(since(at_s) for at_s, _, _ in self._virtual._events)
        return (
            since(bot._even_s),
            tuple(sorted(map(since, bot._taken.values()))),
            round(bot._road.sure_s / EQUAL_S),
            limit._limit,
            limit._in_flight,
            len(limit._claimed),
            since(limit._since_s),
            limit._answers,
            limit._answers_before,
            len(gate._rate_limits._reserved),
            len(lane._running),
            len(self._queue.running),
            tuple(timers),
            tuple(under_way),
            # The wall clock counts whole milliseconds.
            round(now_s * 1000 % 1, 3) % 1.0,
        )
