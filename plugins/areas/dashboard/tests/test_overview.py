"""The overview: what happened by day, counted as it happens, and first steps that teach."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.overview import Counts
from msgsvc_dashboard.overview.counting import ACTIVE
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}

HOUR_S = 3600
DAY_S = 24 * HOUR_S


def happened(service: Service, project_id: str, name: str) -> Event:
    return Event(new_id("evt"), project_id, name, {}, service.clock.now_ms())


async def shares(tx: Tx) -> int:
    found: int = await tx.fetch_val("SELECT COUNT(*) FROM dashboard_counts")
    return found


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_events_are_counted_by_day_also_by_many_transactions_at_once(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    shop, other = await service.projects.create("Shop"), await service.projects.create("Other")
    counts = service.get(Counts)
    names = ["delivery.success", "delivery.failed"]

    async def both(first: str, second: str) -> None:
        # In either order: no two transactions may wait for each other.
        async with service.db.transaction() as tx:
            await counts.count(tx, [happened(service, shop.project_id, first)])
            await asyncio.sleep(0)
            await counts.count(tx, [happened(service, shop.project_id, second)] * 2)

    await asyncio.gather(
        *(both(*names) for _ in range(10)), *(both(*names[::-1]) for _ in range(5))
    )
    clock.advance(DAY_S)
    async with service.db.transaction() as tx:
        ignored = happened(service, shop.project_id, "button.clicked")
        await counts.count(tx, [happened(service, other.project_id, names[0]), ignored])
        await counts.count(tx, [happened(service, shop.project_id, names[0])])
    async with service.db.read() as tx:
        found = await counts.by_day(tx, shop.project_id, names, 3)

    assert found == {"delivery.success": [0, 20, 1], "delivery.failed": [0, 25, 0]}


async def test_days_that_are_over_become_one_row_and_are_forgotten_in_the_end(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    shop = (await service.projects.create("Shop")).project_id
    counts = service.get(Counts)
    for share in (0, 7, 8):
        async with service.db.transaction() as tx:
            await tx.insert(
                "dashboard_counts",
                {
                    "project_id": shop,
                    "day": clock.now_ms() // (DAY_S * 1000),
                    "event": "delivery.success",
                    "share": share,
                    "count": 5,
                },
            )

    async def after(days: int) -> tuple[int, list[int]]:
        clock.advance(days * DAY_S)
        async with service.db.transaction() as tx:
            await counts.fold(tx)
            found = await counts.by_day(tx, shop, ["delivery.success"], 3)
            return await shares(tx), found["delivery.success"]

    growing, folded, forgotten = await after(2), await after(1), await after(400)

    assert growing == (3, [15, 0, 0])
    assert folded == (1, [0, 0, 0])
    assert forgotten == (0, [0, 0, 0])


async def test_the_last_24_hours_are_told_by_hour_and_become_days(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    shop = (await service.projects.create("Shop")).project_id
    counts = service.get(Counts)
    names = ["delivery.success"]

    async def happen(times: int) -> None:
        async with service.db.transaction() as tx:
            await counts.count(tx, [happened(service, shop, names[0])] * times)

    await happen(2)
    clock.advance(47 * HOUR_S)
    await happen(3)
    async with service.db.read() as tx:
        by_hour = await counts.by_hour(tx, shop, names, 48)
    assert by_hour == {"delivery.success": [2, *[0] * 46, 3]}

    clock.advance(2 * DAY_S)
    async with service.db.transaction() as tx:
        await counts.fold(tx)
        await counts.fold(tx)
        by_day = await counts.by_day(tx, shop, names, 5)
        by_hour = await counts.by_hour(tx, shop, names, 48)
        folded = await shares(tx)
    # From noon of one day to 11 of the day after the next; that one is still by hour.
    assert by_day == {"delivery.success": [2, 0, 3, 0, 0]}
    assert (folded, sum(by_hour["delivery.success"])) == (1, 0)


async def test_active_subscribers_are_recorded_by_day(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    shop = (await service.projects.create("Shop")).project_id
    counts = service.get(Counts)
    async with service.db.transaction() as tx:
        await counts.record_active(tx, {shop: 5})
        await counts.record_active(tx, {shop: 7})
    clock.advance(DAY_S)
    async with service.db.transaction() as tx:
        await counts.record_active(tx, {shop: 12_000})
        found = await counts.by_day(tx, shop, [ACTIVE], 2)

    assert found == {ACTIVE: [7, 12_000]}


async def test_what_is_wrong_stands_first_for_whom_it_concerns(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(
        **WITH_DASHBOARD,
        channels={"messenger_a": {"plugin": "recording"}},
        # A runner would take the job that waits.
        jobs={"runner": "none"},
    )
    project_id = (await service.projects.create("Shop")).project_id
    owner = await visitor(service, project_id)
    well = await owner.get("")
    [channel] = service.channels.list_for_project(project_id)
    lane = lane_of(channel.key)
    async with service.db.transaction() as tx:
        waiting = NewJob("outbound", lane=lane, project_id=project_id)
        await service.jobs.enqueue(tx, waiting)
    clock.advance(12 * 60)
    late = await owner.get("")
    async with service.db.transaction() as tx:
        await service.get(ChannelStates).stop(tx, channel, "bot_banned", "Unauthorized <b>")
        await tx.execute("UPDATE core_jobs SET state = 'dead' WHERE lane = :lane", {"lane": lane})
    stopped = await owner.get("")
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE dashboard_accounts SET is_operator = true")
    seen_by_operator = await owner.get("")
    await owner.client.aclose()

    assert 'class="problems"' not in well.text
    assert "messenger_a sends late.</strong> A message has waited for 12 minutes." in late.text
    assert "messenger_a is stopped; messages wait.</strong> Unauthorized &lt;b&gt;" in stopped.text
    assert "Some jobs have failed for good." not in stopped.text
    assert "Some jobs have failed for good." in seen_by_operator.text


async def test_an_empty_project_shows_its_first_steps_and_a_busy_one_its_charts(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project_id = (await service.projects.create("Shop")).project_id
    owner = await visitor(service, project_id)
    viewer = await visitor(service, project_id, "viewer")

    empty = await owner.get("")
    looked_on = await viewer.get("")
    await service.projects.create_key(project_id, "site", ("*",))
    names = ["subscription.created", "delivery.success", "delivery.failed"]
    async with service.db.transaction() as tx:
        await service.get(Counts).count(
            tx, [happened(service, project_id, name) for name in names] * 1234
        )
    busy = await owner.get("")
    await owner.client.aclose()
    await viewer.client.aclose()

    assert "First steps" in empty.text
    assert "Create an API key" in empty.text
    assert 'class="bar' not in empty.text
    assert "First steps" not in looked_on.text
    assert "First steps" not in busy.text
    assert busy.text.count("1,234") >= 6
    assert "2,468" not in busy.text
    assert '<td class="number">1,234</td>' in busy.text
