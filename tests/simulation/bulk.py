"""Simulates long backlogs: what repeats exactly is skipped, all else is stepped: see README.md, "In bulk".

Of each bot the lane, its gate and the handler of system messages are the product's own, in an event loop of
their own; the lane claims from a queue in memory. While only the backlog flows, their state soon repeats: the
same windows, timers, limits and batches, relative to the time. Then whole periods are skipped, up to the next
event, by leaving the bot's time as it is and counting what the periods would have sent.
"""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import process_time
from types import SimpleNamespace
from typing import Any, Literal, cast

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.lanes import LANE, lane_of
from msgsvc_core.channels.outbound.gate import BATCH, BATCHES
from msgsvc_core.channels.system_messages.calls import BotCalls
from msgsvc_core.channels.system_messages.outbox import JOB
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.jobs.claims import Lease
from msgsvc_core.jobs.contract import NORMAL, URGENT, Gate, Job, LaneSpec
from msgsvc_core.jobs.lane import Lane
from msgsvc_core.jobs.lease_clock import LeaseClock
from tests.simulation import invariants
from tests.simulation.cluster import LEASE_S
from tests.simulation.memory_lane import (
    MemoryContext,
    MemoryQueue,
    NoDatabase,
    gates_in_memory,
)
from tests.simulation.platform import NO_FAULTS, PACE, Call, Platform, SimulatedChannel
from tests.simulation.repetition import Period, Repetition
from tests.simulation.stepped import TAKEOVER_S, quiet_logs
from tests.simulation.virtual_time import ProcessClock, VirtualLoop, VirtualTime, virtual_time

#: Seconds that each call takes to the platform and back: the same for all, or nothing would repeat.
TRIP_S = 0.03

#: Seconds without a message after which a run is given up, when there are messages.
PATIENCE_S = 120.0

EventKind = Literal["question", "row", "refusal", "failure", "lost", "death", "clock"]

#: Of a thousand events, how many are of each kind.
EVENTS: dict[EventKind, int] = {
    "question": 800,
    "row": 120,
    "refusal": 30,
    "failure": 25,
    "lost": 10,
    "death": 10,
    "clock": 5,
}

#: Messages of a row: to one chat, to be shown in their order.
ROW = 3

MESSAGE = OutgoingMessage("Hello")


@dataclass(frozen=True, slots=True)
class Options:
    """`events` is the number of events of all bots together; `skips` is False to step every message."""

    seed: int
    messages: int
    bots: int = 40
    events: int = 8000
    skips: bool = True
    check_questions_s: float = invariants.QUESTION_S


@dataclass(slots=True)
class Figures:
    options: Options
    messages: int = 0
    stepped: int = 0
    took_s: float = 0.0
    virtual_s: float = 0.0
    #: By bot: messages in relation to what the pace allows.
    used: dict[str, float] = field(default_factory=dict)
    question_waits_s: list[float] = field(default_factory=list)
    #: The same without those that a fault delayed.
    undisturbed_waits_s: list[float] = field(default_factory=list)
    backlog_waits_s: list[float] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    rows_in_order: int = 0
    takeovers_s: list[float] = field(default_factory=list)
    repeated_in_doubt: int = 0


def run(options: Options, *, progress: Callable[[int], None] = lambda _messages: None) -> Figures:
    """Simulates the bots one after another. Raises `invariants.Violated`."""
    figures, began_s = Figures(options), process_time()
    left = options.messages
    for number in range(options.bots):
        messages = left // (options.bots - number)
        left -= messages
        events = options.events // options.bots
        with quiet_logs() as errors, virtual_time(options.seed * 1000 + number) as virtual:
            bot = BotRun(options, f"bot{number:02}", messages, events, virtual, figures)
            try:
                bot.run(lambda done, before=figures.messages: progress(before + done))
            finally:
                bot.close()
        invariants.check(options.seed, [f"logged {error!r}" for error in errors])
    figures.took_s = process_time() - began_s
    return figures


class Script:
    """The platform of one bot, which does at its next call what the next event says."""

    def __init__(self, virtual: VirtualTime, bot: str) -> None:
        self.platform = Platform(
            virtual, random.Random(bot), NO_FAULTS, trip_s=(TRIP_S, TRIP_S), tracks=_is_of_event
        )
        self.platform.add_bot(bot)
        self.side = self.platform.bots[bot]


class BotRun:
    """One bot: its backlog, its events, and the processes that own its lane one after another."""

    def __init__(
        self,
        options: Options,
        bot: str,
        messages: int,
        events: int,
        virtual: VirtualTime,
        figures: Figures,
    ) -> None:
        self._options = options
        self._bot = bot
        self._virtual = virtual
        self._figures = figures
        self._rng = random.Random(f"{options.seed} {bot}")
        self._messages = messages
        self._script = Script(virtual, bot)
        self._platform = self._script.platform
        self._platform.on_arrived = self._arrived
        self._clock = ProcessClock(virtual)
        per_s = PACE.per_bot_s
        assert per_s is not None
        self._per_s = per_s
        #: Seconds of the periods that were skipped: the true time is the loop's and these.
        self._skipped_s = 0.0
        self._skipped = 0
        self._deaths = 0
        self._took_over_from_s: float | None = None
        self._loops: list[VirtualLoop] = []
        spread_s = messages / per_s
        kinds = list(EVENTS)
        weights = list(EVENTS.values())
        self._events = sorted(
            (self._rng.uniform(0.01, 0.98) * spread_s, self._rng.choices(kinds, weights)[0])
            for _ in range(events)
        )
        self._next_event = 0
        rows = sum(kind == "row" for _, kind in self._events)
        questions = sum(kind == "question" for _, kind in self._events)
        self._queue = MemoryQueue(
            bot, max(0, messages - rows * ROW - questions), self._clock.now_ms
        )
        self._queue.on_claim = self._look
        #: Of each message of an event, when it was asked for, by its text.
        self._asked_s: dict[str, float] = {}
        self._is_question: set[str] = set()
        self._repetition = Repetition(virtual, self._queue)
        #: Whether the loops are to stop between two moments, and the period that was found then.
        self._pause = False
        self._period: Period | None = None
        self._rows: list[list[str]] = []
        #: Questions that waited too long.
        self._late: list[str] = []
        self._order: dict[str, list[float]] = {}
        self._start_process()

    # ---- the run --------------------------------------------------------------------------------

    def run(self, progress: Callable[[int], None]) -> None:
        virtual, ticks = self._virtual, 0
        completed, moved_s = 0, 0.0
        while not self._queue.is_empty or self._next_event < len(self._events):
            self._begin_due_events()
            until_s = self._event_s()
            until = virtual.now_s + 2.0 if until_s is None else min(until_s, virtual.now_s + 2.0)
            self._pause = False
            with suppress(TimeoutError):
                virtual.run(lambda: self._pause or self._queue.is_empty, most_s=until)
            if self._queue.is_empty and until_s is not None:
                # Nothing to do until then.
                virtual.now_s = max(virtual.now_s, until_s)
            invariants.check(self._options.seed, [*self._platform.breaches, *self._late])
            if self._queue.completed > completed or self._queue.is_empty:
                completed, moved_s = self._queue.completed, virtual.now_s
            elif virtual.now_s - moved_s > PATIENCE_S:
                stuck = f"{self._bot} has sent nothing for {PATIENCE_S:.0f} s"
                invariants.check(self._options.seed, [stuck])
            if self._pause:
                self._skip()
            ticks += 1
            if ticks % 16 == 0:
                progress(self._queue.completed)
        self._finish()
        progress(self._queue.completed)

    def close(self) -> None:
        for loop in self._loops:
            if loop in self._virtual.loops:
                loop.kill()
            loop.bury()

    @property
    def _true_s(self) -> float:
        return self._virtual.now_s + self._skipped_s

    def _event_s(self) -> float | None:
        """When the next event is, in the loop's time."""
        if self._next_event >= len(self._events):
            return None
        return max(self._virtual.now_s, self._events[self._next_event][0] - self._skipped_s)

    def _begin_due_events(self) -> None:
        while (event_s := self._event_s()) is not None and event_s <= self._virtual.now_s + 1e-9:
            kind = self._events[self._next_event][1]
            self._next_event += 1
            self._repetition.restart()
            self._figures.events[kind] += 1
            getattr(self, f"_begin_{kind}")()

    # ---- events ---------------------------------------------------------------------------------

    def _begin_question(self) -> None:
        text = f"Sign in? {self._next_event}"
        self._is_question.add(text)
        self._enqueue(URGENT, f"login-{self._next_event}", text)

    def _begin_row(self) -> None:
        chat_id = f"row-{self._next_event}"
        row = [f"{chat_id}-{number}" for number in range(ROW)]
        self._rows.append(row)
        for text in row:
            self._enqueue(NORMAL, chat_id, text)

    def _begin_refusal(self) -> None:
        self._platform.next_outcome = "refused"

    def _begin_failure(self) -> None:
        self._platform.next_outcome = "failed"

    def _begin_lost(self) -> None:
        self._platform.next_outcome = "lost"

    def _begin_death(self) -> None:
        """The owner dies; another process takes over when the lease has ended."""
        virtual = self._virtual
        now_s = virtual.now_s
        self._loop.kill()
        self._deaths += 1
        died_s = now_s
        wait_s = self._rng.uniform(LEASE_S * 2 / 3, LEASE_S) + LEASE_S / 3 * self._rng.random()

        def take_over() -> None:
            self._queue.expire()
            self._start_process()
            self._took_over_from_s = died_s

        self._platform.disturb(self._bot, now_s, now_s + TAKEOVER_S)
        virtual.at(now_s + wait_s, take_over)

    def _begin_clock(self) -> None:
        step_s = self._rng.choice((-7.0, 7.0))
        self._virtual.set_clock(step_s)
        now_s = self._virtual.now_s
        self._platform.disturb(self._bot, now_s, now_s + abs(step_s) + 1)

    def _enqueue(self, priority: int, chat_id: str, text: str) -> None:
        self._asked_s[text] = self._virtual.now_s
        self._queue.add(priority, chat_id, text)
        self._wake()

    # ---- the process ----------------------------------------------------------------------------

    def _start_process(self) -> None:
        """A process that owns the lane, with nothing but the queue's jobs."""
        loop = self._loop = VirtualLoop(self._virtual)
        self._loops.append(loop)
        self._repetition.restart()
        self._took_over_from_s = None
        name = f"process-{self._deaths}"
        identity = ChannelIdentity(self._bot, self._bot)
        channel = SimulatedChannel(identity, self._platform, name)
        gates = self._gates = gates_in_memory(self._clock, channel)
        gate = self._gate = gates[self._bot]
        calls = BotCalls(
            clock=self._clock,
            jobs=cast("Any", None),
            outbox=cast("Any", SimpleNamespace(unseal=_unsealed)),
            gates=gates,
            sender=cast("Any", SimpleNamespace(send=_send)),
        )
        context = MemoryContext(self._queue)

        async def handle(jobs: Sequence[Job], _gate: Gate | None) -> None:
            await calls.run(cast("Any", context), jobs)

        lease_ms = round(LEASE_S * 1000)
        self._lane = Lane(
            lane_of(self._bot),
            LaneSpec(LANE, concurrency=BATCHES, batch=BATCH),
            [JOB],
            db=cast("Any", NoDatabase()),
            clock=self._clock,
            lease=Lease(name, lease_ms, LeaseClock(self._clock, lease_ms)),
            claims=cast("Any", self._queue),
            run=handle,
            pass_on=None,
            gate=gate,
        )
        self._woken = asyncio.Event()
        loop.create_task(self._drain(self._lane, self._woken))

    async def _drain(self, lane: Lane, woken: asyncio.Event) -> None:
        """Drains the lane when it is woken or due, as `LaneRunner` does."""
        while True:
            woken.clear()
            next_ms = await lane.drain()
            wait_s = None
            if next_ms is not None:
                wait_s = max(0.0, (next_ms - self._clock.now_ms()) / 1000)
            try:
                async with asyncio.timeout(wait_s):
                    await woken.wait()
            except TimeoutError:
                pass

    def _wake(self) -> None:
        if self._loop in self._virtual.loops:
            self._loop.call_soon(self._woken.set)
            self._loop.call_soon(self._lane.wake)

    def _arrived(self, call: Any) -> None:
        if self._took_over_from_s is not None:
            self._figures.takeovers_s.append(call.sent_s - self._took_over_from_s)
            self._took_over_from_s = None
        if not call.is_shown:
            return
        asked_s = self._asked_s.get(call.text)
        if asked_s is None:
            return
        self._order.setdefault(call.text, []).append(call.came_s)
        if call.text in self._is_question and len(self._order[call.text]) == 1:
            wait_s = call.came_s - asked_s
            disturbed_s = invariants.disturbed_s(self._script.side, asked_s, call.came_s)
            self._figures.question_waits_s.append(wait_s)
            if not disturbed_s and (call.chat_id, call.text) not in self._platform.unshown:
                self._figures.undisturbed_waits_s.append(wait_s)
                if wait_s > self._options.check_questions_s:
                    self._late.append(f"{call.text!r} of {self._bot} waited {wait_s:.2f} s")

    # ---- skipping -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Looks at the state before a claim; asks to pause if it was there before."""
        if self._platform.breaches:
            # Raised where no task is in between.
            self._pause = True
        if not self._options.skips or self._pause:
            return
        self._period = self._repetition.look(self._gate, self._lane, self._loop)
        # Between two moments: the claim that is being made is the first of the next period.
        self._pause = self._period is not None

    def _skip(self) -> None:
        """Skips whole periods, up to the next event and the end of the backlog."""
        period, self._period = self._period, None
        if period is None:
            return
        event_s = self._event_s()
        within_s = math.inf if event_s is None else event_s - self._virtual.now_s
        times = period.times(self._queue.backlog, within_s)
        self._queue.skip(times * period.messages)
        self._skipped += times * period.messages
        self._skipped_s += times * period.seconds
        # Until the next event nothing more can be skipped.
        self._repetition.stop()

    # ---- the end --------------------------------------------------------------------------------

    def _finish(self) -> None:
        figures, queue, seed = self._figures, self._queue, self._options.seed
        found = [f"{self._bot} completed {job_id} twice" for job_id in queue.completed_twice]
        if queue.completed != self._messages_of_events() + self._backlog_in_the_beginning:
            found.append(
                f"{self._bot} completed {queue.completed} of"
                f" {self._messages_of_events() + self._backlog_in_the_beginning}"
            )
        for text in self._asked_s:
            shown = self._order.get(text, [])
            if not shown:
                found.append(f"{self._bot} never showed {text!r}")
        for row in self._rows:
            firsts = [self._order[text][0] for text in row if text in self._order]
            if firsts != sorted(firsts):
                found.append(f"{self._bot} showed {row} in another order")
        invariants.check(seed, found)
        figures.rows_in_order += len(self._rows)
        figures.messages += queue.completed
        figures.stepped += queue.completed - self._skipped
        figures.virtual_s = max(figures.virtual_s, self._true_s)
        figures.used[self._bot] = queue.completed / (self._true_s * self._per_s)
        figures.refusals += self._script.side.refusals
        figures.repeated_in_doubt += sum(len(calls) - 1 for calls in self._platform.shown.values())

    def _messages_of_events(self) -> int:
        return len(self._asked_s)

    @property
    def _backlog_in_the_beginning(self) -> int:
        rows = sum(kind == "row" for _, kind in self._events)
        questions = sum(kind == "question" for _, kind in self._events)
        return max(0, self._messages - rows * ROW - questions)


def _is_of_event(call: Call) -> bool:
    return not call.chat_id.startswith("many-")


def _unsealed(text: str) -> OutgoingMessage:
    return replace(MESSAGE, text=text)


async def _send(channel: SimulatedChannel, chat_id: str, message: OutgoingMessage, **_: Any) -> str:
    return await channel.send(chat_id, message)
