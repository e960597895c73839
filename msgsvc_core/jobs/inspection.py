"""The SQL for operators: lists of jobs, and the changes of `JobAdmin`.

Payloads are returned without encrypted values, and those that look like secrets.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update
from msgsvc_core.jobs import lanes
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.ids import creation_ms, earliest_id
from msgsvc_core.kernel.json import from_json
from msgsvc_core.kernel.values import value_object

State = Literal["ready", "running", "dead"]

#: Replaces encrypted or secret values.
HIDDEN = "[hidden]"

#: Parts of payload keys whose values are hidden; encrypted values are of no use to a reader.
_SECRET_PARTS = ("sealed", "secret", "token", "password", "code")

_COLUMNS = (
    "job_id, name, lane, state, priority, run_at_ms, attempts, deliveries, project_id, key,"
    " payload, leased_by, leased_until_ms, last_error, created_at_ms, refused_from_ms,"
    " traceparent"
)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job for operators. Times are Unix milliseconds."""

    job_id: str
    name: str
    lane: str
    state: State
    priority: int
    run_at_ms: int
    attempts: int
    deliveries: int
    project_id: str | None
    key: str | None
    payload: Any
    leased_by: str | None
    leased_until_ms: int | None
    last_error: str | None
    created_at_ms: int
    #: Since when its platform has asked to wait; None while it has not.
    refused_from_ms: int | None = None
    #: The span that caused it, see `kernel.tracing.Span.traceparent`; None without tracing.
    traceparent: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The trace that it belongs to."""
        return None if self.traceparent is None else self.traceparent.split("-")[1]


@dataclass(frozen=True, slots=True)
class Filter:
    """Filters of jobs; None means any."""

    state: State | None = None
    lane: str | None = None
    name: str | None = None

    def condition(self) -> tuple[str, dict[str, Any]]:
        """SQL and its parameters. The states are literals, for the partial indexes."""
        parts = ["1 = 1"]
        params: dict[str, Any] = {}
        if self.state is not None:
            parts.append(f"state = '{self.state}'")
        for column, value in (("lane", self.lane), ("name", self.name)):
            if value is not None:
                parts.append(f"{column} = :{column}")
                params[column] = value
        return " AND ".join(parts), params


async def list_jobs(tx: Tx, wanted: Filter, limit: int) -> list[JobView]:
    """Up to `limit` jobs, oldest first."""
    condition, params = wanted.condition()
    # Few jobs run concurrently, and their index lacks this order: SQLite would scan all jobs for it.
    order = "job_id || ''" if wanted.state == "running" else "job_id"
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_jobs WHERE {condition} ORDER BY {order} LIMIT :most",
        {**params, "most": limit},
    )
    return [_letter(row) for row in rows]


@value_object
class Waiting:
    """Jobs of a name that wait, and the times of the first and the last due one in Unix milliseconds.

    `claimed` are those in addition that a process has claimed: it works on them, or has died. What they send
    may have arrived.
    """

    name: str
    count: int
    first_due_ms: int
    last_due_ms: int
    claimed: int = 0


async def count_waiting(tx: Tx, before_ms: int | None) -> list[Waiting]:
    """The waiting and the claimed jobs by name; those that were due before a time, if there is one. Reads
    all of them."""
    due = "" if before_ms is None else " AND run_at_ms < :before_ms"
    rows = await tx.fetch_all(
        "SELECT name, SUM(CASE WHEN state = 'ready' THEN 1 ELSE 0 END) AS count,"
        " SUM(CASE WHEN state = 'running' THEN 1 ELSE 0 END) AS claimed,"
        " MIN(run_at_ms) AS first, MAX(run_at_ms) AS last"
        f" FROM core_jobs WHERE state IN ('ready', 'running'){due} GROUP BY name ORDER BY name",
        {} if before_ms is None else {"before_ms": before_ms},
    )
    return [
        Waiting(row["name"], int(row["count"]), row["first"], row["last"], int(row["claimed"]))
        for row in rows
    ]


async def list_due(tx: Tx, name: str, before_ms: int, after: str, limit: int) -> list[str]:
    """Ids of up to `limit` waiting or claimed jobs of a name that were due before a time, from behind the id
    `after`."""
    rows = await tx.fetch_all(
        "SELECT job_id FROM core_jobs WHERE state IN ('ready', 'running') AND name = :name"
        " AND run_at_ms < :before_ms"
        " AND job_id > :after ORDER BY job_id LIMIT :most",
        {"name": name, "before_ms": before_ms, "after": after, "most": limit},
    )
    return [row["job_id"] for row in rows]


async def find(tx: Tx, job_id: str) -> JobView | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_jobs WHERE job_id = :job_id", {"job_id": job_id}
    )
    return None if row is None else _letter(row)


async def list_enqueued_with(tx: Tx, text: str, *, within_ms: int) -> list[JobView]:
    """Jobs whose payload contains an id of `new_id`, enqueued in the `within_ms` milliseconds after it was
    made: by the key of the table, however many jobs there are."""
    made_ms = creation_ms(text)
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_jobs WHERE job_id >= :since AND job_id < :until"
        " AND payload LIKE :pattern ORDER BY job_id",
        {
            "since": earliest_id("job", made_ms),
            "until": earliest_id("job", made_ms + within_ms),
            "pattern": f"%{text}%",
        },
    )
    return [_letter(row) for row in rows]


async def list_mentioning(tx: Tx, text: str, *, lane: str, name: str) -> list[JobView]:
    """Open jobs of a lane and a name whose payload contains a text, oldest first. Reads all of the lane."""
    rows = [
        row
        for state in ("ready", "running")
        for row in await tx.fetch_all(
            f"SELECT {_COLUMNS} FROM core_jobs WHERE lane = :lane AND state = '{state}'"
            " AND name = :name AND payload LIKE :pattern",
            {"lane": lane, "name": name, "pattern": f"%{text}%"},
        )
    ]
    return sorted(map(_letter, rows), key=lambda job: job.job_id)


async def count_ahead(tx: Tx, job: JobView, now_ms: int, most: int) -> int:
    """How many due jobs of its lane are claimed before a waiting job, counted up to `most`."""
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM (SELECT job_id FROM core_jobs"
        " WHERE lane = :lane AND state = 'ready' AND run_at_ms <= :now_ms AND job_id <> :job_id"
        " AND (priority < :priority OR (priority = :priority AND (run_at_ms < :run_at_ms"
        " OR (run_at_ms = :run_at_ms AND job_id < :job_id)))) LIMIT :most) AS found",
        {
            "lane": job.lane,
            "now_ms": now_ms,
            "job_id": job.job_id,
            "priority": job.priority,
            "run_at_ms": job.run_at_ms,
            "most": most,
        },
    )
    return found


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """The jobs of a lane. `oldest_ms` is since when the first of the `ready` ones has been due, in Unix
    milliseconds; None without one."""

    lane: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    dead: int = 0
    oldest_ms: int | None = None


async def lane_loads(tx: Tx, now_ms: int) -> list[LaneLoad]:
    """The lanes that have jobs, by name. Waiting and running jobs are counted in their indexes alone."""
    waiting = await tx.fetch_all(
        "SELECT lane, SUM(CASE WHEN run_at_ms > :now_ms THEN 0 ELSE 1 END) AS ready,"
        " COUNT(*) AS total, MIN(run_at_ms) AS oldest_ms"
        " FROM core_jobs WHERE state = 'ready' GROUP BY lane",
        {"now_ms": now_ms},
    )
    loads = {
        row["lane"]: LaneLoad(
            row["lane"],
            ready=int(row["ready"]),
            delayed=row["total"] - int(row["ready"]),
            oldest_ms=row["oldest_ms"] if row["ready"] else None,
        )
        for row in waiting
    }
    for state in ("running", "dead"):
        rows = await tx.fetch_all(
            f"SELECT lane, COUNT(*) AS count FROM core_jobs WHERE state = '{state}' GROUP BY lane"
        )
        for row in rows:
            load = loads.get(row["lane"], LaneLoad(row["lane"]))
            loads[load.lane] = replace(load, **{state: row["count"]})
    return sorted(loads.values(), key=lambda load: load.lane)


async def waiting_since_ms(tx: Tx, lane: str, priority: int) -> int | None:
    """When the first waiting job of a lane and priority is or was due; None without one."""
    found: int | None = await tx.fetch_val(
        "SELECT run_at_ms FROM core_jobs WHERE state = 'ready' AND lane = :lane"
        " AND priority = :priority ORDER BY run_at_ms LIMIT 1",
        {"lane": lane, "priority": priority},
    )
    return found


async def has_dead(tx: Tx) -> bool:
    """Whether there is a dead letter."""
    return bool(await tx.fetch_val("SELECT 1 FROM core_jobs WHERE state = 'dead' LIMIT 1"))


async def count_runners(tx: Tx, now_ms: int) -> int:
    """Number of processes that run jobs, by their leases."""
    return await lanes.count_runners(tx, now_ms)


@value_object
class LockedJob:
    """A job that nobody else claims or changes until the transaction ends. Its `job.attempts` are the
    completed ones."""

    job: Job
    state: State
    key: str | None
    #: When the lease of the process that has claimed it ends, in Unix milliseconds; None if none has.
    leased_until_ms: int | None = None


async def lock(tx: Tx, job_id: str) -> LockedJob | None:
    """None if there is no such job."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_jobs WHERE job_id = :job_id{for_update(tx.dialect)}",
        {"job_id": job_id},
    )
    if row is None:
        return None
    job = Job(
        job_id=job_id,
        name=row["name"],
        lane=row["lane"],
        payload=from_json(row["payload"]),
        attempts=row["attempts"],
        deliveries=row["deliveries"],
        created_at_ms=row["created_at_ms"],
        project_id=row["project_id"],
        priority=row["priority"],
        run_at_ms=row["run_at_ms"],
    )
    return LockedJob(job, row["state"], row["key"], row["leased_until_ms"])


async def make_due(tx: Tx, job_id: str, now_ms: int) -> None:
    """Makes a locked job due now; a dead letter gets all its attempts again."""
    await tx.execute(
        "UPDATE core_jobs SET run_at_ms = :now_ms, last_error = NULL, refused_from_ms = NULL,"
        " attempts = CASE WHEN state = 'dead' THEN 0 ELSE attempts END,"
        " deliveries = CASE WHEN state = 'dead' THEN 0 ELSE deliveries END, state = 'ready'"
        " WHERE job_id = :job_id",
        {"job_id": job_id, "now_ms": now_ms},
    )


async def remove(tx: Tx, job_id: str) -> None:
    """Deletes a locked job."""
    await tx.execute("DELETE FROM core_jobs WHERE job_id = :job_id", {"job_id": job_id})


async def has_open_twin(tx: Tx, job: Job) -> bool:
    """Whether another job with its lane, name and payload waits or runs."""
    rows = await tx.fetch_all(
        "SELECT job_id FROM core_jobs WHERE lane = :lane AND state IN ('ready', 'running')"
        " AND name = :name AND job_id <> :job_id"
        " AND payload = (SELECT payload FROM core_jobs WHERE job_id = :job_id) LIMIT 1",
        {"lane": job.lane, "name": job.name, "job_id": job.job_id},
    )
    return bool(rows)


def without_secrets(value: Any, name: str = "") -> Any:
    """A payload for people: values with the name of a secret are hidden."""
    if value is not None and any(part in name.lower() for part in _SECRET_PARTS):
        return HIDDEN
    if isinstance(value, Mapping):
        return {key: without_secrets(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [without_secrets(inner) for inner in value]
    return value


def _letter(row: Row) -> JobView:
    values = {column: row[column] for column in _COLUMNS.split(", ")}
    values["payload"] = without_secrets(json.loads(values["payload"]))
    return JobView(**values)
