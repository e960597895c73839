"""One change of many tickets, in the background."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_helpdesk.bulk_actions import actions

from .conftest import LIMITS, PLUGINS, MakeMember, act, change, listed, post, refusal, told, virtual

PATH = "/v1/tickets/bulk-actions"

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture
async def tickets(client: httpx2.AsyncClient) -> list[str]:
    """Five, of which the first three are about a delivery; the fifth is closed."""
    made = [await virtual(client, tags=["delivery"] * (n < 3)) for n in range(5)]
    await change(client, made[4], status="closed")
    return [ticket["ticket_id"] for ticket in made]


async def found(client: httpx2.AsyncClient, bulk: dict[str, Any]) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{bulk['bulk_action_id']}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def ends(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    feed = await client.get("/v1/events", params={"event": "bulk_action.finished"})
    return [event["data"] for event in feed.json()["data"]]


async def by_id(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    return {ticket["ticket_id"]: ticket for ticket in await listed(client, limit=100)}


@pytest.mark.both_databases
async def test_those_that_match_are_changed_with_the_events_of_single_changes(
    service: Service, client: httpx2.AsyncClient, tickets: list[str]
) -> None:
    before = len(await told(client))
    bulk = await post(client, PATH, action="close", filters={"tag": "delivery", "status": "open"})
    assert (bulk["status"], bulk["value"], bulk["total"]) == ("running", None, None)
    await settled(service)

    ended = await found(client, bulk)
    assert (ended["status"], ended["total"], ended["processed"], ended["failed"]) == (
        "completed",
        3,
        3,
        0,
    )
    now = await by_id(client)
    assert [now[one]["status"] for one in tickets] == [
        "closed",
        "closed",
        "closed",
        "open",
        "closed",
    ]
    assert (await told(client))[before:] == ["ticket.status_changed", "ticket.closed"] * 3
    [end] = await ends(client)
    for field in (
        "bulk_action_id",
        "action",
        "status",
        "total",
        "processed",
        "failed",
        "code",
        "error",
    ):
        assert end[field] == ended[field]
    assert end["kind"] == "tickets"


@pytest.mark.parametrize(
    ("action", "value", "field", "after"),
    [
        ("set_status", "pending", "status", "pending"),
        ("set_priority", "urgent", "priority", "urgent"),
        ("add_tag", "vip", "tags", ["delivery", "vip"]),
        ("remove_tag", "delivery", "tags", []),
    ],
)
async def test_named_tickets_are_changed_and_unknown_ones_fail(
    service: Service,
    client: httpx2.AsyncClient,
    tickets: list[str],
    action: str,
    value: str,
    field: str,
    after: Any,
) -> None:
    gone = "tkt_0000000000000000000000"
    named = [tickets[0], gone, tickets[0]]
    bulk = await post(client, PATH, action=action, value=value, ticket_ids=named)
    assert (bulk["status"], bulk["total"]) == ("running", 2)
    await settled(service)

    ended = await found(client, bulk)
    now = await by_id(client)
    assert (ended["status"], ended["processed"], ended["failed"]) == ("completed", 2, 1)
    assert now[tickets[0]][field] == after
    assert now[tickets[1]][field] != after


@pytest.mark.both_databases
async def test_all_are_assigned_and_unassigned_in_several_steps(
    service: Service,
    client: httpx2.AsyncClient,
    tickets: list[str],
    member: MakeMember,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions, "CHANGED", 2)
    kim = await member("Kim")
    bulk = await post(client, PATH, action="assign", value=kim, all=True)
    await settled(service)
    assert (await found(client, bulk))["processed"] == 5
    assert {one["assignee_id"] for one in (await by_id(client)).values()} == {kim}

    mine = {"assignee_id": kim, "priority": "normal"}
    bulk = await post(client, PATH, action="assign", value=None, filters=mine)
    await settled(service)
    assert {one["assignee_id"] for one in (await by_id(client)).values()} == {None}
    assert (await told(client)).count("ticket.assigned") == 10


async def test_a_ticket_that_takes_no_further_tag_fails_alone(
    service: Service, client: httpx2.AsyncClient, tickets: list[str]
) -> None:
    full = [f"tag-{n}" for n in range(20)]
    await change(client, {"ticket_id": tickets[0]}, tags=full)
    bulk = await post(client, PATH, action="add_tag", value="vip", ticket_ids=tickets[:2])
    await settled(service)

    ended = await found(client, bulk)
    now = await by_id(client)
    assert (ended["status"], ended["processed"], ended["failed"]) == ("completed", 2, 1)
    assert (now[tickets[0]]["tags"], now[tickets[1]]["tags"]) == (sorted(full), ["delivery", "vip"])


async def test_it_fails_when_the_assignee_is_removed_before_its_step(
    service: Service, client: httpx2.AsyncClient, tickets: list[str], member: MakeMember
) -> None:
    kim = await member("Kim")
    bulk = await post(client, PATH, action="assign", value=kim, ticket_ids=tickets)
    await client.delete(f"/v1/members/{kim}")
    await settled(service)

    ended = await found(client, bulk)
    assert (ended["status"], ended["code"], ended["processed"]) == ("failed", "assignee_gone", 0)
    assert [end["code"] for end in await ends(client)] == ["assignee_gone"]


async def test_a_cancelled_one_changes_nothing_any_more(
    service: Service, client: httpx2.AsyncClient, tickets: list[str]
) -> None:
    bulk = await post(client, PATH, action="close", all=True)
    cancel = f"{PATH}/{bulk['bulk_action_id']}/cancel"
    answer = await client.post(cancel)
    await settled(service)

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert len(await listed(client, status="open")) == 4
    assert refusal(await client.post(cancel)) == (409, "conflict")
    assert [end["status"] for end in await ends(client)] == ["cancelled"]


async def test_what_is_due_is_what_was_due_at_the_start(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    targets = {"normal": {"first_response_seconds": 3600, "counted_in": "calendar"}}
    assert (await client.patch("/v1/tickets/sla", json=targets)).is_success
    late = await virtual(client)
    clock.advance(3600)
    bulk = await post(client, PATH, action="set_priority", value="high", filters={"due": "overdue"})
    later = await virtual(client)
    await settled(service)

    now = await by_id(client)
    assert (await found(client, bulk))["total"] == 1
    assert now[late["ticket_id"]]["priority"] == "high"
    assert now[later["ticket_id"]]["priority"] == "normal"


async def test_a_merged_ticket_is_not_among_those_that_match(
    service: Service, client: httpx2.AsyncClient, tickets: list[str]
) -> None:
    await act(client, {"ticket_id": tickets[0]}, "merge", into=tickets[1])
    bulk = await post(client, PATH, action="add_tag", value="vip", filters={"tag": "delivery"})
    await settled(service)

    assert (await found(client, bulk))["total"] == 2


async def test_one_about_more_than_the_limit_fails_and_changes_nothing(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"bulk_action_tickets": 1}
    )
    client = (await make_tenant(service)).client
    for _ in range(2):
        await virtual(client)
    bulk = await post(client, PATH, action="close", all=True)
    await settled(service)

    ended = await found(client, bulk)
    assert (ended["status"], ended["code"], ended["processed"]) == ("failed", "too_many", 0)
    assert len(await listed(client, status="open")) == 2


@pytest.mark.both_databases
async def test_a_step_that_broke_off_is_repeated_and_counted_once(
    service: Service,
    client: httpx2.AsyncClient,
    clock: FakeClock,
    tickets: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions, "CHANGED", 2)
    work, calls = actions.TicketWork._change_one, 0

    async def break_off(*given: Any) -> None:
        nonlocal calls
        calls += 1
        await work(*given)
        if calls == 4:
            raise ConnectionError

    monkeypatch.setattr(actions.TicketWork, "_change_one", break_off)
    bulk = await post(client, PATH, action="set_status", value="pending", ticket_ids=tickets[:4])
    await settled(service)
    assert (await found(client, bulk))["processed"] == 2

    clock.advance(60)
    await settled(service)

    ended = await found(client, bulk)
    assert (ended["status"], ended["processed"], ended["failed"]) == ("completed", 4, 0)
    # Four by this, and one when the fifth was closed.
    assert (await told(client)).count("ticket.status_changed") == 5
    assert len(await ends(client)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"action": "close"},
        {"action": "close", "value": "now", "all": True},
        {"action": "close", "filters": {}},
        {"action": "close", "all": True, "filters": {"status": "open"}},
        {"action": "close", "ticket_ids": []},
        {"action": "set_status", "value": "snoozed", "all": True},
        {"action": "set_priority", "value": "highest", "all": True},
        {"action": "add_tag", "all": True},
        {"action": "add_tag", "value": "a,b", "all": True},
        {"action": "close", "filters": {"channel": "nowhere"}},
    ],
)
async def test_what_does_not_belong_together_is_refused(
    client: httpx2.AsyncClient, body: dict[str, Any]
) -> None:
    assert refusal(await client.post(PATH, json=body)) == (400, "validation_failed")


async def test_an_unknown_member_is_assigned_nothing(client: httpx2.AsyncClient) -> None:
    body = {"action": "assign", "value": "mem_0000000000000000000000", "all": True}
    assert refusal(await client.post(PATH, json=body)) == (404, "not_found")


async def test_they_are_listed_newest_first_without_those_of_subscribers(
    client: httpx2.AsyncClient, tickets: list[str]
) -> None:
    made = [
        (await post(client, PATH, action="close", ticket_ids=[one]))["bulk_action_id"]
        for one in tickets[:3]
    ]
    other = "/v1/subscribers/bulk-actions"
    theirs = await post(client, other, action="add_tag", value="vip", all=True)

    first = (await client.get(PATH, params={"limit": 2})).json()
    rest = (await client.get(PATH, params={"cursor": first["next_cursor"]})).json()

    ids = [one["bulk_action_id"] for one in (*first["data"], *rest["data"])]
    assert ids == made[::-1]
    assert len((await client.get(other)).json()["data"]) == 1
    answer = await client.get(f"{PATH}/{theirs['bulk_action_id']}")
    assert refusal(answer) == (404, "not_found")
