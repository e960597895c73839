"""Enqueues jobs in the caller's transaction, and wakes their lanes after its commit."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgsvc_core.db import Row, Tx, WriteBatch
from msgsvc_core.jobs import inspection, lanes, store
from msgsvc_core.jobs.contract import Job, NewJob
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.tracing import current_traceparent

#: Takes a lane and the Unix milliseconds from which it has work.
Wake = Callable[[str, int], None]


class JobQueue:
    """The queue of jobs: enqueues them, and reports which are waiting."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wake: Wake | None = None
        #: Jobs that handlers of this process are running now.
        self.in_flight = 0

    def woken_by(self, wake: Wake | None) -> None:
        """Sets the callback for new work; without one, another process's sweeper finds it."""
        self._wake = wake

    async def enqueue(self, tx: Tx, *jobs: NewJob) -> None:
        """Writes `jobs` in `tx`. A job whose `key` an open job of its name has is skipped."""
        now_ms = self._clock.now_ms()
        rows = [_row(job, now_ms) for job in jobs]
        keyed = [row for row in rows if row["key"] is not None]
        unkeyed = [row for row in rows if row["key"] is None]
        if any("traceparent" in row for row in unkeyed):
            # One statement inserts them all, with the same columns.
            unkeyed = [{"traceparent": None, **row} for row in unkeyed]
        await tx.insert_many("core_jobs", unkeyed)
        for row in keyed:
            await _insert_unless_open(tx, row)
        lanes: dict[str, int] = {}
        for job in jobs:
            run_at_ms = now_ms if job.run_at_ms is None else job.run_at_ms
            lanes[job.lane] = min(run_at_ms, lanes.get(job.lane, run_at_ms))
        for lane, run_at_ms in lanes.items():
            tx.on_commit(partial(self.wake, lane, run_at_ms))

    async def bring_forward(self, tx: Tx, job: NewJob) -> bool:
        """Makes the waiting job with the name, lane and payload of `job` due now, with its priority; False
        if there is none: it is due already, running, or done."""
        now_ms = self._clock.now_ms()
        count = await tx.execute(
            "UPDATE core_jobs SET run_at_ms = :now_ms, priority = :priority"
            " WHERE lane = :lane AND state = 'ready' AND run_at_ms > :now_ms"
            " AND name = :name AND payload = :payload",
            {
                "lane": job.lane,
                "name": job.name,
                "payload": to_json(job.payload),
                "priority": job.priority,
                "now_ms": now_ms,
            },
        )
        if count:
            tx.on_commit(partial(self.wake, job.lane, now_ms))
        return count > 0

    async def has_open(self, tx: Tx, name: str, key: str) -> bool:
        """Whether a job of that name and key waits or runs."""
        rows = await tx.fetch_all(
            "SELECT job_id FROM core_jobs"
            " WHERE name = :name AND key = :key AND key IS NOT NULL AND state <> 'dead'",
            {"name": name, "key": key},
        )
        return bool(rows)

    async def running(self, tx: Tx, lane: str, name: str) -> list[Job]:
        """A lane's jobs of one name that are running now, or were when their runner crashed."""
        return await store.running(tx, lane, name)

    async def list_postponed(self, tx: Tx, lane: str) -> list[Job]:
        """Jobs of a lane that were rescheduled, or enqueued for a later time."""
        return await store.list_postponed(tx, lane)

    async def list_interrupted(self, tx: Tx, lane: str) -> list[Job]:
        """Jobs of an exclusive lane that its previous owner was running, and that its new one has not
        claimed yet."""
        return await store.list_interrupted(tx, lane)

    async def has_due_by(self, tx: Tx, lane: str, until_ms: int) -> bool:
        """Whether a lane has a waiting or running job that is due at that time."""
        return await store.has_due_by(tx, lane, until_ms)

    async def has_waiting(self, tx: Tx, lane: str, due_by: Mapping[int, int]) -> bool:
        """Whether a lane has an unclaimed job of one of the priorities that is due by the given time, in
        Unix milliseconds. `due_by` is not empty."""
        return await store.has_waiting(tx, lane, due_by)

    async def count_by_state(self, tx: Tx) -> dict[str, int]:
        """How many jobs are `ready`, `delayed` (ready, but not before a later time), `running` and
        `dead`."""
        return await store.count_by_state(tx, self._clock.now_ms())

    async def count_by_lane(self, tx: Tx, now_ms: int, names: Sequence[str]) -> list[Row]:
        """`lane`, `state`, `count` and `oldest_ms` at that time, in Unix milliseconds: see `store`."""
        return await store.count_by_lane(tx, now_ms, names)

    async def runners_without_key(self, tx: Tx, key_id: str) -> list[str]:
        """Machine and process of those that run jobs and do not know a secret key, by its id."""
        return await lanes.runners_without_key(tx, key_id, self._clock.now_ms())

    async def count_runners(self, tx: Tx, now_ms: int) -> int:
        """Number of processes that run jobs at that time, by their leases."""
        return await inspection.count_runners(tx, now_ms)

    async def take_overdue(
        self, tx: Tx, lane: str, name: str, *, until_ms: int, limit: int
    ) -> list[Job]:
        """Deletes up to `limit` jobs of a lane and a name that have been due since `until_ms` or longer, in
        Unix milliseconds, and that no runner has; returns them. The caller ends what they stand for."""
        return await store.take_overdue(tx, lane, name, until_ms=until_ms, limit=limit)

    async def find_unclaimed(
        self, tx: Tx, lane: str, name: str, *, until_ms: int, containing: str
    ) -> list[tuple[str, Any]]:
        """Id and payload of a lane's jobs of one name, also dead ones, created until then, that no runner
        has claimed and whose payload contains a text."""
        return await store.find_unclaimed(tx, lane, name, until_ms=until_ms, containing=containing)

    async def discard_unclaimed(self, tx: Tx, job_ids: Sequence[str]) -> None:
        """Deletes those of the jobs that no runner has claimed."""
        await store.discard_unclaimed(tx, job_ids)

    def add(self, unit: WriteBatch, job: NewJob) -> None:
        """Adds a job without a key to a batch of writes; its lane is woken after the commit."""
        assert job.key is None, "whether a key is free takes a transaction to see"
        row = _row(job, self._clock.now_ms())
        unit.insert("core_jobs", row)
        unit.on_commit(partial(self.wake, job.lane, row["run_at_ms"]))

    def wake(self, lane: str, run_at_ms: int) -> None:
        """Notifies the runner that `lane` has work from `run_at_ms` on."""
        if self._wake is not None:
            self._wake(lane, run_at_ms)


async def _insert_unless_open(tx: Tx, row: dict[str, Any]) -> None:
    columns = ", ".join(row)
    values = ", ".join(f":{column}" for column in row)
    await tx.execute(
        f"INSERT INTO core_jobs ({columns}) VALUES ({values}) "
        "ON CONFLICT (name, key) WHERE key IS NOT NULL AND state <> 'dead' DO NOTHING",
        row,
    )


def _row(job: NewJob, now_ms: int) -> dict[str, Any]:
    row = {
        "job_id": new_id("job"),
        "project_id": job.project_id,
        "lane": job.lane,
        "priority": job.priority,
        "run_at_ms": now_ms if job.run_at_ms is None else job.run_at_ms,
        "name": job.name,
        "payload": to_json(job.payload),
        "key": job.key,
        "state": "ready",
        "attempts": 0,
        "deliveries": 0,
        "created_at_ms": now_ms,
    }
    if job.traced and (traceparent := job.traceparent or current_traceparent()):
        row["traceparent"] = traceparent
    return row
