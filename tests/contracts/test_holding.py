"""A transaction in which a job is still its runner's, on both databases."""

import asyncio
from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, LeaseLost, NewJob
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import settled, until
from msgsvc_devkit.fixtures import ServiceFactory


class Steps:
    """A plugin whose job writes a step down, waits for `go_on`, and writes another."""

    def __init__(self) -> None:
        self.steps = 0
        self.lost = False
        self.go_on = asyncio.Event()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("steps", self.run)]

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        async with ctx.holding(*jobs):
            self.steps += 1
        await self.go_on.wait()
        try:
            async with ctx.holding(*jobs):
                self.steps += 1
        except LeaseLost:
            self.lost = True
            raise


async def test_steps_of_a_job_that_is_held_are_written(make_service: ServiceFactory) -> None:
    plugin = Steps()
    plugin.go_on.set()
    service = await make_service(extra_plugins=[("steps", plugin)])

    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("steps"))
    await settled(service)

    assert (plugin.steps, plugin.lost) == (2, False)


async def test_a_step_of_a_job_that_another_runner_took_is_not_written(
    make_service: ServiceFactory,
) -> None:
    plugin = Steps()
    service = await make_service(extra_plugins=[("steps", plugin)])
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("steps"))

    async def has_begun() -> bool:
        return plugin.steps == 1

    await until(has_begun)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET leased_by = 'another' WHERE name = 'steps'")
    plugin.go_on.set()

    async def has_lost_it() -> bool:
        return plugin.lost

    await until(has_lost_it)
    assert plugin.steps == 1
