"""Service levels: due times of tickets, and events of what is due soon or missed."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

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
    refusal,
    told,
    virtual,
    whole,
)
from .test_time import later

HOUR_S = 3600
SLA = "/v1/tickets/sla"
CALENDAR = {
    "first_response_seconds": 3600,
    "next_response_seconds": 1800,
    "resolution_seconds": 36000,
    "counted_in": "calendar",
}


async def set_sla(client: httpx2.AsyncClient, service: Service, **body: Any) -> dict[str, Any]:
    answer = await client.patch(SLA, json=body)
    assert answer.status_code == 200, answer.text
    await settled(service)
    return dict(answer.json())


async def events(client: httpx2.AsyncClient) -> list[tuple[str, str, int]]:
    found = await told(client, "target", "number")
    return [(name.rpartition(".")[2], *rest) for name, *rest in found if ".sla_" in name]


def clocks_of(ticket: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {one["target"]: (one["status"], one["outcome"]) for one in ticket["sla"]}


async def test_targets_are_settings_of_the_project(
    client: httpx2.AsyncClient, service: Service
) -> None:
    before = (await client.get(SLA)).json()
    set_ = await set_sla(client, service, urgent=CALENDAR, warn_seconds=1800)
    refused = [
        await client.patch(SLA, json={"urgent": {"first_response_seconds": 59}}),
        await client.patch(SLA, json={"urgent": None}),
        await client.patch(SLA, json={"urgent": {"counted_in": "holidays"}}),
        await client.patch(SLA, json={"top": CALENDAR}),
    ]

    assert before["normal"]["first_response_seconds"] is None
    assert before["warn_seconds"] == 0
    assert set_["urgent"] == CALENDAR
    assert set_ == (await client.get(SLA)).json()
    # A priority's targets are replaced whole; the others stay.
    changed = await set_sla(client, service, normal={"first_response_seconds": 90})
    assert changed == {**set_, "normal": {**before["normal"], "first_response_seconds": 90}}
    assert [refusal(answer) for answer in refused] == [(400, "validation_failed")] * 4


async def test_a_ticket_is_due_by_its_first_reply_and_no_more_while_its_customer_is_to_act(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    await set_sla(client, service, normal=CALENDAR)
    ticket = await virtual(client)
    plain = await virtual(client, priority="low")
    clock.advance(600)
    answered = await act(client, ticket, "reply", text="On its way")
    after = await whole(client, ticket)
    clock.advance(DAY_S)
    asked = await act(client, ticket, "customer-reply", text="Still not here")

    assert ticket["due_at"] == later_z(ticket["created_at"], HOUR_S)
    assert plain["due_at"] is None
    assert answered["ticket"]["due_at"] is None
    assert clocks_of(after) == {
        "first_response": ("completed", "met"),
        "resolution": ("paused", None),
    }
    assert asked["due_at"] == later_z(asked["waiting_since"], HOUR_S / 2)
    assert await events(client) == []


async def test_a_missed_target_is_told_once_after_its_warning(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await set_sla(client, service, normal=CALENDAR, warn_seconds=900)
    await ann.write("Help")
    await pass_time(service, clock, 44 * 60)
    early = await events(client)
    await pass_time(service, clock, 60)
    soon = await events(client)
    await pass_time(service, clock, 15 * 60)
    await pass_time(service, clock, HOUR_S)
    missed = await events(client)
    [ticket] = await listed(client)
    await act(client, ticket, "reply", text="Sorry!")
    await ann.write("And now?")
    for _ in range(4):
        await pass_time(service, clock, HOUR_S / 4)

    assert (early, soon) == ([], [("sla_due_soon", "first_response", 1)])
    assert missed[1:] == [("sla_breached", "first_response", 1)]
    found = await events(client)
    assert found[2:] == [("sla_due_soon", "next_response", 1), ("sla_breached", "next_response", 1)]
    feed = (await client.get("/v1/events?limit=100")).json()["data"]
    [breach] = [
        one
        for one in feed
        if one["event"] == "ticket.sla_breached" and one["data"]["target"] == "first_response"
    ]
    assert breach["data"]["due_at"] == ticket["due_at"]
    assert breach["data"]["subscriber_id"] == ann_id
    assert clocks_of(await whole(client, ticket))["next_response"] == ("running", "breached")


@pytest.mark.both_databases
async def test_business_hours_pass_over_nights_and_holidays(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    today = later(clock, 0)[:10]
    days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    week = [{"day": day, "opens": "00:00", "closes": "00:30"} for day in days]
    await client.patch("/v1/tickets/hours", json={"openings": week, "holidays": [{"date": today}]})
    await set_sla(client, service, normal={"first_response_seconds": 2700})
    ticket = await virtual(client)
    due = ticket["due_at"]
    await client.patch("/v1/tickets/hours", json={"holidays": []})
    await settled(service)
    moved = (await whole(client, ticket))["due_at"]
    await client.patch("/v1/tickets/hours", json={"openings": [], "holidays": []})
    await settled(service)

    # Nothing is left of today at this hour, whether it is a holiday or not.
    assert due == f"{later(clock, 2 * DAY_S)[:10]}T00:15:00.000Z"
    assert moved == due
    assert (await whole(client, ticket))["due_at"] == later_z(ticket["created_at"], 45 * 60)


async def test_tickets_that_were_there_before_are_due_from_the_settings_on(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    waiting, answered, closed = [await virtual(client) for _ in range(3)]
    await act(client, answered, "reply", text="Yes")
    await change(client, closed, status="closed")
    clock.advance(DAY_S)
    before = [one["due_at"] for one in await listed(client)]
    await set_sla(client, service, normal=CALENDAR)
    tickets = {one["number"]: one["due_at"] for one in await listed(client)}
    await set_sla(client, service, normal={})
    after = [one["due_at"] for one in await listed(client)]

    assert before == after == [None] * 3
    assert tickets[waiting["number"]] == later_z(waiting["created_at"], DAY_S + HOUR_S)
    assert tickets[answered["number"]] is tickets[closed["number"]] is None
    assert await events(client) == []


@pytest.mark.both_databases
async def test_closing_snoozing_merging_and_erasing_end_what_is_due(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await set_sla(client, service, normal=CALENDAR)
    closed, aside, merged, into = [await virtual(client) for _ in range(4)]
    await ann.write("Erase me")
    await change(client, closed, status="closed")
    snoozed = await change(client, aside, snoozed_until=later(clock, DAY_S))
    await act(client, merged, "merge", into=str(into["number"]))
    await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    await settled(service)
    await pass_time(service, clock, 2 * HOUR_S)

    # Who waits, waits whether the ticket is snoozed or not.
    assert snoozed["due_at"] == aside["due_at"]
    assert await events(client) == [
        ("sla_breached", "first_response", 2),
        ("sla_breached", "first_response", 4),
    ]
    due = {one["number"]: one["due_at"] is None for one in await listed(client)}
    assert due == {1: True, 2: False, 3: True, 4: False, 5: True}


async def test_lists_show_what_is_overdue_and_what_is_due_today(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    await set_sla(client, service, normal=CALENDAR, high={"first_response_seconds": 345600})
    await virtual(client)
    await virtual(client, priority="high")
    await virtual(client, priority="low")
    early = await listed(client, due="overdue")
    today = [one["number"] for one in await listed(client, due="today", status="open")]
    clock.advance(2 * HOUR_S)
    late = [one["number"] for one in await listed(client, due="overdue")]
    wrong = await client.get("/v1/tickets", params={"due": "never"})

    assert (early, today, late) == ([], [1], [1])
    assert refusal(wrong) == (400, "validation_failed")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_machines_that_look_at_once_tell_of_a_breach_once(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    one = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    url = one.settings.database_url
    two = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    tenant: Tenant = await make_tenant(one)
    await set_sla(tenant.client, one, normal=CALENDAR)
    for _ in range(5):
        await virtual(tenant.client)

    clock.advance(2 * HOUR_S)
    await asyncio.gather(settled(one), settled(two))
    clock.advance(20)
    await asyncio.gather(settled(one), settled(two))

    found = await events(tenant.client)
    assert sorted(found) == [("sla_breached", "first_response", number) for number in range(1, 6)]


async def test_a_breach_that_was_told_is_not_told_again_after_a_restart(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    first = await make_service(extra_plugins=PLUGINS, limits=LIMITS, jobs={"runner": "none"})
    tenant: Tenant = await make_tenant(first)
    await tenant.client.patch(SLA, json={"normal": CALENDAR})
    await virtual(tenant.client)
    clock.advance(2 * HOUR_S)
    url = first.settings.database_url
    for _ in range(2):
        again = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
        await pass_time(again, clock, 60)
        await again.stop()

    assert await events(tenant.client) == [("sla_breached", "first_response", 1)]


def later_z(moment: str, seconds: float) -> str:
    """A time of the API, so many seconds later."""
    at = datetime.fromisoformat(moment.replace("Z", "+00:00")) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def shares(client: httpx2.AsyncClient, **query: str) -> dict[str, tuple[int, int, Any]]:
    """What the statistics say of each target: met, missed, and the share that was met."""
    answer = await client.get("/v1/tickets/stats", params=query)
    assert answer.status_code == 200, answer.text
    return {target: tuple(one.values()) for target, one in answer.json()["sla"].items()}


@pytest.mark.both_databases
async def test_each_run_of_a_target_counts_once_on_the_day_of_its_end(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    await set_sla(client, service, normal=CALENDAR)
    kept, late, closed = [await virtual(client) for _ in range(3)]
    await act(client, kept, "reply", text="On its way")
    await change(client, closed, status="closed")
    await pass_time(service, clock, HOUR_S)
    before = await shares(client)
    await act(client, late, "reply", text="Sorry")
    await act(client, kept, "customer-reply", text="Where?")
    await act(client, kept, "reply", text="Here", status="closed")
    after = await shares(client)

    # Closing is no reply, and ends the resolution.
    assert before == {
        "first_response": (1, 1, 0.5),
        "next_response": (0, 0, None),
        "resolution": (1, 0, 1.0),
    }
    assert after["first_response"] == (1, 1, 0.5)
    assert after["next_response"] == (1, 0, 1.0)
    assert after["resolution"] == (2, 0, 1.0)
    clock.advance(DAY_S)
    assert (await shares(client, created_after=later(clock, 0)))["first_response"] == (0, 0, None)
    assert (await shares(client))["first_response"] == (1, 1, 0.5)


async def test_a_reply_that_comes_too_late_misses_its_target_though_no_job_has_looked(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    await set_sla(client, service, normal=CALENDAR)
    ticket = await virtual(client)
    clock.advance(2 * HOUR_S)
    await act(client, ticket, "reply", text="Sorry")
    await settled(service)

    assert (await shares(client))["first_response"] == (0, 1, 0.0)
