"""Sends due steps: each once and in order, also across crashes.

The messages of a batch are prepared without a transaction. Then one transaction moves the enrollments that
are unchanged, and inserts their messages and events: all or nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import structlog

from msgsvc_core.db import Database, Tx, WriteBatch
from msgsvc_core.events import Events, NewEvent
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_drip import due_store, events, store
from msgsvc_drip.definition import DripDefinition, read_definition
from msgsvc_drip.due_store import DueStep
from msgsvc_drip.models import Enrollment
from msgsvc_drip.planning import INTERNAL_ERROR, PASSING, WITHDRAWN, Candidate, Plan, Planner

#: Versions of chains that are kept in memory as they were read.
MOST_KNOWN = 200

#: Chains that share a batch, so that one with many people holds up no other.
CHAINS_AT_ONCE = 20

log = structlog.get_logger(__name__)


class StepRunner:
    """Runs due steps of all projects, a batch at a time."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        events: Events,
        projects: Projects,
        subscribers: Subscribers,
        planner: Planner,
        batch: int,
    ) -> None:
        self._clock = clock
        self._db = db
        self._events = events
        self._projects = projects
        self._subscribers = subscribers
        self._planner = planner
        self._batch = batch
        #: A version never changes, so what was read of one holds for as long as the process.
        self._known: dict[store.VersionKey, DripDefinition] = {}

    async def run_batch(self) -> bool:
        """Takes one batch; whether there may be more."""
        now_ms = self._clock.now_ms()
        async with self._db.read() as tx:
            due = await self._find_due(tx, now_ms)
            candidates = await self._candidates(tx, due) if due else []
        if not candidates:
            return False
        return bool(await self._run(candidates, now_ms))

    async def withdraw(self, tx: Tx, before_ms: int, limit: int) -> int:
        """Skips up to `limit` steps that were due before a time in all projects; returns how many. The next
        one is counted from the time of that which is skipped, as if it had been sent then."""
        due = await self._due_until(tx, before_ms - 1, limit, ())
        candidates = await self._candidates(tx, due)
        plans = [
            self._planner.skip(one, WITHDRAWN, one.due.row.due_at_ms)
            for one in candidates
            if one.due.row.due_at_ms is not None
        ]
        return await self._write_in(tx, plans, self._clock.now_ms())

    async def _find_due(self, tx: Tx, now_ms: int) -> list[DueStep]:
        disabled = await self._projects.find_disabled(tx)
        return await self._due_until(tx, now_ms, self._batch, disabled)

    async def _due_until(
        self, tx: Tx, until_ms: int, limit: int, disabled: Collection[str]
    ) -> list[DueStep]:
        """Up to `limit` people, from each chain its share, and what others leave of theirs."""
        chains = await due_store.find_due_drips(tx, until_ms, CHAINS_AT_ONCE, disabled=disabled)
        due: list[DueStep] = []
        for number, chain in enumerate(chains):
            share = -((len(due) - limit) // (len(chains) - number))
            due += await due_store.find_due(tx, chain, until_ms, max(1, share))
        return due

    async def _candidates(self, tx: Tx, due: Sequence[DueStep]) -> list[Candidate]:
        courses = await self._definitions(tx, (one.row for one in due))
        people = await self._subscribers.get_many(
            tx, sorted({(one.row.project_id, one.row.subscriber_id) for one in due})
        )
        return [
            Candidate(one, courses[key], people[who])
            for one in due
            # A subscriber or campaign may have been deleted between the two queries.
            if (key := (one.row.project_id, one.row.drip_id, one.row.version)) in courses
            and (who := (one.row.project_id, one.row.subscriber_id)) in people
        ]

    async def _run(self, candidates: Sequence[Candidate], now_ms: int) -> int:
        """Takes the steps of all; where one of them fails by a mistake of ours, of all the others, or
        nobody would get anything any more. Returns how many people were moved on."""
        try:
            plans = await self._planner.plan_all(candidates, now_ms)
            return await self._write(plans, now_ms)
        except PASSING:
            raise
        except Exception:
            if len(candidates) > 1:
                half = len(candidates) // 2
                begin = await self._run(candidates[:half], now_ms)
                return begin + await self._run(candidates[half:], now_ms)
            log.exception("drip_step_failed", id=candidates[0].due.row.enrollment_id)
        return await self._skip(candidates[0], now_ms)

    async def _skip(self, one: Candidate, now_ms: int) -> int:
        plan = self._planner.skip(one, INTERNAL_ERROR, now_ms)
        return await self._write([plan], now_ms)

    async def _write(self, plans: Sequence[Plan], now_ms: int) -> int:
        async with self._db.transaction() as tx:
            return await self._write_in(tx, plans, now_ms)

    async def _write_in(self, tx: Tx, plans: Sequence[Plan], now_ms: int) -> int:
        """Moves the enrollments that are unchanged; returns how many."""
        # Before all else, as an erasure has them.
        await self._subscribers.lock_existing(
            tx, [(plan.move.row.project_id, plan.move.row.subscriber_id) for plan in plans]
        )
        taken = await due_store.advance(tx, [plan.move for plan in plans], now_ms)
        unit, told = WriteBatch(), list[NewEvent]()
        for plan in plans:
            if plan.move.row.enrollment_id in taken:
                unit.rows += plan.unit.rows
                unit.after_commit += plan.unit.after_commit
                told += _events(plan)
        await tx.write(unit)
        await self._events.emit_many(tx, told)
        return len(taken)

    async def _definitions(
        self, tx: Tx, rows: Iterable[Enrollment]
    ) -> Mapping[store.VersionKey, DripDefinition]:
        wanted = {(row.project_id, row.drip_id, row.version) for row in rows}
        if missing := wanted - self._known.keys():
            found = await store.find_definitions(tx, missing)
            if len(self._known) + len(found) > MOST_KNOWN:
                self._known.clear()
                found = await store.find_definitions(tx, wanted)
            self._known |= {key: read_definition(content) for key, content in found.items()}
        return self._known


def _events(plan: Plan) -> list[NewEvent]:
    row, move = plan.move.row, plan.move
    names = []
    if plan.message is not None:
        names.append(events.STEP_SENT)
    if move.status == "completed":
        names.append(events.COMPLETED)
    fields = {
        "drip_id": row.drip_id,
        "enrollment_id": row.enrollment_id,
        "step": row.next_step + 1,
        "message_id": move.message_id or row.last_message_id,
    }
    return [NewEvent(row.project_id, name, fields, plan.subscriber) for name in names]
