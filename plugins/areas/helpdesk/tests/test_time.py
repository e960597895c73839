"""What time does to tickets: snoozes end, customers wait, figures are kept, old tickets go."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from msgsvc_core.events import Event
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import (
    DAY_S,
    LIMITS,
    PLUGINS,
    Person,
    act,
    change,
    listed,
    pass_time,
    post,
    project_of,
    refusal,
    said,
    told,
    virtual,
    whole,
)

HOUR_S = 3600
UNANSWERED = "ticket.unanswered_24h"


def later(clock: FakeClock, seconds: float) -> str:
    moment = datetime.fromtimestamp(clock.time(), UTC) + timedelta(seconds=seconds)
    return moment.isoformat()


async def unanswered(client: httpx2.AsyncClient) -> int:
    return (await told(client)).count(UNANSWERED)


async def test_a_ticket_that_is_put_aside_is_opened_at_its_time_once(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    ticket = await virtual(client)
    await act(client, ticket, "reply", text="On Monday")

    put_aside = await change(client, ticket, snoozed_until=later(clock, 2 * HOUR_S))
    await pass_time(service, clock, HOUR_S)
    meanwhile = await whole(client, ticket)
    await pass_time(service, clock, HOUR_S)
    woken = await whole(client, ticket)

    assert put_aside["status"] == meanwhile["status"] == "snoozed"
    assert put_aside["snoozed_until"] is not None
    assert (woken["status"], woken["snoozed_until"]) == ("open", None)
    changes = [one for one in await told(client, "from", "to") if one[1] is not None]
    assert [change[1:] for change in changes] == [
        ("open", "pending"),
        ("pending", "snoozed"),
        ("snoozed", "open"),
    ]


async def test_a_ticket_that_is_put_aside_is_opened_by_the_customers_message(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    await change(client, ticket, snoozed_until=later(clock, DAY_S))

    await ann.write("It is urgent")
    await pass_time(service, clock, DAY_S)

    found = await whole(client, ticket)
    assert (found["status"], found["snoozed_until"]) == ("open", None)
    assert (await told(client)).count("ticket.status_changed") == 2


@pytest.mark.both_databases
async def test_another_time_moves_a_snooze_without_a_word(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    ticket = await virtual(client)
    first = await change(client, ticket, snoozed_until=later(clock, HOUR_S))

    second = await change(client, ticket, snoozed_until=later(clock, 2 * HOUR_S))

    assert second["snoozed_until"] > first["snoozed_until"]
    assert (await told(client)).count("ticket.status_changed") == 1


@pytest.mark.parametrize(("seconds", "field"), [(-1, "future"), (366 * DAY_S, "365 days")])
async def test_a_snooze_ends_in_time_to_come(
    client: httpx2.AsyncClient, clock: FakeClock, seconds: float, field: str
) -> None:
    ticket = await virtual(client)

    answer = await client.patch(
        f"/v1/tickets/{ticket['ticket_id']}", json={"snoozed_until": later(clock, seconds)}
    )

    assert refusal(answer) == (400, "validation_failed")
    assert field in answer.json()["error"]


async def test_what_is_closed_is_not_put_aside(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    ticket = await virtual(client)
    await change(client, ticket, status="closed")

    path = f"/v1/tickets/{ticket['ticket_id']}"
    timed = await client.patch(path, json={"snoozed_until": later(clock, 60)})
    untimed = await client.patch(path, json={"status": "snoozed"})

    assert refusal(timed) == refusal(untimed) == (409, "conflict")


async def test_a_snooze_without_a_time_ends_when_the_customer_writes(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    snoozed = await change(client, ticket, status="snoozed")
    await pass_time(service, clock, 5 * DAY_S)
    later_on = await whole(client, ticket)
    timed = await change(client, ticket, snoozed_until=later(clock, DAY_S))
    kept = await change(client, ticket, status="snoozed")
    untimed = await change(client, ticket, snoozed_until=None)
    await ann.write("Hello?")

    for one in (snoozed, later_on, untimed):
        assert (one["status"], one["snoozed_until"]) == ("snoozed", None)
    assert kept["snoozed_until"] == timed["snoozed_until"] is not None
    assert (await whole(client, ticket))["status"] == "open"


async def test_an_unanswered_customer_is_told_of_once_in_each_time_of_waiting(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    await pass_time(service, clock, 23 * HOUR_S)
    await ann.write("Hello?")
    before = await unanswered(client)
    await pass_time(service, clock, HOUR_S)
    first = await unanswered(client)
    await ann.write("Still here")
    await pass_time(service, clock, 3 * DAY_S)
    waiting = await unanswered(client)
    [ticket] = await listed(client)
    await act(client, ticket, "reply", text="Sorry!")
    await pass_time(service, clock, 3 * DAY_S)
    answered = await unanswered(client)
    await ann.write("It broke again")
    await pass_time(service, clock, DAY_S)

    assert (before, first, waiting, answered) == (0, 1, 1, 1)
    assert await unanswered(client) == 2
    events = await told(client, "number", "status", "subscriber_id")
    assert events[-1] == (UNANSWERED, 1, "open", ann_id)


async def test_notes_answer_nobody_and_closed_or_put_aside_tickets_wait_in_silence(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    noted, closed, aside = [await virtual(client) for _ in range(3)]
    await act(client, noted, "reply", text="Who knows this?", internal=True)
    await change(client, closed, status="closed")
    await change(client, aside, snoozed_until=later(clock, 2 * DAY_S))

    await pass_time(service, clock, DAY_S)
    after_a_day = await told(client, "number")
    await pass_time(service, clock, DAY_S)

    assert [one for one in after_a_day if one[0] == UNANSWERED] == [(UNANSWERED, 1)]
    found = [one for one in await told(client, "number") if one[0] == UNANSWERED]
    assert found == [(UNANSWERED, 1), (UNANSWERED, 3)]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_machines_that_look_at_once_tell_once(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    one = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    url = one.settings.database_url
    two = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    tenant: Tenant = await make_tenant(one)
    for _ in range(5):
        aside = await virtual(tenant.client)
        await change(tenant.client, aside, snoozed_until=later(clock, DAY_S / 2))

    clock.advance(DAY_S)
    await asyncio.gather(settled(one), settled(two))
    clock.advance(20)
    await asyncio.gather(settled(one), settled(two))

    names = await told(tenant.client)
    assert names.count(UNANSWERED) == 5
    assert names.count("ticket.status_changed") == 10


class Refusing:
    """Fails at what is told of one project's tickets by time."""

    def __init__(self) -> None:
        self.project_id = ""

    @hookimpl
    async def on_events(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.project_id == self.project_id and event.name == UNANSWERED:
                raise RuntimeError("not this one")


async def test_what_fails_for_one_project_keeps_no_other_one_waiting(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    refusing = Refusing()
    service = await make_service(extra_plugins=[*PLUGINS, ("refusing", refusing)], limits=LIMITS)
    one, other = await make_tenant(service), await make_tenant(service, "Other")
    refusing.project_id = project_of(one)
    for tenant in (one, other, one, other):
        await virtual(tenant.client)

    await pass_time(service, clock, DAY_S)
    meanwhile = await unanswered(one.client), await unanswered(other.client)
    refusing.project_id = ""
    await pass_time(service, clock, 60)

    assert meanwhile == (0, 2)
    assert (await unanswered(one.client), await unanswered(other.client)) == (2, 2)


async def test_times_are_kept_for_each_ticket_and_as_percentiles(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    old = await virtual(client)
    await act(client, old, "reply", text="Hi")
    clock.advance(DAY_S - 1)
    since = later(clock, 0)
    clock.advance(1)
    tickets = [await virtual(client) for _ in range(10)]
    for ticket in tickets:
        clock.advance(60)
        await act(client, ticket, "reply", text="Hi")
        await act(client, ticket, "reply", text="And again", status="open")
    clock.advance(1400)
    for ticket in tickets[:4]:
        await change(client, ticket, status="closed")
    reopened = await change(client, tickets[3], status="open")

    first = await whole(client, tickets[0])
    stats = (await client.get("/v1/tickets/stats", params={"created_after": since})).json()
    query = {"created_before": since}
    before = (await client.get("/v1/tickets/stats", params=query)).json()

    assert before["opened"] == 1
    assert before["created_before"].startswith("2026-01-16T11:59:59")
    assert (first["first_response_seconds"], first["resolution_seconds"]) == (60, 2000)
    assert reopened["resolution_seconds"] is None
    assert stats["opened"] == 10
    assert stats["by_status"] == {"open": 7, "pending": 0, "snoozed": 0, "closed": 3}
    assert stats["first_response_seconds"] == {
        "count": 10,
        "p50": 300,
        "p90": 540,
        "p95": 600,
        "p99": 600,
    }
    assert stats["resolution_seconds"] == {
        "count": 3,
        "p50": 2000,
        "p90": 2000,
        "p95": 2000,
        "p99": 2000,
    }
    assert stats["csat"] == {"count": 0, "average": None}


async def test_there_are_figures_without_tickets_too(client: httpx2.AsyncClient) -> None:
    stats = (await client.get("/v1/tickets/stats")).json()

    assert stats["opened"] == 0
    nothing = {"count": 0, "p50": None, "p90": None, "p95": None, "p99": None}
    assert stats["first_response_seconds"] == stats["resolution_seconds"] == nothing
    assert stats["created_after"].startswith("2025-12-16T12:00:00")


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2100-01-01T00:00:00Z"]
)
async def test_figures_refuse_times_at_the_edge_of_the_calendar(
    client: httpx2.AsyncClient, time: str
) -> None:
    answer = await client.get("/v1/tickets/stats", params={"created_after": time})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed"), answer.text
    assert answer.json()["error"].startswith("created_after: ")


async def test_what_was_said_lately_stays_with_the_old_ticket_that_it_was_merged_into(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"closed_ticket_days": 30}
    )
    client = (await make_tenant(service)).client
    old = await virtual(client, "Long ago")
    await change(client, old, status="closed")
    await pass_time(service, clock, 29 * DAY_S)
    late = await virtual(client, "Today")
    await act(client, late, "merge", into=old["ticket_id"])

    await pass_time(service, clock, 2 * DAY_S)
    await pass_time(service, clock, HOUR_S)
    kept = await said(client, old)
    await pass_time(service, clock, 30 * DAY_S)
    await pass_time(service, clock, HOUR_S)

    assert kept == ["Long ago", "Today"]
    assert await listed(client) == []


async def test_tickets_go_so_long_after_their_end_and_their_files_with_them(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"closed_ticket_days": 30}
    )
    tenant: Tenant = await make_tenant(service)
    client = tenant.client
    stored = await client.post("/v1/files", files={"file": ("plan.txt", b"Turn left")})
    file_id = stored.json()["file_id"]
    old, reopened, kept = [await virtual(client, file_ids=[file_id][:one]) for one in (1, 0, 0)]
    for ticket in (old, reopened):
        await change(client, ticket, status="closed")
    await change(client, reopened, status="open")

    await pass_time(service, clock, 29 * DAY_S)
    before = [ticket["number"] for ticket in await listed(client)]
    await pass_time(service, clock, DAY_S + HOUR_S)
    await pass_time(service, clock, HOUR_S)

    assert before == [3, 2, 1]
    assert [ticket["number"] for ticket in await listed(client)] == [3, 2]
    assert refusal(await client.get(f"/v1/files/{file_id}")) == (404, "not_found")
    assert (await post(client, "/v1/tickets", channel="virtual", text="Hi"))["number"] == 4
    assert kept["number"] == 3
