"""Runs due records: once, in one transaction, with their events.

Messages to single subscribers are prepared first and written in batches. Each mailing has its own
transaction, because starting one takes many statements.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from msgsvc_core.db import Database, DatabaseUnavailable, LockTimeout, Tx, WriteBatch
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_scheduling import planning, store
from msgsvc_scheduling.models import Due, Record
from msgsvc_scheduling.planning import Plan
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.settings import SchedulingSettings

#: Errors caused by deleted objects; retrying does not help.
PASSING = (DatabaseUnavailable, LockTimeout)

#: Seconds that what is due waits for others' locks: each second is one that others of its project wait too.
LOCKED_S = 1.0

#: People by project and id.
People = Mapping[tuple[str, str], Subscriber]

log = structlog.get_logger(__name__)


class Running:
    """Sends due messages of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        events: Events,
        projects: Projects,
        subscribers: Subscribers,
        settings: SchedulingSettings,
        sending: Sending,
    ) -> None:
        self._clock = clock
        self._db = db
        self._events = events
        self._projects = projects
        self._subscribers = subscribers
        self._settings = settings
        self._sending = sending

    async def run(self, *due: Due) -> None:
        """Runs what is due, once across all processes.

        An internal error is reported as a failed run, and the rest continues.
        """
        to_one = [one for one in due if one.subscriber_id is not None]
        if to_one:
            await self._run_batch(to_one)
        for one in due:
            if one.subscriber_id is None:
                await self._run_mailing(one)

    async def withdraw(self, tx: Tx, before_ms: int, limit: int) -> int:
        """Skips up to `limit` of what was due before a time in all projects; returns how many. A recurring
        message goes on with its first run that is not before it."""
        due = await store.list_due(tx, before_ms - 1, limit)
        records = await self._lock_due(tx, due)
        people = await self._subscribers.get_many(
            tx, sorted({(one.project_id, one.subscriber_id or "") for one in records})
        )
        now_ms = max(self._clock.now_ms(), before_ms)
        await self._write(tx, [planning.withdrawn(one, now_ms) for one in records], people)
        return len(records)

    async def _run_batch(self, due: Sequence[Due]) -> None:
        try:
            await self._try_batch(due)
        except PASSING:
            raise
        except Exception as error:
            if len(due) == 1:
                log.exception("scheduled_message_failed", id=due[0].record_id)
                await self._fail(due[0], error)
                return
            half = len(due) // 2
            await self._run_batch(due[:half])
            await self._run_batch(due[half:])

    async def _try_batch(self, due: Sequence[Due]) -> None:
        db, now_ms = self._db, self._clock.now_ms()
        async with db.read() as tx:
            records = await store.find_due(tx, due)
            inactive = await self._projects.find_disabled(tx, {one.project_id for one in due})
            people = await self._subscribers.get_many(
                tx, sorted({(one.project_id, one.subscriber_id or "") for one in records})
            )
        # Concurrently, so that their queries are batched.
        plans = await asyncio.gather(*(self._plan(one, inactive, now_ms) for one in records))
        async with db.transaction() as tx:
            await tx.wait_for_locks(LOCKED_S)
            there = {one.record_id: one for one in await self._lock_due(tx, due)}
            # What was changed meanwhile is left for the next look.
            ready = [plan for plan in plans if there.get(plan.record.record_id) == plan.record]
            await self._write(tx, ready, people)

    async def _plan(self, record: Record, inactive: set[str], now_ms: int) -> Plan:
        if record.project_id in inactive:
            return planning.of_disabled_project(record, now_ms)
        if plan := planning.not_sent(record, self._settings, now_ms):
            return plan
        unit = WriteBatch()
        plan = planning.finished(record, await self._sending.send_to_one(unit, record), now_ms)
        plan.unit = unit
        return plan

    async def _write(self, tx: Tx, plans: Sequence[Plan], people: People) -> None:
        unit = WriteBatch()
        for plan in plans:
            unit.rows += plan.unit.rows
            unit.after_commit += plan.unit.after_commit
        await store.update_after_run(tx, [plan.after for plan in plans])
        await tx.write(unit)
        told = (plan.event(people) for plan in plans)
        await self._events.emit_many(tx, [event for event in told if event is not None])

    async def _lock_due(self, tx: Tx, due: Sequence[Due]) -> list[Record]:
        """Records that are still due, locked. People before the records, as an erasure has them: two who go
        the other way would wait for each other."""
        people = {(one.project_id, one.subscriber_id or "") for one in due if one.subscriber_id}
        there = await self._subscribers.lock_existing(tx, people, skip_locked=True)
        return await store.lock_due(
            tx,
            [
                one
                for one in due
                if one.subscriber_id is None or (one.project_id, one.subscriber_id) in there
            ],
        )

    async def _run_mailing(self, due: Due) -> None:
        try:
            await self._try_mailing(due)
        except PASSING:
            raise
        except Exception as error:
            log.exception("scheduled_message_failed", id=due.record_id)
            await self._fail(due, error)

    async def _try_mailing(self, due: Due) -> None:
        now_ms = self._clock.now_ms()
        async with self._db.transaction() as tx:
            await tx.wait_for_locks(LOCKED_S)
            for record in await self._lock_due(tx, [due]):
                if await self._projects.find_disabled(tx, {due.project_id}):
                    plan = planning.of_disabled_project(record, now_ms)
                elif (later := planning.not_sent(record, self._settings, now_ms)) is not None:
                    plan = later
                else:
                    outcome = await self._sending.send_to_many(tx, record)
                    plan = planning.finished(record, outcome, now_ms)
                await self._write(tx, [plan], {})

    async def _fail(self, due: Due, error: Exception) -> None:
        now_ms = self._clock.now_ms()
        async with self._db.transaction() as tx:
            for record in await self._lock_due(tx, [due]):
                whose = [(record.project_id, record.subscriber_id or "")]
                people = await self._subscribers.get_many(tx, whose)
                await self._write(tx, [planning.failed(record, error, now_ms)], people)
