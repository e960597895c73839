"""Enqueues jobs in the transaction of what causes them, and wakes their lanes after its commit."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json

#: Takes a lane and the Unix milliseconds from which it has work.
Wake = Callable[[str, int], None]


class JobQueue:
    """What the rest of the system sees of jobs: `enqueue`, and `bring_forward`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wake: Wake | None = None
        #: Jobs that handlers of this process work on now.
        self.in_flight = 0

    def woken_by(self, wake: Wake | None) -> None:
        """Sets the callback for new work; without one, another process's sweeper finds it."""
        self._wake = wake

    async def enqueue(self, tx: Tx, *jobs: NewJob) -> None:
        """Writes `jobs` in `tx`. One whose `key` is taken by an open job of its name is left out."""
        now_ms = self._clock.now_ms()
        rows = [_row(job, now_ms) for job in jobs]
        keyed = [row for row in rows if row["key"] is not None]
        await tx.insert_many("core_jobs", [row for row in rows if row["key"] is None])
        for row in keyed:
            await _insert_unless_open(tx, row)
        lanes: dict[str, int] = {}
        for job in jobs:
            run_at_ms = now_ms if job.run_at_ms is None else job.run_at_ms
            lanes[job.lane] = min(run_at_ms, lanes.get(job.lane, run_at_ms))
        for lane, run_at_ms in lanes.items():
            tx.on_commit(partial(self.wake, lane, run_at_ms))

    async def bring_forward(self, tx: Tx, job: NewJob) -> bool:
        """Has the job that waits for later with the name, lane and payload of `job` run now, in its
        priority; False if there is none: it is due already, at work, or done."""
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
        """Whether a job of that name and key waits or is at work."""
        rows = await tx.fetch_all(
            "SELECT job_id FROM core_jobs"
            " WHERE name = :name AND key = :key AND key IS NOT NULL AND state <> 'dead'",
            {"name": name, "key": key},
        )
        return bool(rows)

    def add(self, unit: WriteBatch, job: NewJob) -> None:
        """Adds a job without a key to what is written together; its lane is woken after the commit."""
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
    return {
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
