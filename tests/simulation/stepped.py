"""Simulates every message singly, through whole services: see README.md, "Singly"."""

import asyncio
import math
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any
from zlib import crc32

import structlog

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import CORE_MIGRATIONS, migrate
from msgsvc_core.kernel.json import from_json
from tests.simulation import invariants
from tests.simulation.cluster import LEASE_S, Cluster
from tests.simulation.invariants import Ended, disturbed_s, jain, quantile
from tests.simulation.platform import PACE, Call, Faults, Platform
from tests.simulation.virtual_time import VirtualTime, virtual_time
from tests.simulation.workload import IN_A_ROW, MAILED, Item, Load, Workload

#: Seconds within which all must have ended, beside the time that the pace takes.
PATIENCE_S = 900.0

#: Seconds from which on the use of a pace is a figure.
LEAST_SPAN_S = 5.0

#: Seconds of its clock by which the machine's is set.
CLOCK_STEPS_S = (-45.0, -7.0, 7.0, 45.0)

#: Seconds that are allowed for a takeover: the lease, a look at the lane, empty buckets, and the rows of
#: messages to one chat that have come meanwhile: they hold the lane's batches for a second each.
TAKEOVER_S = LEASE_S + LEASE_S / 3 + 2.0 + IN_A_ROW

#: Errors that are logged when what the platform or a fault does is not the code's mistake.
EXPECTED_ERRORS = frozenset({"channel_unavailable"})


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    messages: int
    bots: int = 4
    tenants: int = 3
    workers: int = 3
    faults: Faults = field(default_factory=Faults)
    #: How often in the run a worker is killed, the clock set, and a bot's platform away.
    kills: int = 2
    clock_steps: int = 2
    outages: int = 1
    #: How many bots the tenants add meanwhile.
    added_bots: int = 1
    check_questions_s: float = invariants.QUESTION_S


@dataclass(slots=True)
class Figures:
    """What a run showed."""

    options: Options
    virtual_s: float
    took_s: float
    accepted: int
    shown: int
    statuses: Counter[str]
    #: By bot: calls in relation to what the pace allows, over all its time and over the undisturbed.
    used: Mapping[str, float]
    used_undisturbed: Mapping[str, float]
    waits_s: Mapping[str, list[float]]
    #: Of sign-in questions while nothing disturbed their bot.
    undisturbed_waits_s: list[float]
    #: By bot, over the tenants whose mailings shared it.
    fairness: Mapping[str, float]
    refusals: int
    failures: int
    lost_answers: int
    chats_in_order: int
    killed: int
    #: Seconds until the lanes of killed workers went on.
    takeovers_s: list[float]
    clock_steps: int
    bots_added: int
    doubled: int
    unknown: int
    #: Of the whole run: the same for the same seed and options.
    digest: int


@contextmanager
def quiet_logs() -> Iterator[Counter[str]]:
    """Counts the log's errors in place of printing them."""
    errors: Counter[str] = Counter()
    before = structlog.get_config()

    def count(_logger: Any, method: str, event: Any) -> Any:
        if method in {"error", "exception", "critical"}:
            errors[f"{event.get('event')}: {event.get('error', '')}"] += 1
        raise structlog.DropEvent

    structlog.configure(
        processors=[count],
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        cache_logger_on_first_use=False,
    )
    try:
        yield errors
    finally:
        structlog.configure(**before)


def run(
    options: Options,
    *,
    progress: Callable[[int], None] = lambda _shown: None,
    folder: Path | None = None,
) -> Figures:
    """Runs a simulation. Raises `invariants.Violated`."""
    with tempfile.TemporaryDirectory(dir=folder) as made, quiet_logs() as errors:
        path = Path(made) / "simulation.db"
        asyncio.run(migrate(f"sqlite:///{path}", [CORE_MIGRATIONS]))
        with virtual_time(options.seed) as virtual:
            simulation = Simulation(options, virtual, path, errors)
            try:
                return simulation.run(progress)
            finally:
                simulation.cluster.close()


class Simulation:
    """One run."""

    def __init__(
        self, options: Options, virtual: VirtualTime, path: Path, errors: Counter[str]
    ) -> None:
        self._options = options
        self._virtual = virtual
        self._errors = errors
        # Of each part its own, so that a change of one leaves the others as they were.
        rngs = [random.Random(f"{options.seed} {part}") for part in range(5)]
        self._rng, self._rng_of_added = rngs[0], rngs[4]
        self.platform = Platform(virtual, rngs[1], options.faults)
        for number in range(options.bots):
            self.platform.add_bot(f"bot{number:02}")
        #: Those that were there from the start, whose pace mailings use up.
        self._bots = tuple(self.platform.bots)
        self.cluster = Cluster(virtual, self.platform, path, rngs[2])
        per_s = PACE.per_bot_s
        assert per_s is not None
        self._spread_s = options.messages / options.bots / per_s
        load = Load(options.messages, options.bots, options.tenants, self._spread_s)
        self._workload = Workload(load, self.cluster.site.service, virtual, rngs[3])
        self._steps = self._added = 0
        #: Until when something may wait because the clock was set back.
        self._late_until_s = 0.0
        #: Until when all bots are disturbed.
        self._disturbed_until_s = 0.0
        #: When each killed worker died, and the bots whose lanes it owned.
        self._deaths: dict[str, float] = {}
        self._orphans: list[tuple[str, float]] = []
        #: What was marked as being sent by a worker that died: (project, subscriber).
        self._marked: set[tuple[str, str]] = set()
        #: Recipients of jobs during which two workers died: such jobs run alone, and others go first.
        self._suspects: set[tuple[str, str]] = set()

    def run(self, progress: Callable[[int], None]) -> Figures:
        began_s = process_time()
        options, virtual, workload = self._options, self._virtual, self._workload
        self.cluster.start(options.workers)
        bots = sorted(self.platform.bots)
        per_bot = max(1, round(options.messages * MAILED / options.bots / options.tenants))
        site = self.cluster.site.loop
        site.finish(workload.set_up(bots, per_bot))
        site.finish(workload.start_mailings())
        workload.schedule(site, bots)
        from_s = virtual.now_s
        self._schedule_faults(from_s)
        shown = 0

        def count(call: Call) -> None:
            nonlocal shown
            shown += call.is_shown
            if shown % 256 == 0:
                progress(shown)

        self.platform.on_arrived = count
        self._run_to_end(from_s)
        progress(shown)
        return self._figures(from_s, process_time() - began_s)

    def _run_to_end(self, from_s: float) -> None:
        virtual, site = self._virtual, self.cluster.site
        most_s = from_s + self._spread_s + PATIENCE_S
        try:
            virtual.run(lambda: not self._workload.pending, most_s=most_s)
            while not site.loop.finish(self._is_over(), most_s=PATIENCE_S):
                virtual.run(_after(virtual, 0.5), most_s=math.inf)
                if virtual.now_s > most_s:
                    left = site.loop.finish(self._left())
                    invariants.check(
                        self._options.seed, [f"not finished after {most_s:.0f} s: {left}"]
                    )
        except TimeoutError as error:
            invariants.check(self._options.seed, [str(error)])

    async def _is_over(self) -> bool:
        async with self.cluster.site.service.db.read() as tx:
            return not await tx.fetch_val(
                "SELECT COUNT(*) FROM core_jobs WHERE key IS NULL OR key <> 'recurring'"
            )

    async def _left(self) -> str:
        async with self.cluster.site.service.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT name, lane, state, COUNT(*) AS count, MAX(attempts) AS attempts,"
                " MIN(run_at_ms) AS due FROM core_jobs GROUP BY name, lane, state"
            )
        return "; ".join(str(tuple(row)) for row in rows[:8])

    # ---- faults ---------------------------------------------------------------------------------

    def _schedule_faults(self, from_s: float) -> None:
        options, virtual, rng = self._options, self._virtual, self._rng

        def moment() -> float:
            return from_s + rng.uniform(0.05, 0.9) * self._spread_s

        for _ in range(options.kills):
            virtual.at(moment(), self._kill)
        for _ in range(options.clock_steps):
            virtual.at(moment(), self._set_clock)
        for number in range(options.added_bots):
            at_s = from_s + self._rng_of_added.uniform(0.05, 0.9) * self._spread_s
            self._workload.schedule_bot(self.cluster.site.loop, at_s, number, self._bot_added)
        for _ in range(options.outages):
            bot = rng.choice(sorted(self.platform.bots))
            virtual.at(moment(), lambda bot=bot: self.platform.go_away(bot))

    def _bot_added(self, key: str) -> None:
        self.platform.add_bot(key)
        self._added += 1
        # What disturbs all disturbs the new one too.
        now_s = self._virtual.now_s
        self.platform.disturb(key, now_s, max(now_s, self._disturbed_until_s))

    def _kill(self) -> None:
        """A worker dies, one with lanes if there is any, and another starts in its place."""
        worker = self._rng.choice(self.cluster.owners() or self.cluster.workers)
        now_s = self._virtual.now_s
        self._deaths[worker.name] = now_s
        if worker.runner is not None:
            marked, bots = self.cluster.in_flight(worker)
            self._marked |= marked
            self._suspects |= self.cluster.suspects(worker)
            self._orphans += [(bot, now_s) for bot in sorted(bots)]
        self.cluster.kill(worker)
        self.cluster.add_worker()
        self._disturb_all(now_s, now_s + TAKEOVER_S)

    def _set_clock(self) -> None:
        step_s = self._rng.choice(CLOCK_STEPS_S)
        now_s = self._virtual.now_s
        self._virtual.set_clock(step_s)
        self._steps += 1
        # Set back, what is due by the old time waits as long; set back twice, as long as both.
        if step_s < 0:
            self._late_until_s = max(now_s, self._late_until_s) - step_s
        self._disturb_all(now_s, max(now_s, self._late_until_s) + TAKEOVER_S)

    def _disturb_all(self, from_s: float, to_s: float) -> None:
        self._disturbed_until_s = max(self._disturbed_until_s, to_s)
        for bot in self.platform.bots:
            self.platform.disturb(bot, from_s, to_s)

    # ---- the end --------------------------------------------------------------------------------

    def _figures(self, from_s: float, took_s: float) -> Figures:
        options, platform, items = self._options, self.platform, self._workload.items
        outcomes, statuses = self.cluster.site.loop.finish(self._outcomes())
        doubted = self._doubted()
        seed = options.seed
        unexpected = [
            f"logged {error!r} {times} times"
            for error, times in self._errors.items()
            if error.partition(":")[0] not in EXPECTED_ERRORS
        ]
        invariants.check(seed, map(repr, self._workload.failures))
        invariants.check(seed, invariants.pace_kept(platform))
        ordered = [
            item
            for item in items
            if item.kind == "single" and self._workload.recipient_of(item) not in self._suspects
        ]
        invariants.check(seed, invariants.in_order(platform, ordered))
        invariants.check(seed, invariants.nothing_twice(platform, items, doubted=doubted))
        invariants.check(seed, invariants.nothing_lost(platform, items, outcomes, doubted=doubted))
        invariants.check(
            seed,
            invariants.questions_in_time(platform, items, most_s=options.check_questions_s),
        )
        invariants.check(seed, unexpected)
        waits: defaultdict[str, list[float]] = defaultdict(list)
        undisturbed_s: list[float] = []
        for item in items:
            for call in platform.shown.get(item.key, ())[:1]:
                assert call.came_s is not None
                waits[item.kind].append(call.came_s - item.asked_s)
                bot = platform.bots[item.bot]
                if item.kind == "question" and not disturbed_s(bot, item.asked_s, call.came_s):
                    undisturbed_s.append(call.came_s - item.asked_s)
        times = Counter(call.outcome for call in platform.calls)
        doubled = sum(len(calls) - 1 for calls in platform.shown.values())
        chats = {(item.tenant, item.chat_id) for item in items if item.kind == "single"}
        return Figures(
            options=options,
            virtual_s=self._virtual.now_s - from_s,
            took_s=took_s,
            accepted=len(items),
            shown=len(platform.shown),
            statuses=statuses,
            used={bot: self._used(bot, undisturbed=False) for bot in self._bots},
            used_undisturbed={bot: self._used(bot, undisturbed=True) for bot in self._bots},
            waits_s=dict(waits),
            undisturbed_waits_s=undisturbed_s,
            fairness={bot: self._fairness(bot, items) for bot in self._bots},
            refusals=times["refused"] + times["chat refused"],
            failures=times["failed"],
            lost_answers=times["lost"],
            chats_in_order=len(chats),
            killed=len(self.cluster.killed),
            takeovers_s=self._takeovers_s(),
            clock_steps=self._steps,
            bots_added=self._added,
            doubled=doubled,
            unknown=statuses["unknown"],
            digest=crc32(
                repr(
                    [
                        (call.bot, call.chat_id, call.text, call.came_s, call.outcome)
                        for call in platform.calls
                    ]
                ).encode()
            ),
        )

    async def _outcomes(self) -> tuple[dict[tuple[str, str], list[Ended]], Counter[str]]:
        found: defaultdict[tuple[str, str], list[Ended]] = defaultdict(list)
        statuses: Counter[str] = Counter()
        async with self.cluster.site.service.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT m.status, m.reason, m.content, s.chat_id FROM core_messages m"
                " JOIN core_subscribers s ON s.project_id = m.project_id"
                " AND s.subscriber_id = m.subscriber_id"
            )
        for row in rows:
            text = OutgoingMessage.from_payload(from_json(row["content"])).text
            found[row["chat_id"], text].append(Ended(row["status"], row["reason"]))
            statuses[row["status"]] += 1
        return found, statuses

    def _doubted(self) -> set[tuple[str, str]]:
        """What may have been sent without anybody knowing: the response was lost, or the process died before
        it was recorded."""
        found = set()
        for call in self.platform.calls:
            died_s = self._deaths.get(call.process, math.inf)
            was_unanswered = call.answered_s is None or call.answered_s >= died_s
            if call.outcome == "lost" or (died_s < math.inf and was_unanswered):
                found.add((call.chat_id, call.text))
        for item in self._workload.items:
            if item.kind != "question" and self._workload.recipient_of(item) in self._marked:
                found.add(item.key)
        return found

    def _takeovers_s(self) -> list[float]:
        """Of each lane whose owner died with work in it: the seconds until the next call of its bot."""
        found = []
        for bot, died_s in self._orphans:
            later = [
                call.sent_s
                for call in self.platform.calls
                if call.bot == bot and call.sent_s > died_s
            ]
            if later:
                found.append(min(later) - died_s)
        return found

    def _used(self, bot: str, *, undisturbed: bool) -> float:
        """Calls in relation to the pace, while mailings left no moment without work."""
        side, per_s = self.platform.bots[bot], PACE.per_bot_s
        assert per_s is not None
        times = [
            call.came_s
            for call in self.platform.calls
            if call.bot == bot and call.came_s is not None
        ]
        if not times:
            return 0.0
        mailed = [
            call.came_s
            for call in self.platform.calls
            if call.bot == bot and call.came_s is not None and call.text.startswith("news")
        ]
        # The last ones of a mailing are retries, which wait for their time.
        from_s, to_s = min(times), quantile(mailed, 0.97)
        span_s, calls = to_s - from_s, [time_s for time_s in times if from_s <= time_s < to_s]
        if undisturbed:
            calls = [time_s for time_s in calls if not _is_within(side.disturbed, time_s)]
            span_s -= disturbed_s(side, from_s, to_s)
        return len(calls) / (span_s * per_s) if span_s > LEAST_SPAN_S else math.nan

    def _fairness(self, bot: str, items: list[Item]) -> float:
        """Jain's index of what the tenants' mailings had sent when the first of them had sent all."""
        ends: list[list[float]] = [[] for _ in range(self._options.tenants)]
        for item in items:
            if item.kind == "mailing" and item.bot == bot:
                for call in self.platform.shown.get(item.key, ())[:1]:
                    assert call.came_s is not None
                    ends[item.tenant].append(call.came_s)
        first_s = min((max(times) for times in ends if times), default=0.0)
        return jain(sum(time_s <= first_s for time_s in times) for times in ends)


def _after(virtual: VirtualTime, seconds: float) -> Callable[[], bool]:
    until_s = virtual.now_s + seconds
    virtual.at(until_s, lambda: None)
    return lambda: virtual.now_s >= until_s


def _is_within(spans: list[tuple[float, float]], at_s: float) -> bool:
    return any(from_s <= at_s < to_s for from_s, to_s in spans)
