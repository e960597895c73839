"""Work on many rows in steps, for jobs that delete expired rows."""

from collections.abc import Awaitable, Callable

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import JobContext, LeaseLost, Stopping

#: Rows deleted per step: some 10 ms, for which SQLite's other writers wait.
STEP = 2000

#: Processes up to that many rows in a transaction; returns how many.
Step = Callable[[Tx, int], Awaitable[int]]

#: An independent part of a job.
Part = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)


async def in_steps(ctx: JobContext, step: Step, limit: int | None = None) -> None:
    """Repeats steps of up to `limit` rows (`STEP` unless given), each in its own transaction, until one
    affects fewer. Raises `Stopping` when the runner is shutting down."""
    limit = STEP if limit is None else limit
    found = limit
    while found >= limit:
        if ctx.stopping:
            raise Stopping
        async with ctx.transaction() as tx:
            found = await step(tx, limit)


async def in_parts(*parts: Part) -> None:
    """Runs parts in sequence even if some fail, then raises the first error. `Stopping` and `LeaseLost` are
    raised immediately."""
    failed: list[Exception] = []
    for part in parts:
        try:
            await part()
        except (Stopping, LeaseLost):
            raise
        except Exception as error:
            # The job would restart with the same part, and those after it would never run.
            log.exception("job_part_failed")
            failed.append(error)
    if failed:
        raise failed[0]
