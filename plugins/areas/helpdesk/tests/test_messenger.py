"""Customers write to the bot: what opens a ticket, what goes on with one, and what does neither."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ReceivedFile
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
    messages_of,
    post,
    refusal,
    said,
    told,
)


async def test_a_message_opens_a_ticket_and_the_next_one_goes_on_with_it(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("My order is late\nIt is number 7")
    await ann.write("Hello?")

    [ticket] = await listed(client)
    assert (ticket["number"], ticket["status"], ticket["source"]) == (1, "open", "message")
    assert (ticket["subscriber_id"], ticket["channel"]) == (ann_id, "messenger_a")
    assert (ticket["subject"], ticket["customer_name"]) == ("My order is late", "Ann")
    assert await said(client, ticket) == ["My order is late\nIt is number 7", "Hello?"]
    assert await told(client, "number", "author", "text", "subscriber_id") == [
        ("ticket.created", 1, None, None, ann_id),
        ("ticket.replied", 1, "customer", "Hello?", ann_id),
    ]


async def test_the_bot_says_once_that_a_message_has_arrived(
    client: httpx2.AsyncClient, ann: Person, bob: Person, ann_id: str
) -> None:
    await bob.subscribe(client)
    known = len(ann.messages)

    await ann.write("Help")
    await ann.write("Please")
    await bob.write("Помогите")

    assert [one.message.text for one in ann.messages[known:]] == [
        "Thank you, your message has reached Shop. Its number is 1; the answer will come in this chat."
    ]
    assert bob.shown == (
        "Спасибо, ваше сообщение передано: Shop. Его номер 2, ответ придёт в этот чат."
    )


async def test_the_bot_says_nothing_where_the_setting_says_so(
    make_service: ServiceFactory, make_tenant: Any, ann: Person
) -> None:
    service = await make_service(
        extra_plugins=PLUGINS, limits=LIMITS, helpdesk={"acknowledge": False}
    )
    tenant: Tenant = await make_tenant(service)
    there = Person(service, ann.user)
    await there.subscribe(tenant.client)
    known = len(there.messages)

    await there.write("Help")

    assert len(await listed(tenant.client)) == 1
    assert len(there.messages) == known


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_messages_at_once_open_one_ticket(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await asyncio.gather(*(ann.write(f"message {number}") for number in range(6)))

    [ticket] = await listed(client)
    assert sorted(await said(client, ticket)) == [f"message {number}" for number in range(6)]
    assert (await told(client)).count("ticket.created") == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_messages_that_two_machines_hear_at_once_open_one_ticket(
    make_service: ServiceFactory, make_tenant: Any, ann: Person
) -> None:
    one = await make_service(extra_plugins=PLUGINS, limits=LIMITS)
    url = one.settings.database_url
    two = await make_service(extra_plugins=PLUGINS, limits=LIMITS, database_url=url)
    tenant: Tenant = await make_tenant(one)
    here, there = Person(one, ann.user), Person(two, ann.user)
    await here.subscribe(tenant.client)

    await asyncio.gather(*(heard.write("Hi") for _ in range(4) for heard in (here, there)))

    [ticket] = await listed(tenant.client)
    assert await said(tenant.client, ticket) == ["Hi"] * 8


async def test_who_came_by_no_link_is_answered_kindly(
    client: httpx2.AsyncClient, ann: Person
) -> None:
    await ann.write("Is anybody there?")

    assert ann.shown.startswith("I can't tell yet who your message is for.")
    assert await listed(client) == []


@pytest.mark.both_databases
async def test_a_program_that_answers_everything_is_answered_within_a_budget(
    client: httpx2.AsyncClient, service: Service, ann: Person, clock: FakeClock
) -> None:
    known = len(ann.messages)
    for _ in range(48):
        for _ in range(3):
            await ann.write("I have received your message.")
        clock.advance(3600)

    assert len(ann.messages) - known == 2 * service.settings.limits.automatic_answers_per_day
    withheld = await client.get("/metrics")
    assert (
        'msgsvc_automatic_answers_withheld_total{channel="messenger_a",kind="stranger"} 136.0'
        in withheld.text
    )


async def test_who_has_left_is_told_how_to_come_back(
    client: httpx2.AsyncClient, bob: Person
) -> None:
    bob_id = await bob.subscribe(client)
    await client.delete(f"/v1/subscribers/{bob_id}")

    await bob.write("Привет")

    assert bob.shown.startswith("Вы отписались от Shop, поэтому ответ до вас не дойдёт.")
    assert await listed(client) == []
    found = await client.get(f"/v1/subscribers/{bob_id}")
    assert found.json()["status"] == "unsubscribed"


@pytest.mark.both_databases
async def test_who_seemed_unreachable_is_heard_and_subscribed_again(
    client: httpx2.AsyncClient, service: Service, ann: Person, ann_id: str
) -> None:
    """A server's refusal may have been wrong: the person writes, so they are there."""
    async with service.db.transaction() as tx:
        await service.subscribers.block(
            tx, "messenger_a", ann.user.user_id, reason="chat_not_found"
        )

    await ann.write("My order is late")

    [ticket] = await listed(client)
    assert await said(client, ticket) == ["My order is late"]
    found = await client.get(f"/v1/subscribers/{ann_id}")
    assert found.json()["status"] == "active"
    feed = (await client.get("/v1/events")).json()["data"]
    subscriptions = [one["event"] for one in feed if one["event"].startswith("subscription.")]
    assert subscriptions == [
        "subscription.created",
        "subscription.deleted",
        "subscription.created",
    ]


@pytest.mark.parametrize("failed_before", [False, True])
async def test_who_stopped_the_bot_is_not_subscribed_by_writing(
    client: httpx2.AsyncClient,
    service: Service,
    ann: Person,
    ann_id: str,
    failed_before: bool,
) -> None:
    async with service.db.transaction() as tx:
        user_id = ann.user.user_id
        if failed_before:
            await service.subscribers.block(tx, "messenger_a", user_id, reason="chat_not_found")
        await service.subscribers.block(
            tx, "messenger_a", user_id, reason="user_blocked_bot", by_failure=False
        )

    await ann.write("My order is late")

    assert await listed(client) == []
    found = await client.get(f"/v1/subscribers/{ann_id}")
    assert found.json()["status"] == "blocked"


async def test_who_writes_to_a_projects_own_bot_is_subscribed_by_that(
    client: httpx2.AsyncClient, service: Service, ann: Person
) -> None:
    made = await post(client, "/v1/channels", name="shop_bot", plugin="recording")
    key = next(
        one
        for one in service.channels.list_for_project(await _project(client))
        if one.name == "shop_bot"
    )
    there = Person(service, ann.user, key.key)

    await there.write("Do you have tea?")

    assert made["name"] == "shop_bot"
    [ticket] = await listed(client)
    assert ticket["channel"] == "shop_bot"
    feed = (await client.get("/v1/events?event=subscription.created")).json()["data"]
    assert [event["data"]["source"] for event in feed] == ["helpdesk"]


async def _project(client: httpx2.AsyncClient) -> str:
    return str((await client.get("/v1/project")).json()["project_id"])


async def test_an_empty_message_opens_nothing(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("  \n ")

    assert await listed(client) == []


@pytest.mark.parametrize(("days", "reopened"), [(6.9, True), (7.1, False)])
async def test_a_message_reopens_a_ticket_for_seven_days(
    client: httpx2.AsyncClient,
    clock: FakeClock,
    ann: Person,
    ann_id: str,
    days: float,
    reopened: bool,
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    await change(client, ticket, status="closed")
    clock.advance(days * DAY_S)

    await ann.write("Again")

    found = await listed(client)
    assert [one["number"] for one in found] == ([1] if reopened else [2, 1])
    assert found[0]["status"] == "open"
    after = ["ticket.status_changed", "ticket.replied"] if reopened else ["ticket.created"]
    before = ["ticket.created", "ticket.status_changed", "ticket.closed"]
    assert await told(client) == before + after


async def test_messages_after_the_end_reopen_a_ticket_once(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)

    await asyncio.gather(
        change(client, ticket, status="closed"),
        *(ann.write(f"more {number}") for number in range(4)),
    )
    await ann.write("last")

    [ticket] = await listed(client)
    assert ticket["status"] == "open"
    assert len(await said(client, ticket)) == 6
    changes = [one for one in await told(client, "from", "to") if one[1] is not None]
    assert changes[0] == ("ticket.status_changed", "open", "closed")
    assert changes[1:] == [("ticket.status_changed", "closed", "open")]


async def test_a_message_opens_a_pending_ticket_again(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("Help")
    [ticket] = await listed(client)
    answer = await act(client, ticket, "reply", text="What is wrong?")

    await ann.write("Everything")

    assert answer["ticket"]["status"] == "pending"
    [ticket] = await listed(client)
    assert ticket["status"] == "open"


@pytest.mark.both_databases
async def test_an_answer_to_a_message_of_an_older_ticket_goes_on_with_that(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await ann.write("First matter")
    [first] = await listed(client)
    await act(client, first, "reply", text="About the first")
    await settled(service)
    about_first = ann.messages[-1].message_ref
    await post(client, "/v1/tickets", subscriber_id=ann_id, text="Second matter, by phone")
    clock.advance(1)

    await ann.write("Thanks", reply_to=about_first)
    await ann.write("And the second?")

    second, first = await listed(client)
    assert await said(client, first) == [
        "First matter",
        "About the first",
        "Thanks",
        "And the second?",
    ]
    assert await said(client, second) == ["Second matter, by phone"]


async def test_a_changed_message_is_followed_and_what_it_said_is_kept(
    client: httpx2.AsyncClient, clock: FakeClock, ann: Person, ann_id: str
) -> None:
    await ann.write("My ordr is late", ref="m-1")
    clock.advance(5)
    await ann.edit("m-1", "My order is late")
    clock.advance(5)
    await ann.edit("m-1", "My order is very late")
    await ann.edit("m-1", "My order is very late")
    await ann.edit("m-other", "nobody's")

    [ticket] = await listed(client)
    [message] = (await messages_of(client, ticket))["data"]
    assert message["text"] == "My order is very late"
    assert [edit["text"] for edit in message["edits"]] == ["My ordr is late", "My order is late"]
    assert [edit["replaced_at"][:19] for edit in message["edits"]] == [
        "2026-01-15T12:00:05",
        "2026-01-15T12:00:10",
    ]
    assert message["edited_at"] == message["edits"][1]["replaced_at"]
    assert await told(client) == ["ticket.created"]


async def test_a_changed_text_leaves_files_alone_and_other_files_are_added(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    photo, other = (ReceivedFile("image", f"ref-{name}", f"{name}.jpg") for name in "ab")
    await ann.write("Broken", ref="m-1", files=(photo,))
    [ticket] = await listed(client)
    [before] = (await messages_of(client, ticket))["data"]

    await ann.edit("m-1", "It is broken", files=(photo,))
    [same] = (await messages_of(client, ticket))["data"]
    await ann.edit("m-1", "It is broken", files=(other,))
    [after] = (await messages_of(client, ticket))["data"]

    assert len(before["file_ids"]) == 1
    assert same["file_ids"] == before["file_ids"]
    assert after["file_ids"][0] == before["file_ids"][0]
    assert len(after["file_ids"]) == 2
    file = (await client.get(f"/v1/files/{after['file_ids'][1]}")).json()
    assert (file["filename"], file["subscriber_id"]) == ("b.jpg", ann_id)


@pytest.mark.both_databases
async def test_who_is_on_the_blocklist_opens_nothing_and_goes_on_with_nothing(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("Before")
    blocked = await client.put(f"/v1/tickets/blocklist/{ann_id}", json={"reason": "spam"})
    shown = len(ann.messages)

    await ann.write("During")
    during = await listed(client)
    listing = (await client.get("/v1/tickets/blocklist")).json()
    await client.delete(f"/v1/tickets/blocklist/{ann_id}")
    await ann.write("After")

    assert blocked.status_code == 200
    assert len(ann.messages) == shown
    assert await said(client, during[0]) == ["Before", "After"]
    assert [(one["subscriber_id"], one["reason"]) for one in listing["data"]] == [(ann_id, "spam")]
    again = await client.delete(f"/v1/tickets/blocklist/{ann_id}")
    assert refusal(again) == (404, "not_found")
    unknown = await client.put("/v1/tickets/blocklist/sub_unknown", json={})
    assert refusal(unknown) == (404, "subscriber_not_found")


@pytest.mark.both_databases
async def test_who_is_on_the_blocklist_changes_nothing_that_they_wrote_before(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("Before", ref="m-1")
    [ticket] = await listed(client)
    await client.put(f"/v1/tickets/blocklist/{ann_id}", json={})

    await ann.edit("m-1", "Spam", files=(ReceivedFile("image", "ref-a", "a.jpg"),))

    [message] = (await messages_of(client, ticket))["data"]
    assert (message["text"], message["edits"], message["file_ids"]) == ("Before", [], [])
