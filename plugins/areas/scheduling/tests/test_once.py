"""Once, whatever happens: limits at once, several processes, a process that dies, one that was away."""

import asyncio
from datetime import date, timedelta
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_scheduling import store
from msgsvc_scheduling.running import Running

from .conftest import (
    IDLE,
    LATER,
    LIMITS,
    PLUGINS,
    add,
    count,
    due_of,
    events,
    get,
    pass_time,
    post,
    refusal,
    texts,
    told,
)


async def test_limit_of_both_kinds_together_holds_exactly(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, scheduling={"open_records": 5}
    )
    tenant: Tenant = await make_tenant(service)
    [ann] = await add(service, tenant, 1)
    bodies = [
        ("/v1/scheduled", {"subscriber_id": ann, "text": "Hi", "send_at": LATER}),
        ("/v1/recurring", {"subscriber_id": ann, "text": "Hi", "cron": "0 9 * * *"}),
    ]

    answers = await asyncio.gather(
        *(tenant.client.post(path, json=body) for path, body in bodies * 10)
    )

    taken = [answer for answer in answers if answer.status_code == 201]
    refused = [refusal(answer) for answer in answers if answer.status_code != 201]
    assert (len(taken), refused) == (5, [(409, "conflict")] * 15)
    made = taken[0].json()
    kind = "scheduled" if "scheduled_id" in made else "recurring"
    await tenant.client.post(f"/v1/{kind}/{made[f'{kind}_id']}/cancel")
    again = await tenant.client.post(bodies[0][0], json=bodies[0][1])
    assert again.status_code == 201


async def test_limit_is_that_of_the_interface_unless_set(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    for _ in range(100):
        await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    over = await client.post(
        "/v1/scheduled", json={"subscriber_id": ann, "text": "Hi", "send_at": LATER}
    )

    assert refusal(over) == (409, "conflict")
    assert "100" in over.json()["error"]


async def test_several_processes_send_each_once(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    first = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    second = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, database_url=first.settings.database_url
    )
    tenant: Tenant = await make_tenant(first)
    [ann] = await add(first, tenant, 1)
    for number in range(20):
        await post(
            tenant.client, "/v1/scheduled", subscriber_id=ann, text=f"n{number}", send_at=LATER
        )
    clock.advance(3601)
    due = await due_of(first)

    # Beside the job, which runs in one of them, both try it by force.
    await asyncio.gather(
        *(service.get(Running).run(one) for one in due for service in (first, second))
    )
    await settled(first)
    await settled(second)

    assert sorted(texts(first, second)) == sorted(f"n{number}" for number in range(20))
    assert await told(tenant.client) == [("scheduled.sent", None)] * 20


async def test_what_is_due_for_another_time_is_not_run(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(service)
    [ann] = await add(service, tenant, 1)
    made = await post(tenant.client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    clock.advance(3601)
    [due] = await due_of(service)

    await tenant.client.patch(
        f"/v1/scheduled/{made['scheduled_id']}", json={"send_at": "2026-01-15T18:00:00Z"}
    )
    await service.get(Running).run(due)

    shown = await get(tenant.client, f"/v1/scheduled/{made['scheduled_id']}")
    assert shown["status"] == "scheduled"
    assert await count(service, "core_messages") == 0


class Dies:
    """Ends the process, as far as a test can, in the transaction that tells: after all that it wrote."""

    def __init__(self) -> None:
        self.left = 1

    @hookimpl
    async def on_events(self, events: Any) -> None:
        if any(event.name.startswith("scheduled.") for event in events) and self.left:
            self.left -= 1
            raise asyncio.CancelledError


async def test_process_that_dies_before_the_commit_leaves_nothing_and_the_next_sends_it_once(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    dying = await make_service(extra_plugins=[*PLUGINS, ("dies", Dies())], limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(dying)
    [ann] = await add(dying, tenant, 1)
    await post(tenant.client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    clock.advance(3601)
    [due] = await due_of(dying)

    with pytest.raises(asyncio.CancelledError):
        await dying.get(Running).run(due)
    assert await count(dying, "core_messages") == 0
    assert await due_of(dying) == [due]
    helper = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, database_url=dying.settings.database_url
    )
    await pass_time(helper, clock, 0)
    await dying.get(Running).run(due)

    assert texts(helper) == ["Hi"]
    assert await told(tenant.client) == [("scheduled.sent", None)]


MISSED = [
    ({"missed": "run_once"}, [("recurring.sent", None), ("scheduled.sent", None)], 2),
    (
        {"missed": "skip"},
        [("scheduled.skipped", "missed"), ("scheduled.skipped", "missed")],
        0,
    ),
    (
        {"missed": "skip", "grace_minutes": 1440},
        [("recurring.sent", None), ("scheduled.sent", None)],
        2,
    ),
]


@pytest.mark.parametrize(("setting", "expected", "sent"), MISSED)
async def test_times_at_which_the_service_was_down(
    make_service: ServiceFactory,
    make_tenant: Any,
    clock: FakeClock,
    setting: dict[str, Any],
    expected: list[tuple[str, str | None]],
    sent: int,
) -> None:
    first = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(first)
    [ann] = await add(first, tenant, 1)
    await post(tenant.client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    made = await post(tenant.client, "/v1/recurring", subscriber_id=ann, cron="5 * * * *")
    # Away for five runs and a half.
    clock.advance(5.5 * 3600)

    helper = await make_service(
        extra_plugins=PLUGINS,
        limits=LIMITS,
        scheduling=setting,
        database_url=first.settings.database_url,
    )
    await pass_time(helper, clock, 0)

    assert await told(tenant.client) == expected
    assert texts(helper) == ["Hi"] * sent
    shown = await get(tenant.client, f"/v1/recurring/{made['recurring_id']}")
    assert shown["next_run_at"] == "2026-01-15T18:05:00.000Z"


async def test_run_that_is_caught_up_waits_for_the_end_of_quiet_hours(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    first = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(first)
    [ann] = await add(first, tenant, 1)
    made = await post(
        tenant.client,
        "/v1/recurring",
        subscriber_id=ann,
        cron="0 21 * * *",
        quiet_hours={"from": "22:00", "to": "08:00"},
    )
    clock.advance(11 * 3600)

    helper = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, database_url=first.settings.database_url
    )
    path = f"/v1/recurring/{made['recurring_id']}"

    async def moved() -> bool:
        return bool((await get(tenant.client, path))["next_run_at"] == "2026-01-16T08:00:00.000Z")

    await until(moved)
    assert texts(helper) == []
    await pass_time(helper, clock, 9 * 3600 + 1)

    assert texts(helper) == ["Hi"]
    assert (await get(tenant.client, path))["next_run_at"] == "2026-01-16T21:00:00.000Z"


#: When 02:30 is in UTC: in winter, on the day when it is missing (which day, and its next minute), in
#: summer, and from which day on it is winter again. On 2026-10-25 it comes twice in Berlin.
YEARS = {
    "Europe/Berlin": ("01:30", "2026-03-29", "01:00", "00:30", "2026-10-26"),
    "America/New_York": ("07:30", "2026-03-08", "07:00", "06:30", "2026-11-01"),
}


def expected_runs(timezone: str) -> list[int]:
    """365 runs from 2026-01-16 on, by the table above."""
    winter, missing_day, missing, summer, winter_again = YEARS[timezone]
    moments = []
    for number in range(365):
        day = (date(2026, 1, 16) + timedelta(days=number)).isoformat()
        at = summer if missing_day < day < winter_again else winter
        moments.append(from_rfc3339(f"{day}T{missing if day == missing_day else at}:00Z"))
    return moments


async def test_a_year_of_runs_over_both_changes_of_the_clocks(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    await check_runs(make_service, make_tenant, clock, days=365)


@pytest.mark.both_databases
async def test_a_month_of_runs_at_a_local_time(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    await check_runs(make_service, make_tenant, clock, days=31)


async def check_runs(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock, *, days: int
) -> None:
    """Each of the first runs in each time zone happens once, at its moment."""
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(service)
    [ann] = await add(service, tenant, 1)
    expected: dict[str, list[int]] = {}
    for timezone in YEARS:
        made = await post(
            tenant.client,
            "/v1/recurring",
            subscriber_id=ann,
            cron="30 2 * * *",
            timezone=timezone,
        )
        expected[made["recurring_id"]] = expected_runs(timezone)[:days]

    ran: dict[str, list[int]] = {recurring_id: [] for recurring_id in expected}
    while any(len(moments) < days for moments in ran.values()):
        async with service.db.read() as tx:
            [next_one, *_] = await store.list_due(tx, 2**62, 2)
        clock.advance((next_one.due_at_ms - clock.now_ms()) / 1000)
        await service.get(Running).run(next_one)
        # A second try of the same moment does nothing.
        await service.get(Running).run(next_one)
        ran[next_one.record_id].append(next_one.due_at_ms)

    total = sum(len(moments) for moments in ran.values())
    assert {one: moments[:days] for one, moments in ran.items()} == expected
    assert await count(service, "core_messages") == total
    [last] = (await events(tenant.client, "recurring.sent"))[-1:]
    assert last["recurring_id"] in expected
