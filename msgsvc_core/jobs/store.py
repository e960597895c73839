"""The SQL of jobs and lanes: claim, renew, complete, put back, bury."""

import json
from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list
from msgsvc_core.jobs.contract import Job

_DUE = (
    "((state = 'ready' AND run_at_ms <= :now_ms)"
    " OR (state = 'running' AND leased_until_ms <= :now_ms))"
)


async def claim(
    tx: Tx,
    lane: str,
    names: Sequence[str],
    *,
    runner_id: str,
    now_ms: int,
    lease_ms: int,
    limit: int,
) -> list[Job]:
    """Takes up to `limit` due jobs of a lane under a lease, most urgent first.

    Only jobs of `names` are taken: those that the runner has a handler for.
    """
    known, params = in_list("name", names)
    skip = "FOR UPDATE SKIP LOCKED" if tx.dialect == "postgresql" else ""
    # MATERIALIZED: a subquery with LIMIT may run again for every row, and then takes too many.
    rows = await tx.fetch_all(
        "WITH due AS MATERIALIZED (SELECT job_id FROM core_jobs"
        f" WHERE lane = :lane AND name IN {known} AND {_DUE}"
        f" ORDER BY priority, run_at_ms, job_id LIMIT :most {skip})"
        " UPDATE core_jobs SET state = 'running', leased_by = :runner_id,"
        " leased_until_ms = :until_ms, deliveries = deliveries + 1"
        " WHERE job_id IN (SELECT job_id FROM due)"
        " RETURNING job_id, name, lane, payload, attempts, deliveries, created_at_ms, project_id,"
        " priority, run_at_ms",
        {
            **params,
            "runner_id": runner_id,
            "until_ms": now_ms + lease_ms,
            "now_ms": now_ms,
            "lane": lane,
            "most": limit,
        },
    )
    # RETURNING has no order of its own.
    rows.sort(key=lambda row: (row["priority"], row["run_at_ms"], row["job_id"]))
    return [_job(row) for row in rows]


async def complete(tx: Tx, jobs: Sequence[Job], *, runner_id: str) -> bool:
    """Removes jobs that are still leased by this runner; False if one of them is not."""
    ids, params = in_list("id", [job.job_id for job in jobs])
    count = await tx.execute(
        f"DELETE FROM core_jobs WHERE job_id IN {ids}"
        " AND state = 'running' AND leased_by = :runner_id",
        {**params, "runner_id": runner_id},
    )
    return count == len(jobs)


async def put_back(
    tx: Tx, job: Job, *, runner_id: str, run_at_ms: int, attempts: int, error: str | None
) -> bool:
    """Makes a job wait until `run_at_ms`; False if this runner has lost it.

    This is an outcome, so the count of deliveries without one begins anew.
    """
    count = await tx.execute(
        "UPDATE core_jobs SET state = 'ready', run_at_ms = :run_at_ms, attempts = :attempts,"
        " deliveries = :attempts, last_error = :error, leased_by = NULL, leased_until_ms = NULL"
        " WHERE job_id = :job_id AND state = 'running' AND leased_by = :runner_id",
        {
            "job_id": job.job_id,
            "runner_id": runner_id,
            "run_at_ms": run_at_ms,
            "attempts": attempts,
            "error": error,
        },
    )
    return count == 1


async def bury(tx: Tx, job: Job, *, runner_id: str, error: str) -> None:
    """Makes a job a dead letter: kept for an operator, never run by itself."""
    await tx.execute(
        "UPDATE core_jobs SET state = 'dead', attempts = :attempts, last_error = :error,"
        " leased_by = NULL, leased_until_ms = NULL"
        " WHERE job_id = :job_id AND state = 'running' AND leased_by = :runner_id",
        {"job_id": job.job_id, "runner_id": runner_id, "attempts": job.attempts, "error": error},
    )


async def renew(tx: Tx, job_ids: Sequence[str], *, runner_id: str, until_ms: int) -> None:
    """Extends the leases of the runner's lanes, and of the jobs that it is working on."""
    params = {"runner_id": runner_id, "until_ms": until_ms}
    if job_ids:
        ids, id_params = in_list("id", job_ids)
        await tx.execute(
            "UPDATE core_jobs SET leased_until_ms = :until_ms"
            f" WHERE job_id IN {ids} AND leased_by = :runner_id AND state = 'running'",
            {**params, **id_params},
        )
    await tx.execute(
        "UPDATE core_lanes SET leased_until_ms = :until_ms WHERE owner = :runner_id", params
    )


async def release(tx: Tx, *, runner_id: str) -> None:
    """Gives back everything a stopping runner still holds, so that another need not wait."""
    await tx.execute(
        "UPDATE core_jobs SET state = 'ready', deliveries = deliveries - 1,"
        " leased_by = NULL, leased_until_ms = NULL"
        " WHERE leased_by = :runner_id AND state = 'running'",
        {"runner_id": runner_id},
    )
    await tx.execute("DELETE FROM core_lanes WHERE owner = :runner_id", {"runner_id": runner_id})


async def own_lane(tx: Tx, lane: str, *, runner_id: str, now_ms: int, lease_ms: int) -> bool:
    """Takes or keeps an exclusive lane; False while another runner's lease on it holds."""
    return bool(
        await tx.execute(
            "INSERT INTO core_lanes (lane, owner, leased_until_ms)"
            " VALUES (:lane, :runner_id, :until_ms)"
            " ON CONFLICT (lane) DO UPDATE SET owner = :runner_id, leased_until_ms = :until_ms"
            " WHERE core_lanes.owner = :runner_id OR core_lanes.leased_until_ms <= :now_ms",
            {
                "lane": lane,
                "runner_id": runner_id,
                "until_ms": now_ms + lease_ms,
                "now_ms": now_ms,
            },
        )
    )


async def lanes_with_work(tx: Tx, names: Sequence[str] | None = None) -> dict[str, int]:
    """Each lane with open jobs, and the Unix milliseconds from which one is due.

    With `names`, only jobs of those kinds count.
    """
    known, params = in_list("name", names) if names else ("", {})
    rows = await tx.fetch_all(
        "SELECT lane, MIN(CASE WHEN state = 'ready' THEN run_at_ms ELSE leased_until_ms END) AS due"
        f" FROM core_jobs WHERE state <> 'dead'{f' AND name IN {known}' if names else ''}"
        " GROUP BY lane",
        params,
    )
    return {row["lane"]: row["due"] for row in rows}


async def next_due(tx: Tx, lane: str, names: Sequence[str]) -> int | None:
    """When the lane's next waiting job of `names` is due, in Unix milliseconds; None without one."""
    known, params = in_list("name", names)
    due: int | None = await tx.fetch_val(
        "SELECT MIN(run_at_ms) FROM core_jobs"
        f" WHERE lane = :lane AND state = 'ready' AND name IN {known}",
        {"lane": lane, **params},
    )
    return due


async def names_without_handler(tx: Tx, names: Sequence[str]) -> list[str]:
    """Names of waiting jobs that are none of `names`: their plugin is not loaded."""
    known, params = in_list("name", names)
    rows = await tx.fetch_all(
        "SELECT DISTINCT name FROM core_jobs"
        f" WHERE state <> 'dead' AND name NOT IN {known} ORDER BY name",
        params,
    )
    return [row["name"] for row in rows]


async def count_by_state(tx: Tx) -> dict[str, int]:
    """How many jobs are `ready`, `running` and `dead`."""
    rows = await tx.fetch_all("SELECT state, COUNT(*) AS count FROM core_jobs GROUP BY state")
    return {row["state"]: row["count"] for row in rows}


def _job(row: Row) -> Job:
    return Job(
        job_id=row["job_id"],
        name=row["name"],
        lane=row["lane"],
        payload=json.loads(row["payload"]),
        attempts=row["attempts"] + 1,
        deliveries=row["deliveries"],
        created_at_ms=row["created_at_ms"],
        project_id=row["project_id"],
    )
