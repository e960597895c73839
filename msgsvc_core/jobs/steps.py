"""Work on many rows in steps, for jobs that delete expired rows."""

import time
from collections.abc import Awaitable, Callable
from itertools import count

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import JobContext, LeaseLost, Stopping

#: Rows of the first step, and the most of any.
STEP = 2000

#: Rows below which a step is not made smaller.
LEAST_STEP = 100

#: Seconds that a step should take, for which SQLite's other writers wait. One that takes twice as long, as
#: where rows are on many pages of a large file, is followed by one of half its rows.
STEP_S = 0.01

#: Steps after which a SQLite file is shrunk that has more free pages than this. Not after the last step: each
#: free page is looked for in the list of them, and a large first purge would leave a million.
STEPS_PER_LOOK, MOST_FREE_PAGES = 20, 20_000

#: Processes up to that many rows in a transaction; returns how many.
Step = Callable[[Tx, int], Awaitable[int]]

#: An independent part of a job.
Part = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)


async def in_steps(ctx: JobContext, step: Step, limit: int | None = None) -> None:
    """Repeats steps of up to `limit` rows (`STEP` unless given), each in its own transaction, until one
    affects fewer than it could. Steps that take long become smaller. A SQLite file shrinks in between.

    Raises `Stopping` when the runner is shutting down.
    """
    most = STEP if limit is None else limit
    rows = most
    for number in count(1):
        if ctx.stopping:
            raise Stopping
        async with ctx.transaction() as tx:
            # Not the wait for others, which says nothing of the step.
            begun_s = time.monotonic()
            found = await step(tx, rows)
        if found < rows:
            return
        rows = next_step(rows, most, time.monotonic() - begun_s)
        if number % STEPS_PER_LOOK == 0:
            await ctx.shrink_file(above=MOST_FREE_PAGES)


async def repeat(
    ctx: JobContext, step: Callable[[int], Awaitable[tuple[int, float]]], *, least: int, most: int
) -> None:
    """Repeats `step(limit)`, which returns how much it did and in how many seconds, until it does less than
    `limit`. That begins with `least`, and grows up to `most` while steps are short.

    Raises `Stopping` when the runner is shutting down.
    """
    limit = least
    while True:
        if ctx.stopping:
            raise Stopping
        done, took_s = await step(limit)
        if done < limit:
            return
        limit = next_step(limit, most, took_s, least=least)


def next_step(rows: int, most: int, took_s: float, *, least: int = LEAST_STEP) -> int:
    """How many rows the step after one of `rows` has, which took `took_s` seconds."""
    if took_s > 2 * STEP_S:
        return max(rows // 2, min(most, least))
    if took_s < STEP_S / 2:
        return min(rows * 2, most)
    return rows


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
