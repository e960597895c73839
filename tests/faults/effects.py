"""A plugin for killing workers: jobs that write a row, each in the transaction that ends them."""

import os
import signal
from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, LaneSpec, exponential
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.plugins.hookspecs import hookimpl

#: Made by the tests: one row for every time that a job's effect was committed.
TABLE = "CREATE TABLE effects (number BIGINT NOT NULL, created_at_ms BIGINT, done_at_ms BIGINT)"

WRITE, KILL, RAISE = "effects.write", "effects.kill", "effects.raise"


async def write(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """The effect and the end of each job are one."""
    async with ctx.completing(*jobs) as tx:
        await tx.insert_many(
            "effects",
            [
                {
                    "number": job.payload["number"],
                    "created_at_ms": job.created_at_ms,
                    "done_at_ms": SystemClock().now_ms(),
                }
                for job in jobs
            ],
        )


async def kill(_ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """A job that takes its process along."""
    os.kill(os.getpid(), signal.SIGKILL)


async def fail(_ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """A job that can't be done."""
    raise RuntimeError("always")


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [
        JobSpec(WRITE, write),
        JobSpec(KILL, kill, max_attempts=3),
        JobSpec(RAISE, fail, max_attempts=3, backoff=exponential(0.2, 1), jitter=0),
    ]


@hookimpl
def register_lanes() -> Sequence[LaneSpec]:
    return [LaneSpec("effects", concurrency=4, batch=20), LaneSpec("poison", batch=5)]
