"""What an operator does about jobs, and who is told of it, on both databases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.kernel.errors import ApiError, Conflict, NotFound
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory


class Parcels:
    """A plugin whose parcels wait for their jobs; it keeps what it tells them in a table of the core.

    `parcel` puts back what it settled, `letter` can't, and nobody waits for a `card`.
    """

    def __init__(self, raises: Exception | None = None) -> None:
        self._raises = raises

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [
            JobSpec("parcel", self._run, on_dead=self._settle, on_retry=self._put_back),
            JobSpec("letter", self._run, on_dead=self._settle),
            JobSpec("card", self._run),
        ]

    async def _run(self, _ctx: JobContext, _jobs: Sequence[Job]) -> None:
        raise AssertionError("no runner is there")

    async def _settle(self, tx: Tx, job: Job, error: str) -> None:
        await self._tell(tx, job, f"settled: {error}")

    async def _put_back(self, tx: Tx, job: Job) -> None:
        state = await tx.fetch_val(
            "SELECT state FROM core_jobs WHERE job_id = :job_id", {"job_id": job.job_id}
        )
        await self._tell(tx, job, f"back while {state}")

    async def _tell(self, tx: Tx, job: Job, what: str) -> None:
        row = {"lane": f"told {job.payload['n']}", "owner": what, "leased_until_ms": 0}
        await tx.insert("core_lanes", row)
        if self._raises is not None:
            raise self._raises


@pytest.fixture
def parcels() -> Parcels:
    return Parcels()


async def _service(make_service: ServiceFactory, plugin: Parcels) -> Service:
    return await make_service(extra_plugins=[("parcels", plugin)], jobs={"runner": "none"})


async def _add(service: Service, name: str, state: str = "dead", **options: Any) -> str:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob(name, {"n": 1}, **options))
        job_id = await tx.fetch_val(
            "SELECT job_id FROM core_jobs WHERE name = :name", {"name": name}
        )
        await tx.execute(
            "UPDATE core_jobs SET state = :state, attempts = 10 WHERE job_id = :job_id",
            {"state": state, "job_id": job_id},
        )
    return str(job_id)


async def _states(service: Service) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT state FROM core_jobs WHERE key IS NULL")
    return [row["state"] for row in rows]


async def _told(service: Service) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT owner FROM core_lanes WHERE lane LIKE 'told %'")
    return [row["owner"] for row in rows]


async def _retry(service: Service, job_id: str) -> None:
    async with service.db.transaction() as tx:
        await service.job_admin.retry(tx, job_id)


async def _discard(service: Service, job_id: str) -> None:
    async with service.db.transaction() as tx:
        await service.job_admin.discard(tx, job_id)


async def test_what_a_dead_job_settled_is_put_back_before_it_is_ready_again(
    make_service: ServiceFactory, parcels: Parcels
) -> None:
    service = await _service(make_service, parcels)
    await _retry(service, await _add(service, "parcel"))

    assert await _told(service) == ["back while dead"]
    assert await _states(service) == ["ready"]


async def test_the_lane_of_a_job_that_is_run_again_is_woken(
    make_service: ServiceFactory, parcels: Parcels
) -> None:
    service = await _service(make_service, parcels)
    job_id = await _add(service, "parcel", lane="parcels")
    woken: list[tuple[str, int]] = []
    service.jobs.woken_by(lambda lane, run_at_ms: woken.append((lane, run_at_ms)))
    await _retry(service, job_id)

    assert woken == [("parcels", service.clock.now_ms())]


async def test_a_dead_job_for_which_nobody_waits_runs_again(
    make_service: ServiceFactory, parcels: Parcels
) -> None:
    service = await _service(make_service, parcels)
    await _retry(service, await _add(service, "card"))

    assert await _states(service) == ["ready"]


async def test_a_waiting_job_is_made_due_and_nothing_is_put_back(
    make_service: ServiceFactory, parcels: Parcels
) -> None:
    service = await _service(make_service, parcels)
    later_ms = service.clock.now_ms() + 3600_000
    await _retry(service, await _add(service, "parcel", "ready", run_at_ms=later_ms))

    async with service.db.read() as tx:
        run_at_ms = await tx.fetch_val("SELECT run_at_ms FROM core_jobs WHERE name = 'parcel'")
    assert run_at_ms == service.clock.now_ms()
    assert await _told(service) == []


@pytest.mark.parametrize(
    ("name", "raises", "why"),
    [
        ("parcel", Conflict("the parcel was lost; send another"), "the parcel was lost"),
        ("parcel", ZeroDivisionError(), "the log says why"),
        ("letter", None, "docs/guides/scaling-out.md"),
        ("stranger", None, "its plugin is not loaded"),
    ],
    ids=["by its kind", "by a fault of its kind", "settled for good", "of no loaded plugin"],
)
async def test_a_dead_job_that_would_come_to_nothing_is_not_run_again(
    make_service: ServiceFactory, name: str, raises: Exception | None, why: str
) -> None:
    service = await _service(make_service, Parcels(raises))
    job_id = await _add(service, name)

    with pytest.raises(ApiError, match=why):
        await _retry(service, job_id)

    assert await _states(service) == ["dead"]
    assert await _told(service) == []


@pytest.mark.parametrize("name", ["parcel", "letter"])
async def test_who_waits_for_a_job_that_is_discarded_is_told(
    make_service: ServiceFactory, parcels: Parcels, name: str
) -> None:
    service = await _service(make_service, parcels)
    await _discard(service, await _add(service, name, "ready"))

    assert await _told(service) == ["settled: an operator discarded it"]
    assert await _states(service) == []


@pytest.mark.parametrize(
    ("name", "state"), [("parcel", "dead"), ("card", "ready"), ("stranger", "ready")]
)
async def test_a_job_for_which_nobody_waits_is_discarded_in_silence(
    make_service: ServiceFactory, parcels: Parcels, name: str, state: str
) -> None:
    service = await _service(make_service, parcels)
    await _discard(service, await _add(service, name, state))

    assert await _told(service) == []
    assert await _states(service) == []


async def test_a_job_stays_if_who_waits_for_it_can_t_be_told(make_service: ServiceFactory) -> None:
    service = await _service(make_service, Parcels(ZeroDivisionError()))
    job_id = await _add(service, "parcel", "ready")

    with pytest.raises(Conflict, match="could not be settled"):
        await _discard(service, job_id)

    assert await _states(service) == ["ready"]
    assert await _told(service) == []


@pytest.mark.parametrize("act", [_retry, _discard])
async def test_a_job_in_a_handler_is_left_alone(
    make_service: ServiceFactory, parcels: Parcels, act: Any
) -> None:
    service = await _service(make_service, parcels)
    job_id = await _add(service, "parcel", "running")

    with pytest.raises(Conflict, match="it is running"):
        await act(service, job_id)

    assert await _states(service) == ["running"]
    assert await _told(service) == []


@pytest.mark.parametrize("act", [_retry, _discard])
async def test_a_job_that_is_done_is_not_found(
    make_service: ServiceFactory, parcels: Parcels, act: Any
) -> None:
    service = await _service(make_service, parcels)

    with pytest.raises(NotFound, match="there is no such job"):
        await act(service, "job_none")


def test_the_guide_tells_of_every_kind_for_which_somebody_waits() -> None:
    guide = Path(__file__).parents[2] / "docs/guides/scaling-out.md"
    rows = [line for line in guide.read_text("utf-8").splitlines() if line.startswith("| `")]
    settling = [spec for spec in Service(of_everything()).job_specs if spec.on_dead is not None]

    untold = [spec.name for spec in settling if not any(f"`{spec.name}`" in row for row in rows)]
    assert settling
    assert untold == []
