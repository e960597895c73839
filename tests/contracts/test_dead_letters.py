"""What becomes of what waits for a job that can't be done, on both databases."""

from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory


class Doomed:
    """A plugin whose job always fails, and which notes in a row that one is dead."""

    def __init__(self, on_dead_fails: bool = False) -> None:
        self._on_dead_fails = on_dead_fails
        self.errors: list[str] = []

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("doomed", self._run, max_attempts=1, on_dead=self._settle)]

    async def _run(self, _ctx: JobContext, _jobs: Sequence[Job]) -> None:
        raise RuntimeError("always")

    async def _settle(self, tx: Tx, job: Job, error: str) -> None:
        self.errors.append(error)
        await tx.insert(
            "core_lanes", {"lane": f"dead {job.payload['n']}", "owner": "x", "leased_until_ms": 0}
        )
        if self._on_dead_fails:
            raise ZeroDivisionError


async def _enqueue(service: Service, **options: Any) -> None:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("doomed", {"n": 1}, **options))


async def _found(service: Service) -> tuple[list[str], list[str]]:
    """The states of the jobs, and what the plugin wrote."""
    async with service.db.read() as tx:
        jobs = await tx.fetch_all("SELECT state FROM core_jobs WHERE name = 'doomed'")
        rows = await tx.fetch_all("SELECT lane FROM core_lanes WHERE lane LIKE 'dead %'")
    return [row["state"] for row in jobs], [row["lane"] for row in rows]


@pytest.mark.parametrize(("fails", "written"), [(False, ["dead 1"]), (True, [])])
async def test_the_owner_of_a_dead_job_settles_what_waits_for_it(
    make_service: ServiceFactory, fails: bool, written: list[str]
) -> None:
    plugin = Doomed(on_dead_fails=fails)
    service = await make_service(extra_plugins=[("doomed", plugin)])

    await _enqueue(service)
    await settled(service)

    assert plugin.errors == ["RuntimeError: always"]
    assert await _found(service) == (["dead"], written)


async def test_a_job_that_killed_its_runner_each_time_is_settled_too(
    make_service: ServiceFactory,
) -> None:
    plugin = Doomed()
    quiet = await make_service(extra_plugins=[("doomed", plugin)], jobs={"runner": "none"})
    await _enqueue(quiet)
    async with quiet.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET deliveries = 100")

    service = await make_service(
        extra_plugins=[("doomed", plugin)], database_url=quiet.settings.database_url
    )
    await settled(service)

    assert plugin.errors == ["its runner died each time"]
    assert await _found(service) == (["dead"], ["dead 1"])


class Persevering:
    """A plugin whose job is done in parts, and which notes how often it was delivered."""

    def __init__(self) -> None:
        self.deliveries: list[int] = []

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("doomed", self._run)]

    async def _run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        for job in jobs:
            async with ctx.holding(job) as tx:
                await ctx.progressed(tx, job)
            async with ctx.reading() as tx:
                left = await tx.fetch_val("SELECT deliveries FROM core_jobs WHERE name = 'doomed'")
            self.deliveries += [job.deliveries, left]


async def test_deaths_before_a_part_was_done_are_not_held_against_a_job(
    make_service: ServiceFactory,
) -> None:
    plugin = Persevering()
    quiet = await make_service(extra_plugins=[("doomed", plugin)], jobs={"runner": "none"})
    await _enqueue(quiet)
    async with quiet.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET deliveries = 5")

    service = await make_service(
        extra_plugins=[("doomed", plugin)], database_url=quiet.settings.database_url
    )
    await settled(service)

    assert plugin.deliveries == [6, 1]
    assert await _found(service) == ([], [])
