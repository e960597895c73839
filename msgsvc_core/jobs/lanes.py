"""The SQL of lanes and runners: ownership, pending work, and live runners."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect, for_update
from msgsvc_core.jobs.lease_clock import Held

# The first job of each priority of each lane. Each step is one lookup in `core_jobs_ready`, so the cost is
# the number of such pairs, however many jobs wait. PostgreSQL keeps the plan that it made while there were
# few jobs, and then joined by reading all of them at every step: so there it has nothing to join.
_EVERYWHERE: Mapping[Dialect, str] = {
    "postgresql": "WITH RECURSIVE firsts AS ("
    " (SELECT lane, priority, run_at_ms FROM core_jobs WHERE state = 'ready'"
    " ORDER BY lane, priority, run_at_ms, job_id LIMIT 1)"
    " UNION ALL"
    " SELECT later.* FROM firsts CROSS JOIN LATERAL ("
    "SELECT lane, priority, run_at_ms FROM core_jobs"
    " WHERE state = 'ready' AND (lane, priority) > (firsts.lane, firsts.priority)"
    " ORDER BY lane, priority, run_at_ms, job_id LIMIT 1) AS later)"
    " SELECT lane, run_at_ms AS due_ms FROM firsts",
    "sqlite": "WITH RECURSIVE firsts (job_id) AS ("
    " SELECT (SELECT job_id FROM core_jobs WHERE state = 'ready'"
    " ORDER BY lane, priority, run_at_ms, job_id LIMIT 1)"
    " UNION ALL"
    " SELECT COALESCE("
    "(SELECT later.job_id FROM core_jobs AS later WHERE later.state = 'ready'"
    " AND later.lane = this.lane AND later.priority > this.priority"
    " ORDER BY later.priority, later.run_at_ms, later.job_id LIMIT 1),"
    "(SELECT later.job_id FROM core_jobs AS later WHERE later.state = 'ready'"
    " AND later.lane > this.lane"
    " ORDER BY later.lane, later.priority, later.run_at_ms, later.job_id LIMIT 1))"
    " FROM firsts JOIN core_jobs AS this ON this.job_id = firsts.job_id)"
    " SELECT core_jobs.lane, core_jobs.run_at_ms AS due_ms"
    " FROM firsts JOIN core_jobs ON core_jobs.job_id = firsts.job_id",
}
_IN_OWNED: Mapping[Dialect, str] = {
    "postgresql": "WITH RECURSIVE firsts AS ("
    " SELECT first.* FROM core_lanes CROSS JOIN LATERAL ("
    "SELECT lane, priority, run_at_ms FROM core_jobs"
    " WHERE state = 'ready' AND lane = core_lanes.lane"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1) AS first"
    " WHERE core_lanes.owner = :runner_id"
    " UNION ALL"
    " SELECT later.* FROM firsts CROSS JOIN LATERAL ("
    "SELECT lane, priority, run_at_ms FROM core_jobs"
    " WHERE state = 'ready' AND lane = firsts.lane AND priority > firsts.priority"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1) AS later)"
    " SELECT lane, run_at_ms AS due_ms FROM firsts",
    "sqlite": "WITH RECURSIVE firsts (job_id) AS ("
    " SELECT (SELECT job_id FROM core_jobs WHERE lane = core_lanes.lane AND state = 'ready'"
    " ORDER BY priority, run_at_ms, job_id LIMIT 1) FROM core_lanes WHERE owner = :runner_id"
    " UNION ALL"
    " SELECT (SELECT later.job_id FROM core_jobs AS later WHERE later.state = 'ready'"
    " AND later.lane = this.lane AND later.priority > this.priority"
    " ORDER BY later.priority, later.run_at_ms, later.job_id LIMIT 1)"
    " FROM firsts JOIN core_jobs AS this ON this.job_id = firsts.job_id)"
    " SELECT core_jobs.lane, core_jobs.run_at_ms AS due_ms"
    " FROM firsts JOIN core_jobs ON core_jobs.job_id = firsts.job_id",
}


async def with_work(tx: Tx) -> dict[str, int]:
    """Each lane with waiting or running jobs, and from when one may be claimed, in Unix milliseconds: when
    it is due, or when its lease ends."""
    return await _due(
        tx,
        f"{_EVERYWHERE[tx.dialect]}"
        " UNION ALL SELECT lane, MIN(leased_until_ms) FROM core_jobs"
        " WHERE state = 'running' GROUP BY lane",
        {},
    )


async def owned_with_work(tx: Tx, runner_id: str) -> dict[str, int]:
    """Like `with_work`, for waiting jobs in the exclusive lanes that a runner owns."""
    return await _due(tx, _IN_OWNED[tx.dialect], {"runner_id": runner_id})


async def _due(tx: Tx, sql: str, params: dict[str, object]) -> dict[str, int]:
    lanes: dict[str, int] = {}
    for row in await tx.fetch_all(sql, params):
        lane, due_ms = row["lane"], row["due_ms"]
        lanes[lane] = min(due_ms, lanes.get(lane, due_ms))
    return lanes


async def owned_by_others(tx: Tx, *, runner_id: str, over_ms: int) -> set[str]:
    """Exclusive lanes that another runner has leased."""
    rows = await tx.fetch_all(
        "SELECT lane FROM core_lanes WHERE owner <> :runner_id AND leased_until_ms > :over_ms",
        {"runner_id": runner_id, "over_ms": over_ms},
    )
    return {row["lane"] for row in rows}


async def own(
    tx: Tx, lane: str, *, runner_id: str, now_ms: int, over_ms: int, lease_ms: int
) -> Literal["kept", "taken"] | None:
    """Renews or acquires an exclusive lane; None if another runner's lease is valid.

    A lane whose lease of ours expired is acquired again: another runner may have owned it meanwhile.
    """
    params = {
        "lane": lane,
        "runner_id": runner_id,
        "until_ms": now_ms + lease_ms,
        "over_ms": over_ms,
    }
    if await tx.execute(
        "UPDATE core_lanes SET leased_until_ms = :until_ms"
        " WHERE lane = :lane AND owner = :runner_id AND leased_until_ms > :over_ms",
        params,
    ):
        return "kept"
    taken = await tx.execute(
        "INSERT INTO core_lanes (lane, owner, leased_until_ms)"
        " VALUES (:lane, :runner_id, :until_ms)"
        " ON CONFLICT (lane) DO UPDATE SET owner = :runner_id, leased_until_ms = :until_ms"
        " WHERE core_lanes.owner = :runner_id OR core_lanes.leased_until_ms <= :over_ms",
        params,
    )
    return "taken" if taken else None


async def renew(
    tx: Tx,
    *,
    runner_id: str,
    name: str,
    key_ids: Sequence[str],
    now_ms: int,
    over_ms: int,
    lease_ms: int,
) -> None:
    """Extends the runner's leases on its lanes, and records that it is alive and what secret keys it has."""
    until = {"runner_id": runner_id, "until_ms": now_ms + lease_ms}
    await tx.execute(
        "UPDATE core_lanes SET leased_until_ms = :until_ms WHERE owner = :runner_id", until
    )
    await tx.execute(
        "INSERT INTO core_runners (runner_id, name, key_ids, leased_until_ms)"
        " VALUES (:runner_id, :name, :key_ids, :until_ms)"
        " ON CONFLICT (runner_id) DO UPDATE SET leased_until_ms = :until_ms",
        {**until, "name": name, "key_ids": " ".join(key_ids)},
    )
    await tx.execute(
        "DELETE FROM core_runners WHERE leased_until_ms <= :over_ms", {"over_ms": over_ms}
    )


async def renew_owned(tx: Tx, *, runner_id: str, until_ms: int) -> set[str]:
    """Extends the leases of a process that runs no jobs; returns those it still owns."""
    rows = await tx.fetch_all(
        "UPDATE core_lanes SET leased_until_ms = :until_ms WHERE owner = :runner_id RETURNING lane",
        {"runner_id": runner_id, "until_ms": until_ms},
    )
    return {row["lane"] for row in rows}


async def lock_owned(tx: Tx, lane: str, owner: str) -> bool:
    """Whether `owner` has leased a lane; nobody takes it over until `tx` ends."""
    found = await tx.fetch_val(
        "SELECT 1 AS found FROM core_lanes WHERE lane = :lane AND owner = :owner"
        + for_update(tx.dialect),
        {"lane": lane, "owner": owner},
    )
    return found is not None


async def leases_after(tx: Tx, from_ms: int) -> list[Held]:
    """Leases on jobs and lanes, and heartbeats of runners, that end later than that."""
    rows = await tx.fetch_all(
        "SELECT leased_by AS holder, leased_until_ms FROM core_jobs"
        " WHERE state = 'running' AND leased_until_ms > :from_ms"
        " UNION SELECT owner, leased_until_ms FROM core_lanes WHERE leased_until_ms > :from_ms"
        " UNION SELECT runner_id, leased_until_ms FROM core_runners"
        " WHERE leased_until_ms > :from_ms",
        {"from_ms": from_ms},
    )
    return [(row["holder"], row["leased_until_ms"]) for row in rows]


async def end_lease(tx: Tx, lease: Held) -> None:
    """Ends a lease of a dead runner, unless it has been renewed meanwhile."""
    holder, until_ms = lease
    this = ":holder AND leased_until_ms = :until_ms"
    for sql in (
        f"UPDATE core_jobs SET leased_until_ms = 0 WHERE state = 'running' AND leased_by = {this}",
        f"DELETE FROM core_lanes WHERE owner = {this}",
        f"DELETE FROM core_runners WHERE runner_id = {this}",
    ):
        await tx.execute(sql, {"holder": holder, "until_ms": until_ms})


async def release(tx: Tx, *, runner_id: str) -> None:
    """Releases a stopping runner's lanes, and removes the runner."""
    for sql in (
        "DELETE FROM core_lanes WHERE owner = :runner_id",
        "DELETE FROM core_runners WHERE runner_id = :runner_id",
    ):
        await tx.execute(sql, {"runner_id": runner_id})


async def runners_without_key(tx: Tx, key_id: str, now_ms: int) -> list[str]:
    """Machine and process of the live runners that do not know a secret key, by its id."""
    rows = await tx.fetch_all(
        "SELECT name, key_ids FROM core_runners WHERE leased_until_ms > :now_ms"
        " AND key_ids IS NOT NULL ORDER BY name",
        {"now_ms": now_ms},
    )
    return [row["name"] for row in rows if key_id not in row["key_ids"].split()]


async def count_runners(tx: Tx, now_ms: int) -> int:
    """Number of live runners, by their leases."""
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM core_runners WHERE leased_until_ms > :now_ms",
        {"now_ms": now_ms},
    )
    return found
