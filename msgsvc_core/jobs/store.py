"""The SQL of jobs in their lanes: inspect, claim, renew, complete, reschedule, dead-letter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import Dialect, any_of, for_update, key_params, key_table
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.json import from_json
from msgsvc_core.kernel.values import value_object

_CLAIMED = (
    "job_id, name, lane, payload, attempts, deliveries, created_at_ms, project_id, priority,"
    " run_at_ms, refused_from_ms, traceparent"
)

# The first job of each priority, one index step each, however many jobs wait. A plain search for due jobs
# would scan all later ones of a more urgent priority. (No MIN(): PostgreSQL reads the whole lane for it
# before it has statistics.)
# PostgreSQL keeps the plan that it made while there were few jobs, and then joined by reading all of them:
# so there it has nothing to join.
_LOOK: Mapping[Dialect, str] = {
    "postgresql": "WITH RECURSIVE firsts AS ("
    " (SELECT priority, run_at_ms FROM core_jobs WHERE lane = :lane AND state = 'ready'"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1)"
    " UNION ALL"
    " SELECT later.* FROM firsts CROSS JOIN LATERAL ("
    "SELECT priority, run_at_ms FROM core_jobs"
    " WHERE lane = :lane AND state = 'ready' AND priority > firsts.priority"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1) AS later)"
    " SELECT priority, run_at_ms AS due_ms FROM firsts",
    "sqlite": "WITH RECURSIVE firsts (job_id) AS ("
    " SELECT (SELECT job_id FROM core_jobs WHERE lane = :lane AND state = 'ready'"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1)"
    " UNION ALL"
    " SELECT (SELECT later.job_id FROM core_jobs AS later WHERE later.lane = :lane"
    " AND later.state = 'ready' AND later.priority > this.priority"
    " ORDER BY later.priority, later.run_at_ms, later.job_id LIMIT 1)"
    " FROM firsts JOIN core_jobs AS this ON this.job_id = firsts.job_id)"
    " SELECT core_jobs.priority, core_jobs.run_at_ms AS due_ms"
    " FROM firsts JOIN core_jobs ON core_jobs.job_id = firsts.job_id",
}
_LEASE_ENDS = (
    " UNION ALL SELECT NULL, MIN(leased_until_ms) FROM core_jobs"
    " WHERE lane = :lane AND state = 'running'"
)

_READY = "state = 'ready' AND priority = :priority AND run_at_ms <= :now_ms"
# Jobs of a crashed runner are claimed again. A job during which two runners crashed may be the cause, and is
# run alone, so that no other job becomes a dead letter with it.
_EXPIRED = "state = 'running' AND leased_until_ms <= :over_ms AND deliveries <= attempts + 1"
_SUSPECT = "state = 'running' AND leased_until_ms <= :over_ms AND deliveries > attempts + 1"


@dataclass(frozen=True, slots=True)
class LaneSnapshot:
    """The state of a lane: for each priority, the lowest first, when its first job is due; and when the
    first lease of its running jobs ends. Unix milliseconds."""

    levels: tuple[tuple[int, int], ...]
    lease_ends_ms: int | None

    @property
    def due_ms(self) -> int | None:
        """When the first waiting job is due; None without one."""
        return min((due_ms for _, due_ms in self.levels), default=None)


async def read_lane(tx: Tx, lane: str) -> LaneSnapshot:
    """Reads the state of a lane, whether or not there are handlers for its jobs."""
    levels: list[tuple[int, int]] = []
    lease_ends_ms = None
    for row in await tx.fetch_all(_LOOK[tx.dialect] + _LEASE_ENDS, {"lane": lane}):
        if row["priority"] is None:
            lease_ends_ms = row["due_ms"]
        else:
            levels.append((row["priority"], row["due_ms"]))
    return LaneSnapshot(tuple(sorted(levels)), lease_ends_ms)


async def order_again(tx: Tx, lane: str, found: LaneSnapshot, *, to_ms: int, from_ms: int) -> bool:
    """After the clock was set back from `from_ms` to `to_ms`: makes the jobs due that were due when they
    were enqueued, before that or since, in the order of their ids. Returns whether there were any."""
    changed = 0
    for priority, _ in found.levels:
        changed += await tx.execute(
            "UPDATE core_jobs SET run_at_ms = :to_ms"
            " WHERE lane = :lane AND state = 'ready' AND priority = :priority"
            " AND run_at_ms > :to_ms AND run_at_ms <= :from_ms AND run_at_ms <= created_at_ms",
            {"lane": lane, "priority": priority, "to_ms": to_ms, "from_ms": from_ms},
        )
    return changed > 0


async def claim(
    tx: Tx,
    lane: str,
    names: Sequence[str],
    found: LaneSnapshot,
    *,
    runner_id: str,
    now_ms: int,
    over_ms: int,
    lease_ms: int,
    limit: int,
    suspects: bool,
) -> list[Job]:
    """Claims up to `limit` due jobs of a lane under a lease: first those whose runner crashed, then the most
    urgent. With `suspects`, a job during which several runners crashed comes first, alone.

    Only jobs of `names`, for which the runner has handlers, are claimed. Leases that end at or before
    `over_ms` have expired (`LeaseClock`).
    """
    which: list[tuple[str, int | None]] = []
    if found.lease_ends_ms is not None and found.lease_ends_ms <= over_ms:
        which += [(_SUSPECT, None)] if suspects else []
        which.append((_EXPIRED, None))
    which += [(_READY, level) for level, due_ms in found.levels if due_ms <= now_ms]
    common = {
        "runner_id": runner_id,
        "until_ms": now_ms + lease_ms,
        "now_ms": now_ms,
        "over_ms": over_ms,
        "lane": lane,
    }
    jobs: list[Job] = []
    for condition, level in which:
        params: dict[str, object] = {
            **common,
            "most": 1 if condition is _SUSPECT else limit - len(jobs),
        }
        if level is not None:
            params["priority"] = level
        rows = await tx.fetch_all(*_claim_statement(tx, condition, names, params))
        # RETURNING has no defined order.
        rows.sort(key=itemgetter(*_order(condition)))
        jobs += map(_job, rows)
        if len(jobs) >= limit or (jobs and condition is _SUSPECT):
            break
    return jobs


def _order(condition: str) -> tuple[str, ...]:
    """Columns by which jobs are claimed. Those of a crashed runner by their creation: it may have been about
    to reschedule one behind another that is due later."""
    is_ready = condition is _READY
    return ("priority", "run_at_ms", "job_id") if is_ready else ("priority", "job_id")


def _claim_statement(
    tx: Tx, condition: str, names: Sequence[str], params: dict[str, object]
) -> tuple[str, dict[str, object]]:
    known, known_params = any_of("name", "names", names, tx.dialect)
    due = (
        f"SELECT job_id FROM core_jobs WHERE lane = :lane AND {condition} AND {known}"
        f" ORDER BY {', '.join(_order(condition))} LIMIT :most"
    )
    if tx.dialect == "postgresql":
        # As an array: a join would be planned for a tenth of the table, and read all of it.
        these = f"job_id = ANY(ARRAY({due} FOR UPDATE SKIP LOCKED))"
        before = ""
    else:
        # MATERIALIZED: a subquery with LIMIT may run again for every row, and then takes too many.
        these, before = "job_id IN (SELECT job_id FROM due)", f"WITH due AS MATERIALIZED ({due})"
    sql = (
        f"{before} UPDATE core_jobs SET state = 'running', leased_by = :runner_id,"
        " leased_until_ms = :until_ms, deliveries = deliveries + 1"
        f" WHERE {these} RETURNING {_CLAIMED}"
    )
    return sql, {**params, **known_params}


async def take_overdue(tx: Tx, lane: str, name: str, *, until_ms: int, limit: int) -> list[Job]:
    """Deletes up to `limit` jobs of a lane and a name that have been due since `until_ms`, and that wait, or
    whose runner has been gone since then; returns them."""
    params = {"lane": lane, "name": name, "until_ms": until_ms}
    found = await read_lane(tx, lane)
    which = [
        (
            "state = 'ready' AND priority = :priority AND run_at_ms <= :until_ms",
            "run_at_ms, job_id",
            {"priority": priority},
        )
        for priority, due_ms in found.levels
        if due_ms <= until_ms
    ]
    if found.lease_ends_ms is not None and found.lease_ends_ms <= until_ms:
        condition = "state = 'running' AND leased_until_ms <= :until_ms AND run_at_ms <= :until_ms"
        which.append((condition, "job_id", {}))
    jobs: list[Job] = []
    for condition, order, more in which:
        due = (
            f"SELECT job_id FROM core_jobs WHERE lane = :lane AND {condition} AND name = :name"
            f" ORDER BY {order} LIMIT :most"
        )
        # As in `_claim_statement`.
        if tx.dialect == "postgresql":
            statement = (
                f"DELETE FROM core_jobs WHERE job_id = ANY(ARRAY({due} FOR UPDATE SKIP LOCKED))"
            )
        else:
            statement = (
                f"WITH due AS MATERIALIZED ({due}) DELETE FROM core_jobs"
                " WHERE job_id IN (SELECT job_id FROM due)"
            )
        rows = await tx.fetch_all(
            f"{statement} RETURNING {_CLAIMED}", {**params, **more, "most": limit - len(jobs)}
        )
        jobs += map(_job, rows)
        if len(jobs) >= limit:
            break
    return jobs


async def running(tx: Tx, lane: str, name: str) -> list[Job]:
    """A lane's jobs of one name that are running now, or were when their runner crashed."""
    rows = await tx.fetch_all(
        f"SELECT {_CLAIMED} FROM core_jobs"
        " WHERE lane = :lane AND state = 'running' AND name = :name",
        {"lane": lane, "name": name},
    )
    return [_job(row) for row in rows]


async def interrupt(tx: Tx, lane: str, *, runner_id: str) -> None:
    """Ends the leases of other runners on an exclusive lane's jobs, which its new owner has taken over.

    They could end a little after that of the lane. Meanwhile the new owner would claim what was enqueued
    behind them.
    """
    await tx.execute(
        "UPDATE core_jobs SET leased_until_ms = 0"
        " WHERE lane = :lane AND state = 'running' AND leased_by <> :runner_id",
        {"lane": lane, "runner_id": runner_id},
    )


async def list_interrupted(tx: Tx, lane: str) -> list[Job]:
    """Jobs of an exclusive lane that its previous owner was running, and that its new one has not claimed
    yet."""
    rows = await tx.fetch_all(
        f"SELECT {_CLAIMED} FROM core_jobs"
        " WHERE lane = :lane AND state = 'running' AND leased_until_ms = 0",
        {"lane": lane},
    )
    return [_job(row) for row in rows]


async def list_postponed(tx: Tx, lane: str) -> list[Job]:
    """Jobs of a lane that were rescheduled, or enqueued for a later time."""
    rows = await tx.fetch_all(
        f"SELECT {_CLAIMED} FROM core_jobs"
        " WHERE lane = :lane AND state = 'ready' AND run_at_ms > created_at_ms",
        {"lane": lane},
    )
    return [_job(row) for row in rows]


async def has_due(tx: Tx, lane: str, names: Sequence[str], now_ms: int) -> bool:
    """Whether a lane has a due job of `names`, even one that another runner is just claiming."""
    known, params = any_of("name", "names", names, tx.dialect)
    return bool(
        await tx.fetch_all(
            "SELECT job_id FROM core_jobs"
            f" WHERE lane = :lane AND state = 'ready' AND run_at_ms <= :now_ms AND {known} LIMIT 1",
            {"lane": lane, "now_ms": now_ms, **params},
        )
    )


async def has_due_by(tx: Tx, lane: str, until_ms: int) -> bool:
    """Whether a lane has a waiting or running job that is due at that time."""
    found = await tx.fetch_val(
        "SELECT 1 AS found FROM core_jobs WHERE lane = :lane AND state <> 'dead'"
        " AND run_at_ms <= :until_ms LIMIT 1",
        {"lane": lane, "until_ms": until_ms},
    )
    return found is not None


async def has_waiting(tx: Tx, lane: str, due_by: Mapping[int, int]) -> bool:
    """Whether a lane has an unclaimed job of one of the priorities that is due by the given time."""
    conditions, params = [], dict[str, Any](lane=lane)
    for number, (priority, until_ms) in enumerate(due_by.items()):
        conditions.append(f"(priority = :priority_{number} AND run_at_ms <= :until_ms_{number})")
        params |= {f"priority_{number}": priority, f"until_ms_{number}": until_ms}
    found = await tx.fetch_all(
        "SELECT 1 AS found FROM core_jobs WHERE lane = :lane AND state = 'ready'"
        f" AND ({' OR '.join(conditions)}) LIMIT 1",
        params,
    )
    return bool(found)


async def find_unclaimed(
    tx: Tx, lane: str, name: str, *, until_ms: int, containing: str
) -> list[tuple[str, Any]]:
    """Id and payload of a lane's jobs of one name, also dead ones, created until then, that no runner has
    claimed and whose payload contains a text."""
    rows = await tx.fetch_all(
        "SELECT job_id, payload FROM core_jobs WHERE lane = :lane AND state IN ('ready', 'dead')"
        " AND name = :name AND created_at_ms <= :until_ms AND payload LIKE :pattern",
        {"lane": lane, "name": name, "until_ms": until_ms, "pattern": f"%{containing}%"},
    )
    return [(row["job_id"], from_json(row["payload"])) for row in rows]


async def discard_unclaimed(tx: Tx, job_ids: Sequence[str]) -> None:
    """Deletes those of the jobs that no runner has claimed."""
    these, params = any_of("job_id", "ids", job_ids, tx.dialect)
    await tx.execute(f"DELETE FROM core_jobs WHERE {these} AND state IN ('ready', 'dead')", params)


async def count_by_lane(tx: Tx, now_ms: int, names: Sequence[str]) -> list[Row]:
    """`lane`, `state`, `count` and `oldest_ms`, when the first of them was or is to run.

    A job that waits for its time is `delayed`; one that is due and waits for a runner is `ready`; one that is
    not of `names`, for which there are handlers, and is not dead is `without_handler`.
    """
    known, params = any_of("name", "names", names, tx.dialect)
    return await tx.fetch_all(
        "SELECT lane, CASE WHEN state = 'dead' THEN state"
        f" WHEN NOT ({known}) THEN 'without_handler'"
        " WHEN state = 'ready' AND run_at_ms > :now_ms THEN 'delayed' ELSE state END AS state,"
        " COUNT(*) AS count, MIN(run_at_ms) AS oldest_ms FROM core_jobs GROUP BY 1, 2",
        {**params, "now_ms": now_ms},
    )


async def lock(tx: Tx, jobs: Sequence[Job], *, runner_id: str) -> bool:
    """Keeps this runner's leases on jobs until the transaction ends; False if it has lost one."""
    these, params = any_of("job_id", "ids", [job.job_id for job in jobs], tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT job_id FROM core_jobs WHERE {these} AND state = 'running'"
        f" AND leased_by = :runner_id{for_update(tx.dialect)}",
        {**params, "runner_id": runner_id},
    )
    return len(rows) == len(jobs)


async def reset_deliveries(tx: Tx, jobs: Sequence[Job]) -> None:
    """Resets the delivery count of running jobs to the current delivery."""
    these, params = any_of("job_id", "ids", [job.job_id for job in jobs], tx.dialect)
    await tx.execute(
        f"UPDATE core_jobs SET deliveries = attempts + 1 WHERE {these} AND state = 'running'",
        params,
    )


async def complete(tx: Tx, jobs: Sequence[Job], *, runner_id: str) -> bool:
    """Deletes jobs that are still leased by this runner; False if it has lost one."""
    these, params = any_of("job_id", "ids", [job.job_id for job in jobs], tx.dialect)
    count = await tx.execute(
        f"DELETE FROM core_jobs WHERE {these} AND state = 'running' AND leased_by = :runner_id",
        {**params, "runner_id": runner_id},
    )
    return count == len(jobs)


@value_object
class Waiting:
    """A job rescheduled until `run_at_ms`, with its new `attempts` and `error`."""

    job: Job
    run_at_ms: int
    attempts: int
    error: str | None = None


async def reschedule(tx: Tx, back: Sequence[Waiting], *, runner_id: str) -> set[str]:
    """Reschedules jobs; returns the ids of those that this runner had not lost.

    Rescheduling is an outcome, so the count of deliveries without one restarts.
    """
    if not back:
        return set()
    rows = await tx.fetch_all(
        "UPDATE core_jobs AS j SET state = 'ready', run_at_ms = CAST(keys.run_at_ms AS BIGINT),"
        " attempts = CAST(keys.attempts AS INTEGER), deliveries = CAST(keys.attempts AS INTEGER),"
        " last_error = keys.error, leased_by = NULL, leased_until_ms = NULL"
        f" FROM {key_table(('id', 'run_at_ms', 'attempts', 'error'), tx.dialect)}"
        " WHERE j.job_id = keys.id AND j.state = 'running' AND j.leased_by = :runner_id"
        " RETURNING job_id",
        {
            **key_params(
                [
                    (one.job.job_id, str(one.run_at_ms), str(one.attempts), one.error)
                    for one in back
                ],
                tx.dialect,
            ),
            "runner_id": runner_id,
        },
    )
    return {row["job_id"] for row in rows}


async def record_refused(tx: Tx, jobs: Sequence[Job], now_ms: int) -> None:
    """Records when a platform first rate-limited jobs, unless that is recorded already."""
    these, params = any_of("job_id", "ids", [job.job_id for job in jobs], tx.dialect)
    await tx.execute(
        f"UPDATE core_jobs SET refused_from_ms = :now_ms WHERE {these} AND refused_from_ms IS NULL",
        {**params, "now_ms": now_ms},
    )


async def release_jobs(tx: Tx, jobs: Sequence[Job], *, runner_id: str) -> bool:
    """Returns jobs to the queue at their old position, as if they had never been claimed; False if one is
    lost."""
    these, params = any_of("job_id", "ids", [job.job_id for job in jobs], tx.dialect)
    count = await tx.execute(
        "UPDATE core_jobs SET state = 'ready', deliveries = deliveries - 1,"
        " leased_by = NULL, leased_until_ms = NULL"
        f" WHERE {these} AND state = 'running' AND leased_by = :runner_id",
        {**params, "runner_id": runner_id},
    )
    return count == len(jobs)


async def dead_letter(tx: Tx, job: Job, *, runner_id: str, error: str) -> bool:
    """Makes a job a dead letter: kept for an operator, never run automatically. False if the lease was
    lost."""
    count = await tx.execute(
        "UPDATE core_jobs SET state = 'dead', attempts = :attempts, last_error = :error,"
        " leased_by = NULL, leased_until_ms = NULL"
        " WHERE job_id = :job_id AND state = 'running' AND leased_by = :runner_id",
        {"job_id": job.job_id, "runner_id": runner_id, "attempts": job.attempts, "error": error},
    )
    return count == 1


async def renew(tx: Tx, job_ids: Sequence[str], *, runner_id: str, until_ms: int) -> None:
    """Extends the leases of the jobs that the runner is running."""
    if not job_ids:
        return
    these, params = any_of("job_id", "ids", job_ids, tx.dialect)
    await tx.execute(
        f"UPDATE core_jobs SET leased_until_ms = :until_ms WHERE {these}"
        " AND leased_by = :runner_id AND state = 'running'",
        {**params, "runner_id": runner_id, "until_ms": until_ms},
    )


async def release(tx: Tx, *, runner_id: str) -> None:
    """Releases the jobs of a stopping runner, so that others need not wait."""
    await tx.execute(
        "UPDATE core_jobs SET state = 'ready', deliveries = deliveries - 1,"
        " leased_by = NULL, leased_until_ms = NULL"
        " WHERE leased_by = :runner_id AND state = 'running'",
        {"runner_id": runner_id},
    )


async def names_without_handler(tx: Tx, names: Sequence[str]) -> list[str]:
    """Names of waiting jobs that are not in `names`: their plugin is not loaded."""
    known, params = any_of("name", "names", names, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT DISTINCT name FROM core_jobs"
        f" WHERE state <> 'dead' AND NOT ({known}) ORDER BY name",
        params,
    )
    return [row["name"] for row in rows]


async def remove_with_key(tx: Tx, names: Sequence[str], key: str) -> None:
    """Removes the jobs of `names` with that key that are not running."""
    known, params = any_of("name", "names", names, tx.dialect)
    await tx.execute(
        f"DELETE FROM core_jobs WHERE key = :key AND state <> 'running' AND {known}",
        {**params, "key": key},
    )


async def remove_unhandled_with_key(
    tx: Tx, names: Sequence[str], key: str, now_ms: int
) -> list[str]:
    """Removes the jobs with that key that are not of `names` and that nobody runs; their names."""
    known, params = any_of("name", "names", names, tx.dialect)
    rows = await tx.fetch_all(
        f"DELETE FROM core_jobs WHERE key = :key AND NOT ({known}) AND (state = 'ready'"
        " OR (state = 'running' AND leased_until_ms < :now_ms)) RETURNING name",
        {**params, "key": key, "now_ms": now_ms},
    )
    return sorted(row["name"] for row in rows)


async def open_with_key(tx: Tx, names: Sequence[str], key: str) -> dict[str, int]:
    """Those of `names` that have a waiting or running job with that key, and when it is or was due."""
    known, params = any_of("name", "names", names, tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT name, run_at_ms FROM core_jobs WHERE {known} AND key = :key AND key IS NOT NULL"
        " AND state <> 'dead'",
        {**params, "key": key},
    )
    return {row["name"]: row["run_at_ms"] for row in rows}


async def bring_forward(tx: Tx, name: str, key: str, from_ms: int, now_ms: int) -> None:
    """Makes the job with that key due now if it waits until `from_ms` or longer."""
    await tx.execute(
        "UPDATE core_jobs SET run_at_ms = :now_ms WHERE name = :name AND key = :key"
        " AND state = 'ready' AND run_at_ms >= :from_ms",
        {"name": name, "key": key, "from_ms": from_ms, "now_ms": now_ms},
    )


async def count_by_state(tx: Tx, now_ms: int) -> dict[str, int]:
    """How many jobs are `ready`, `delayed` (ready, but not before a later time), `running` and `dead`."""
    rows = await tx.fetch_all(
        "SELECT state, COUNT(*) AS count,"
        " SUM(CASE WHEN state = 'ready' AND run_at_ms > :now_ms THEN 1 ELSE 0 END) AS delayed"
        " FROM core_jobs GROUP BY state",
        {"now_ms": now_ms},
    )
    counts = {row["state"]: row["count"] for row in rows}
    if delayed := sum(int(row["delayed"]) for row in rows):
        counts |= {"ready": counts["ready"] - delayed, "delayed": delayed}
    return counts


def _job(row: Row) -> Job:
    # Columns of `_CLAIMED`, in order.
    job_id, name, lane, payload, attempts, deliveries, created_at_ms, project_id, *order = row
    content = from_json(payload)
    return Job(
        job_id, name, lane, content, attempts + 1, deliveries, created_at_ms, project_id, *order
    )
