"""A plugin for measuring the queue itself: a job that does nothing, in a lane that takes a hundred."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, LaneSpec
from msgsvc_core.plugins.hookspecs import hookimpl

JOB, LANE = "empty.nothing", "empty"

#: Jobs of a claim, as many as the delivery of messages takes.
BATCH = 100

#: Batches at once; dramatiq's worker, beside it, has eight threads.
CONCURRENCY = 4


async def do_nothing(_ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """The runner removes the jobs."""


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [JobSpec(JOB, do_nothing)]


@hookimpl
def register_lanes() -> Sequence[LaneSpec]:
    return [LaneSpec(LANE, concurrency=CONCURRENCY, batch=BATCH)]
