"""Tickets by the API: opened, found, given to members, changed, and what is refused."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import (
    DAY_S,
    LIMITS,
    PLUGINS,
    MakeMember,
    act,
    change,
    listed,
    messages_of,
    post,
    refusal,
    said,
    told,
    virtual,
    whole,
)


async def test_a_virtual_customer_is_kept_as_the_project_knows_them(
    client: httpx2.AsyncClient,
) -> None:
    ticket = await virtual(
        client,
        "Do you deliver?",
        name="Dora",
        email="dora@example.com",
        subject="Delivery",
        priority="high",
        tags=["vip", "phone", "vip"],
    )

    found = await whole(client, ticket)
    messages = await messages_of(client, ticket)
    assert found == ticket
    assert ticket["sla"] == []
    assert (ticket["channel"], ticket["subscriber_id"], ticket["source"]) == (
        "virtual",
        None,
        "api",
    )
    assert (ticket["customer_name"], ticket["customer_email"]) == ("Dora", "dora@example.com")
    assert (ticket["subject"], ticket["priority"]) == ("Delivery", "high")
    assert ticket["tags"] == ["phone", "vip"]
    assert [(one["author"], one["text"]) for one in messages["data"]] == [
        ("customer", "Do you deliver?")
    ]
    assert await told(client, "number", "status", "priority", "assignee_id", "subscriber_id") == [
        ("ticket.created", 1, "open", "high", None, None)
    ]


async def test_a_subscriber_is_named_by_either_id(client: httpx2.AsyncClient, ann_id: str) -> None:
    await client.patch(f"/v1/subscribers/{ann_id}", json={"external_id": "ann-1"})

    one = await post(client, "/v1/tickets", subscriber_id=ann_id, text="By phone")
    other = await post(client, "/v1/tickets", external_id="ann-1", text="By mail")

    assert one["subscriber_id"] == other["subscriber_id"] == ann_id
    assert (one["number"], other["number"]) == (1, 2)


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"text": "Hi"}, (400, "validation_failed")),
        ({"text": "Hi", "subscriber_id": "sub_no"}, (404, "subscriber_not_found")),
        (
            {"text": "Hi", "subscriber_id": "sub_1", "external_id": "1"},
            (400, "mutually_exclusive_identifiers"),
        ),
        (
            {"text": "Hi", "channel": "virtual", "subscriber_id": "sub_1"},
            (400, "validation_failed"),
        ),
        ({"text": "Hi", "subscriber_id": "sub_1", "name": "Ann"}, (400, "validation_failed")),
        ({"text": " ", "channel": "virtual"}, (400, "validation_failed")),
        ({"text": "x" * 4001, "channel": "virtual"}, (400, "validation_failed")),
        ({"text": "Hi", "channel": "virtual", "email": "no"}, (400, "validation_failed")),
        ({"text": "Hi", "channel": "virtual", "priority": "now"}, (400, "validation_failed")),
        ({"text": "Hi", "channel": "virtual", "tags": ["a,b"]}, (400, "validation_failed")),
        ({"text": "Hi", "channel": "virtual", "tags": [""]}, (400, "validation_failed")),
        (
            {"text": "Hi", "channel": "virtual", "tags": [f"t{n}" for n in range(21)]},
            (400, "validation_failed"),
        ),
        ({"text": "Hi", "channel": "virtual", "assignee_id": "mem_no"}, (404, "not_found")),
        ({"text": "Hi", "channel": "virtual", "file_ids": ["fil_no"]}, (404, "not_found")),
    ],
)
async def test_what_is_no_ticket_is_refused_and_takes_no_number(
    client: httpx2.AsyncClient, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    answer = await client.post("/v1/tickets", json=body)

    assert refusal(answer) == expected
    assert (await virtual(client))["number"] == 1


@pytest.mark.both_databases
async def test_lists_keep_to_their_filters_and_go_on_by_cursor(
    client: httpx2.AsyncClient, ann_id: str, member: MakeMember, clock: FakeClock
) -> None:
    mia = await member("Mia")
    one = await virtual(client, priority="urgent", tags=["vip"])
    clock.advance(60)
    two = await virtual(client, assignee_id=mia)
    three = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")
    await change(client, three, status="closed")

    async def numbers(**query: Any) -> list[int]:
        return [ticket["number"] for ticket in await listed(client, **query)]

    assert await numbers() == [3, 2, 1]
    assert await numbers(status="open") == [2, 1]
    assert await numbers(status="closed") == [3]
    assert await numbers(priority="urgent") == [1]
    assert await numbers(tag="vip") == [1]
    assert await numbers(assignee_id=mia) == [2]
    assert await numbers(assignee_id="none") == [3, 1]
    assert await numbers(subscriber_id=ann_id) == [3]
    assert await numbers(channel="virtual") == [2, 1]
    assert await numbers(created_after=one["created_at"]) == [3, 2]
    first = (await client.get("/v1/tickets?limit=2")).json()
    rest = (await client.get(f"/v1/tickets?limit=2&cursor={first['next_cursor']}")).json()
    assert [ticket["number"] for ticket in first["data"] + rest["data"]] == [3, 2, 1]
    assert rest["next_cursor"] is None
    assert two["assignee_id"] == mia
    assert refusal(await client.get("/v1/tickets?cursor=!")) == (400, "bad_request")
    assert refusal(await client.get("/v1/tickets?channel=no")) == (400, "validation_failed")


@pytest.mark.both_databases
async def test_a_tickets_messages_come_in_pages(client: httpx2.AsyncClient) -> None:
    ticket = await virtual(client, "0")
    for number in range(1, 5):
        await act(client, ticket, "customer-reply", text=str(number))

    first = await messages_of(client, ticket, limit=3)
    rest = await messages_of(client, ticket, limit=3, cursor=first["next_cursor"])

    assert [message["text"] for message in first["data"]] == ["4", "3", "2"]
    assert [message["text"] for message in rest["data"]] == ["1", "0"]
    assert rest["next_cursor"] is None


async def test_a_ticket_is_found_by_its_number(client: httpx2.AsyncClient) -> None:
    ticket = await virtual(client)

    found = await whole(client, "1")

    assert found["ticket_id"] == ticket["ticket_id"]
    for name in ("2", "0", "-1", "١", "1" * 40, "tkt_no", "#1"):
        assert refusal(await client.get(f"/v1/tickets/{name}")) == (404, "not_found")


async def test_a_virtual_customer_goes_on_by_the_api_and_others_by_their_messenger(
    client: httpx2.AsyncClient, ann_id: str, clock: FakeClock
) -> None:
    ticket = await virtual(client, "Help", name="Dora", email="dora@example.com")
    theirs = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")
    await change(client, ticket, status="closed")

    reopened = await act(client, ticket, "customer-reply", text="Not yet")
    await change(client, ticket, status="closed")
    clock.advance(8 * DAY_S)
    anew = await act(client, ticket, "customer-reply", text="Once more")

    assert (reopened["ticket_id"], reopened["status"]) == (ticket["ticket_id"], "open")
    assert (anew["number"], anew["customer_name"]) == (3, "Dora")
    assert await said(client, anew) == ["Once more"]
    refused = await client.post(
        f"/v1/tickets/{theirs['ticket_id']}/customer-reply", json={"text": "Hi"}
    )
    assert refusal(refused) == (409, "conflict")


async def test_what_changes_nothing_is_told_of_by_nothing(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    mia = await member("Mia")
    changes: tuple[dict[str, Any], ...] = (
        {"status": "pending"},
        {"priority": "low"},
        {"tags": ["a"]},
        {"assignee_id": mia},
        {"status": "closed"},
        {"snoozed_until": None},
        {},
    )
    for changed in changes:
        once = await change(client, ticket, **changed)
        twice = await change(client, ticket, **changed)
        assert once == twice

    final = await change(client, ticket, assignee_id=None)

    assert (final["priority"], final["tags"], final["assignee_id"]) == ("low", ["a"], None)
    assert await told(client, "assignee_id") == [
        ("ticket.created", None),
        ("ticket.status_changed", None),
        ("ticket.assigned", mia),
        ("ticket.status_changed", mia),
        ("ticket.closed", mia),
        ("ticket.assigned", None),
    ]


async def test_one_request_changes_several_fields_or_none(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    mia = await member("Mia")
    path = f"/v1/tickets/{ticket['ticket_id']}"
    changes = {"status": "closed", "priority": "high", "assignee_id": mia, "tags": ["b", "a"]}

    refused = await client.patch(path, json={**changes, "assignee_id": "mem_no"})
    before = await whole(client, ticket)
    changed = await change(client, ticket, **changes)

    assert (refusal(refused), before) == ((404, "not_found"), ticket)
    assert {name: changed[name] for name in changes} == {**changes, "tags": ["a", "b"]}
    assert await told(client, "status", "priority", "assignee_id") == [
        ("ticket.created", "open", "normal", None),
        ("ticket.assigned", "open", "high", mia),
        ("ticket.status_changed", "closed", "high", mia),
        ("ticket.closed", "closed", "high", mia),
    ]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"status": None}, "status"),
        ({"priority": None}, "priority"),
        ({"tags": None}, "tags"),
        ({"status": "done"}, "status"),
        ({"only_if_unassigned": True}, "only_if_unassigned"),
        ({"only_if_unassigned": True, "assignee_id": None}, "only_if_unassigned"),
        ({"status": "open", "snoozed_until": "2030-01-01T00:00:00Z"}, "snoozed_until"),
    ],
)
async def test_changes_that_make_no_sense_are_refused(
    client: httpx2.AsyncClient, body: dict[str, Any], named: str
) -> None:
    ticket = await virtual(client)

    answer = await client.patch(f"/v1/tickets/{ticket['ticket_id']}", json=body)

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith(named)
    assert await whole(client, ticket) == ticket


async def test_a_tag_is_added_and_removed_by_its_path(client: httpx2.AsyncClient) -> None:
    ticket = await virtual(client, tags=["phone"])
    path = f"/v1/tickets/{ticket['ticket_id']}/tags"

    added = [await client.put(f"{path}/{name}") for name in ("vip", "vip", "late%20parcel")]
    removed = [await client.delete(f"{path}/{name}") for name in ("phone", "phone")]
    wrong = await client.put(f"{path}/a%2Cb")

    assert [answer.json()["tags"] for answer in added] == [
        ["phone", "vip"],
        ["phone", "vip"],
        ["late parcel", "phone", "vip"],
    ]
    assert [(answer.status_code, answer.content) for answer in removed] == [(204, b"")] * 2
    assert (await whole(client, ticket))["tags"] == ["late parcel", "vip"]
    assert refusal(wrong) == (400, "validation_failed")


async def test_only_those_who_answer_customers_get_tickets(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    vic = await member("Vic", role="viewer")
    path = f"/v1/tickets/{ticket['ticket_id']}"

    viewer = await client.patch(path, json={"assignee_id": vic})
    unknown = await client.patch(path, json={"assignee_id": "mem_no"})
    speaking = await client.post(f"{path}/reply", json={"text": "Hi", "member_id": vic})

    assert refusal(viewer) == (400, "validation_failed")
    assert refusal(unknown) == (404, "not_found")
    assert refusal(speaking) == (400, "validation_failed")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_the_first_of_those_who_take_a_ticket_at_once_has_it(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    agents = [await member(name) for name in ("Mia", "Max", "Moe", "Meg")]

    answers = await asyncio.gather(
        *(
            client.patch(
                f"/v1/tickets/{ticket['ticket_id']}",
                json={"assignee_id": agent, "only_if_unassigned": True},
            )
            for agent in agents
        )
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    [winner] = [answer.json()["assignee_id"] for answer in answers if answer.is_success]
    assert all(winner in answer.json()["error"] for answer in answers if not answer.is_success)
    assert await told(client, "assignee_id") == [
        ("ticket.created", None),
        ("ticket.assigned", winner),
    ]


@pytest.mark.both_databases
async def test_new_tickets_go_to_agents_in_turn_where_the_setting_says_so(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"assignment": "round_robin"}
    )
    tenant: Tenant = await make_tenant(service)
    nobody = await virtual(tenant.client)
    agents = [
        (await post(tenant.client, "/v1/members", name=name, email=f"{name}@shop.example"))[
            "member_id"
        ]
        for name in ("Mia", "Max", "Moe")
    ]
    await post(tenant.client, "/v1/members", name="Vic", email="v@shop.example", role="viewer")

    made = await asyncio.gather(*(virtual(tenant.client) for _ in range(6)))

    assert nobody["assignee_id"] is None
    by_number = sorted(made, key=lambda ticket: int(ticket["number"]))
    assert [ticket["assignee_id"] for ticket in by_number] == [*agents, *agents]
    events = await told(tenant.client, "assignee_id")
    assert [who for name, who in events if name == "ticket.assigned"] == [*agents, *agents]


async def test_numbers_have_neither_gaps_nor_clashes_over_two_machines(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    one = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    url = one.settings.database_url
    two = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    tenant: Tenant = await make_tenant(one)
    other = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=two.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    )

    async def fail(client: httpx2.AsyncClient) -> None:
        await client.post(
            "/v1/tickets", json={"channel": "virtual", "text": "Hi", "file_ids": ["fil_no"]}
        )

    async with other:
        await asyncio.gather(
            *(virtual(client) for _ in range(10) for client in (tenant.client, other)),
            *(fail(client) for _ in range(5) for client in (tenant.client, other)),
        )

    found = await listed(tenant.client, limit=100)
    assert sorted(ticket["number"] for ticket in found) == list(range(1, 21))


async def test_a_ticket_that_is_deleted_leaves_nothing(client: httpx2.AsyncClient) -> None:
    stored = await client.post("/v1/files", files={"file": ("plan.txt", b"Turn left")})
    file_id = stored.json()["file_id"]
    ticket = await virtual(client, file_ids=[file_id])
    other = await virtual(client)
    await act(client, other, "merge", into=ticket["ticket_id"])

    gone = await client.delete(f"/v1/tickets/{ticket['ticket_id']}")

    assert gone.status_code == 204
    assert await listed(client) == []
    assert refusal(await client.get(f"/v1/files/{file_id}")) == (404, "not_found")
    assert refusal(await client.get("/v1/tickets/2")) == (404, "not_found")
    assert (await virtual(client))["number"] == 3


async def test_a_key_without_the_scope_sees_no_tickets(service: Service, make_tenant: Any) -> None:
    messages_only: Tenant = await make_tenant(service, scopes=("messages",))
    helpdesk: Tenant = await make_tenant(service, scopes=("helpdesk",))

    assert refusal(await messages_only.client.get("/v1/tickets")) == (403, "forbidden")
    assert (await helpdesk.client.get("/v1/tickets")).status_code == 200
