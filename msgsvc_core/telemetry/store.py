"""The SQL behind the gauges of jobs."""

from msgsvc_core.db import Row, Tx


async def jobs_by_lane(tx: Tx, now_ms: int) -> list[Row]:
    """`lane`, `state`, `count` and `oldest_ms`, when the first of them was or is to run.

    A job that waits for its time is `delayed`; one that is due and waits for a runner is `ready`.
    """
    return await tx.fetch_all(
        "SELECT lane, CASE WHEN state = 'ready' AND run_at_ms > :now_ms THEN 'delayed' ELSE state"
        " END AS state, COUNT(*) AS count, MIN(run_at_ms) AS oldest_ms FROM core_jobs GROUP BY 1, 2",
        {"now_ms": now_ms},
    )
