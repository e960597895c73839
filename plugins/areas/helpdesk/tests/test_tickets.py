"""Tickets by the API: opened, found, answered, changed, and what is refused."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, RecordingChannel, settled
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant

from .conftest import (
    DAY_S,
    LIMITS,
    PLUGINS,
    MakeMember,
    Person,
    act,
    listed,
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
    messages = found.pop("messages")
    assert found == ticket
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


async def test_lists_keep_to_their_filters_and_go_on_by_cursor(
    client: httpx2.AsyncClient, ann_id: str, member: MakeMember, clock: FakeClock
) -> None:
    mia = await member("Mia")
    one = await virtual(client, priority="urgent", tags=["vip"])
    clock.advance(60)
    two = await virtual(client, assignee_id=mia)
    three = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")
    await act(client, three, "close")

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


async def test_a_tickets_messages_come_in_pages(client: httpx2.AsyncClient) -> None:
    ticket = await virtual(client, "0")
    for number in range(1, 5):
        await act(client, ticket, "customer-reply", text=str(number))

    first = (await whole(client, ticket, limit=3))["messages"]
    rest = (await whole(client, ticket, limit=3, cursor=first["next_cursor"]))["messages"]

    assert [message["text"] for message in first["data"]] == ["4", "3", "2"]
    assert [message["text"] for message in rest["data"]] == ["1", "0"]
    assert rest["next_cursor"] is None


async def test_a_ticket_is_found_by_its_number(client: httpx2.AsyncClient) -> None:
    ticket = await virtual(client)

    found = await whole(client, "1")

    assert found["ticket_id"] == ticket["ticket_id"]
    for name in ("2", "0", "-1", "١", "1" * 40, "tkt_no", "#1"):
        assert refusal(await client.get(f"/v1/tickets/{name}")) == (404, "not_found")


async def test_an_answer_reaches_the_customer_and_its_delivery_is_shown(
    client: httpx2.AsyncClient, service: Service, ann: Person, ann_id: str, member: MakeMember
) -> None:
    mia = await member("Mia")
    await ann.write("Help")
    [ticket] = await listed(client)

    answer = await act(client, ticket, "reply", text="<b>Sure</b>", format="html", member_id=mia)
    await settled(service)

    assert ann.messages[-1].message.text == "<b>Sure</b>"
    assert ann.messages[-1].message.format == "html"
    assert answer["message"]["delivery"]["status"] == "queued"
    assert (answer["message"]["author"], answer["message"]["member_id"]) == ("agent", mia)
    latest = (await whole(client, ticket))["messages"]["data"][0]
    assert latest["delivery"] == {**answer["message"]["delivery"], "status": "sent"}
    assert await told(client, "author", "text", "from", "to") == [
        ("ticket.created", None, None, None, None),
        ("ticket.replied", "agent", "<b>Sure</b>", None, None),
        ("ticket.status_changed", None, None, "open", "pending"),
    ]


async def test_an_answer_that_the_messenger_refuses_is_shown_as_such(
    client: httpx2.AsyncClient,
    service: Service,
    channel: RecordingChannel,
    ann: Person,
    ann_id: str,
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    channel.failures.append(DeliveryError(Reason.USER_BLOCKED_BOT, "blocked"))

    await act(client, ticket, "reply", text="Sure")
    await settled(service)
    again = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json={"text": "Hm"})

    latest = (await whole(client, ticket))["messages"]["data"][0]
    assert (latest["delivery"]["status"], latest["delivery"]["reason"]) == (
        "failed",
        "user_blocked_bot",
    )
    assert refusal(again) == (409, "conflict")


async def test_a_note_is_seen_by_nobody_but_agents(
    client: httpx2.AsyncClient, service: Service, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    await act(client, ticket, "close")
    await settled(service)
    shown = len(ann.messages)

    answer = await act(client, ticket, "reply", text="Rude.", internal=True)
    await settled(service)

    assert answer["message"]["internal"] is True
    assert answer["ticket"]["status"] == "closed"
    assert answer["ticket"]["first_response_seconds"] is None
    assert len(ann.messages) == shown
    assert "ticket.replied" not in await told(client)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "validation_failed")),
        ({"text": ""}, (400, "validation_failed")),
        ({"text": "x" * 4001}, (400, "validation_failed")),
        ({"text": "Hi", "canned": "hello"}, (400, "validation_failed")),
        ({"canned": "nope"}, (404, "not_found")),
        ({"text": "Hi", "variables": {"a": 1}}, (400, "validation_failed")),
        ({"text": "Hi", "internal": True, "status": "open"}, (400, "validation_failed")),
        ({"text": "Hi", "member_id": "mem_no"}, (404, "not_found")),
        ({"text": "Hi", "file_id": "fil_no"}, (404, "not_found")),
        ({"text": "Hi", "status": "snoozed"}, (400, "validation_failed")),
    ],
)
async def test_what_is_no_answer_is_refused(
    client: httpx2.AsyncClient, ann_id: str, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    ticket = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")

    answer = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json=body)

    assert refusal(answer) == expected
    assert await said(client, ticket) == ["Hi"]


async def test_a_closed_ticket_takes_no_answer_until_it_is_opened(
    client: httpx2.AsyncClient,
) -> None:
    ticket = await virtual(client)
    await act(client, ticket, "close")

    refused = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json={"text": "Hi"})
    await act(client, ticket, "status", status="open")
    answer = await act(client, ticket, "reply", text="Hi", status="closed")

    assert refusal(refused) == (409, "conflict")
    assert answer["ticket"]["status"] == "closed"
    assert await told(client) == [
        "ticket.created",
        "ticket.status_changed",
        "ticket.closed",
        "ticket.status_changed",
        "ticket.replied",
        "ticket.status_changed",
        "ticket.closed",
    ]


async def test_files_go_both_ways(
    client: httpx2.AsyncClient, service: Service, ann: Person, ann_id: str
) -> None:
    stored = await client.post("/v1/files", files={"file": ("plan.txt", b"Turn left")})
    file_id = stored.json()["file_id"]
    ticket = await post(
        client, "/v1/tickets", subscriber_id=ann_id, text="Where?", file_ids=[file_id]
    )

    answer = await act(client, ticket, "reply", text="Here", file_id=file_id)
    await settled(service)

    media = ann.messages[-1].message.media
    assert media is not None
    assert (media.type, media.filename) == ("document", "plan.txt")
    assert answer["message"]["file_ids"] == [file_id]
    messages = (await whole(client, ticket))["messages"]["data"]
    assert [message["file_ids"] for message in messages] == [[file_id], [file_id]]


async def test_media_by_an_address_goes_as_in_send(client: httpx2.AsyncClient, ann_id: str) -> None:
    ticket = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Where?")
    media = {"type": "image", "url": "https://shop.example/map.png", "filename": None}

    answer = await act(client, ticket, "reply", text="Here", media=media)

    message_id = answer["message"]["delivery"]["message_id"]
    assert (await client.get(f"/v1/messages/{message_id}")).json()["media"] == media
    assert answer["message"]["media"] == media


async def test_a_virtual_customer_goes_on_by_the_api_and_others_by_their_messenger(
    client: httpx2.AsyncClient, ann_id: str, clock: FakeClock
) -> None:
    ticket = await virtual(client, "Help", name="Dora", email="dora@example.com")
    theirs = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")
    await act(client, ticket, "close")

    reopened = await act(client, ticket, "customer-reply", text="Not yet")
    await act(client, ticket, "close")
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
    for action, body in (
        ("status", {"status": "pending"}),
        ("priority", {"priority": "low"}),
        ("tags", {"tags": ["a"]}),
        ("assign", {"assignee_id": mia}),
        ("close", {}),
    ):
        once = await act(client, ticket, action, **body)
        twice = await act(client, ticket, action, **body)
        assert once == twice

    final = await act(client, ticket, "assign", assignee_id=None)

    assert (final["priority"], final["tags"], final["assignee_id"]) == ("low", ["a"], None)
    assert await told(client, "assignee_id") == [
        ("ticket.created", None),
        ("ticket.status_changed", None),
        ("ticket.assigned", mia),
        ("ticket.status_changed", mia),
        ("ticket.closed", mia),
        ("ticket.assigned", None),
    ]


async def test_only_those_who_answer_customers_get_tickets(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    vic = await member("Vic", role="viewer")
    path = f"/v1/tickets/{ticket['ticket_id']}"

    viewer = await client.post(f"{path}/assign", json={"assignee_id": vic})
    unknown = await client.post(f"{path}/assign", json={"assignee_id": "mem_no"})
    speaking = await client.post(f"{path}/reply", json={"text": "Hi", "member_id": vic})

    assert refusal(viewer) == (400, "validation_failed")
    assert refusal(unknown) == (404, "not_found")
    assert refusal(speaking) == (400, "validation_failed")


async def test_the_first_of_those_who_take_a_ticket_at_once_has_it(
    client: httpx2.AsyncClient, member: MakeMember
) -> None:
    ticket = await virtual(client)
    agents = [await member(name) for name in ("Mia", "Max", "Moe", "Meg")]

    answers = await asyncio.gather(
        *(
            client.post(
                f"/v1/tickets/{ticket['ticket_id']}/assign",
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
