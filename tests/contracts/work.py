"""Jobs to try every runner with: embedded on both databases, and woken by dramatiq on both brokers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from msgsvc_core.jobs import Job, JobContext, JobSpec, LaneSpec, NewJob, exponential
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory

on_every_runner = pytest.mark.parametrize(
    ("backend", "runner"),
    [
        ("sqlite", "embedded"),
        ("postgresql", "embedded"),
        ("postgresql", "redis"),
        ("postgresql", "rabbitmq"),
    ],
    indirect=True,
)

Handle = Callable[[JobContext, Job], Awaitable[None]]


class Work:
    """A plugin with one kind of job, `work`, on lanes `one`, `three` and `own`, that notes its runs."""

    def __init__(self, handle: Handle | None = None, **options: Any) -> None:
        self._handle = handle
        self._options: dict[str, Any] = {"backoff": exponential(2, 2), "jitter": 0.0, **options}
        self.runs: list[Any] = []

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("work", self._run, **self._options)]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [
            LaneSpec("one"),
            LaneSpec("three", concurrency=3),
            LaneSpec("batch", batch=10),
            LaneSpec("own", exclusive=True),
        ]

    async def _run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.runs.append(job.payload.get("n"))
            if self._handle is not None:
                await self._handle(ctx, job)


async def enqueue(service: Service, *jobs: NewJob) -> None:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, *jobs)


def work(n: int = 0, lane: str = "one", **options: Any) -> NewJob:
    return NewJob("work", {"n": n}, lane=lane, **options)


async def states(service: Service) -> list[tuple[str, int]]:
    """State and attempts of the jobs there are."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT state, attempts FROM core_jobs WHERE name = 'work' ORDER BY job_id"
        )
    return [(row["state"], row["attempts"]) for row in rows]


@asynccontextmanager
async def reopened(service: Service) -> AsyncIterator[None]:
    """The database of a stopped service, to look into."""
    await service.db.connect()
    try:
        yield
    finally:
        await service.db.disconnect()


async def change(service: Service, assignments: str, **params: Any) -> None:
    async with service.db.transaction() as tx:
        await tx.execute(f"UPDATE core_jobs SET {assignments} WHERE name = 'work'", params)


async def start(make_service: ServiceFactory, plugin: Work, **settings: Any) -> Service:
    return await make_service(extra_plugins=[("work", plugin)], **settings)


def holds(found: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """What `until` can wait for: that `found` answers something true."""

    async def look() -> Any:
        return found()

    return look
