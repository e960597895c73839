"""Automatic assignment, agents who are away or have enough, presence and unread marks."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, MakeMember, act, change, post, told, virtual, whole

MakeTenant = Callable[..., Awaitable[Tenant]]


async def agents_of(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    answer = await client.get("/v1/tickets/agents")
    assert answer.status_code == 200, answer.text
    return {one["name"]: one for one in answer.json()["data"]}


async def set_agent(client: httpx2.AsyncClient, member_id: str, **changes: Any) -> dict[str, Any]:
    answer = await client.patch(f"/v1/tickets/agents/{member_id}", json=changes)
    assert answer.status_code == 200, answer.text
    fields: dict[str, Any] = answer.json()
    return fields


async def put(client: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await client.put(path, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def set_assignment(client: httpx2.AsyncClient, method: str) -> None:
    answer = await client.patch("/v1/tickets/settings", json={"assignment": method})
    assert answer.status_code == 200, answer.text


@pytest.mark.database_file
@pytest.mark.both_databases
@pytest.mark.parametrize("method", ["round_robin", "least_busy"])
async def test_20_concurrent_tickets_are_shared_evenly(
    client: httpx2.AsyncClient, member: MakeMember, method: str
) -> None:
    for name in ("Mia", "Kim", "Lee", "Pat"):
        await member(name)
    await set_assignment(client, method)

    made = await asyncio.gather(*(virtual(client, f"No. {number}") for number in range(20)))

    assert sorted(Counter(one["assignee_id"] for one in made).values()) == [5, 5, 5, 5]
    assert sorted(one["number"] for one in made) == list(range(1, 21))


async def test_agents_come_in_pages_the_newest_first(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    made = [await member(name) for name in ("Mia", "Kim", "Lee")]
    first = (await client.get("/v1/tickets/agents?limit=2")).json()
    rest = (await client.get(f"/v1/tickets/agents?cursor={first['next_cursor']}")).json()

    assert [one["member_id"] for one in first["data"] + rest["data"]] == made[::-1]
    assert rest["next_cursor"] is None


async def test_the_least_busy_agent_gets_the_next_ticket(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    mia, kim = await member("Mia"), await member("Kim")
    await set_assignment(client, "least_busy")
    first = await virtual(client, assignee_id=mia)
    await virtual(client, assignee_id=mia)
    second, third = await virtual(client), await virtual(client)
    await change(client, first, status="closed")
    for ticket in (second, third):
        await change(client, ticket, status="closed")
    fourth = await virtual(client)

    assert [second["assignee_id"], third["assignee_id"]] == [kim, kim]
    assert fourth["assignee_id"] == kim
    assert (await agents_of(client))["Mia"]["open_tickets"] == 1


@pytest.mark.both_databases
async def test_who_is_away_or_has_enough_is_passed_over(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    mia, kim = await member("Mia"), await member("Kim")
    await set_assignment(client, "round_robin")
    away = await set_agent(client, mia, available=False)
    full = await set_agent(client, kim, max_open_tickets=1)
    made = [await virtual(client), await virtual(client)]
    await set_agent(client, kim, max_open_tickets=None)
    made.append(await virtual(client))

    assert (away["available"], away["max_open_tickets"], away["shortcuts"]) == (False, None, True)
    assert (full["available"], full["max_open_tickets"]) == (True, 1)
    assert [one["assignee_id"] for one in made] == [kim, None, kim]


async def test_a_ticket_that_is_reopened_unassigned_is_assigned_with_it(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    await change(client, ticket, status="closed")
    mia = await member("Mia")
    await set_assignment(client, "least_busy")
    await act(client, ticket, "customer-reply", text="Still there?")

    assert (await whole(client, ticket))["assignee_id"] == mia
    events = await told(client, "status", "assignee_id")
    assert events[-3:] == [
        ("ticket.status_changed", "open", mia),
        ("ticket.assigned", "open", mia),
        ("ticket.replied", "open", mia),
    ]


async def test_a_request_that_reopens_and_unassigns_leaves_the_ticket_unassigned(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    mia = await member("Mia")
    ticket = await virtual(client, assignee_id=mia)
    await set_assignment(client, "least_busy")
    await change(client, ticket, status="closed")

    reopened = await change(client, ticket, status="open", assignee_id=None)
    await change(client, ticket, status="closed")
    assigned = await change(client, ticket, status="open")

    assert (reopened["status"], reopened["assignee_id"]) == ("open", None)
    assert assigned["assignee_id"] == mia


async def test_a_project_without_a_choice_follows_the_installation(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"assignment": "least_busy"}
    )
    client = (await make_tenant(service)).client
    kim = await post(client, "/v1/members", name="Kim", email="kim@shop.example")
    assigned = await virtual(client)
    await set_assignment(client, "manual")

    assert assigned["assignee_id"] == kim["member_id"]
    assert (await virtual(client))["assignee_id"] is None


async def test_wrong_settings_of_agents_are_refused(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    viewer = await member("Vic", role="viewer")
    answers = [
        await client.patch(f"/v1/tickets/agents/{viewer}", json={"available": False}),
        await client.patch("/v1/tickets/agents/mem_none", json={"available": False}),
        await client.patch("/v1/tickets/settings", json={"assignment": "lottery"}),
        await client.patch(f"/v1/tickets/agents/{viewer}", json={"max_open_tickets": 0}),
    ]

    assert [answer.status_code for answer in answers] == [400, 404, 400, 400]


@pytest.mark.both_databases
async def test_presence_shows_who_looks_and_types_and_expires_by_itself(
    client: httpx2.AsyncClient, member: MakeMember, clock: FakeClock
) -> None:
    mia, kim = await member("Mia"), await member("Kim")
    ticket, other = await virtual(client), await virtual(client)
    path = f"/v1/tickets/{ticket['number']}/viewers"
    await put(client, f"{path}/{mia}")
    clock.advance(10)
    kims = await put(client, f"{path}/{kim}", typing=True)
    both = (await client.get(path)).json()
    first = (await client.get(f"{path}?limit=1")).json()
    second = (await client.get(f"{path}?limit=1&cursor={first['next_cursor']}")).json()
    clock.advance(7)
    await put(client, f"{path}/{mia}")
    quiet = (await client.get(path)).json()
    clock.advance(26)
    gone = (await client.get(path)).json()
    elsewhere = (await client.get(f"/v1/tickets/{other['number']}/viewers")).json()

    shown = [(one["member_id"], one["typing"]) for one in both["data"]]
    assert shown == [(kim, True), (mia, False)]
    assert both["data"] == [kims, second["data"][0]] == [*first["data"], *second["data"]]
    assert both["next_cursor"] is second["next_cursor"] is None
    assert [one["typing"] for one in quiet["data"]] == [False, False]
    assert gone == elsewhere == {"data": [], "next_cursor": None}


async def test_presence_of_a_ticket_of_another_project_is_not_recorded(
    client: httpx2.AsyncClient, member: MakeMember, service: Service, make_tenant: MakeTenant
) -> None:
    ticket = await virtual((await make_tenant(service, "Other")).client)
    mia = await member("Mia")
    answer = await client.put(f"/v1/tickets/{ticket['ticket_id']}/viewers/{mia}", json={})

    assert answer.status_code == 404
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS many FROM helpdesk_views") == 0


@pytest.mark.both_databases
async def test_a_member_who_is_removed_leaves_no_trace_of_what_they_saw(
    client: httpx2.AsyncClient, member: MakeMember, service: Service
) -> None:
    mia = await member("Mia")
    ticket = await virtual(client)
    await put(client, f"/v1/tickets/{ticket['ticket_id']}/viewers/{mia}")
    assert (await client.delete(f"/v1/members/{mia}")).status_code == 204

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS many FROM helpdesk_views") == 0
