"""Services of tests find recurring jobs as after their first runs: see `EarlierRuns`."""

from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.work import Work, start


async def next_runs(service: Service) -> dict[str, int]:
    """When the recurring jobs are due that have not failed."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT name, run_at_ms FROM core_jobs WHERE key = 'recurring' AND attempts = 0"
        )
    return {row["name"]: row["run_at_ms"] for row in rows}


async def test_recurring_jobs_are_due_in_their_time(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(plugins=tuple(available_plugins()))
    found = await next_runs(service)
    every_s = {spec.name: spec.every_s for spec in service.job_specs if spec.every_s is not None}

    assert found == {name: clock.now_ms() + round(each * 1000) for name, each in every_s.items()}


async def test_all_run_once_their_time_has_come(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(plugins=tuple(available_plugins()))
    before = await next_runs(service)
    clock.advance((max(before.values()) - clock.now_ms()) / 1000)
    await settled(service)
    after = await next_runs(service)

    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in before)


async def test_jobs_of_a_plugin_that_a_test_gives_run_at_once(make_service: ServiceFactory) -> None:
    plugin = Work(every_s=60)
    service = await start(make_service, plugin)
    await settled(service)

    assert plugin.runs == [None]
