"""Two tickets of one matter become one."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant

from .conftest import Person, act, change, listed, post, refusal, said, told, virtual, whole


async def test_what_was_said_in_both_is_in_one_and_the_other_leads_there(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    one = await virtual(client, "First")
    other = await virtual(client, "Second")
    await act(client, one, "customer-reply", text="Third")

    merged = await act(client, other, "merge", into=one["ticket_id"])

    assert merged["ticket_id"] == one["ticket_id"]
    assert await said(client, one) == ["First", "Second", "Third"]
    for name in (other["ticket_id"], "2"):
        assert (await whole(client, name))["number"] == 1
    answered = await act(client, other, "reply", text="Hello")
    assert answered["ticket"]["number"] == 1
    gone = (await listed(client))[0]
    assert (gone["number"], gone["status"], gone["merged_into"]) == (2, "closed", one["ticket_id"])
    assert await told(client, "number", "merged_into") == [
        ("ticket.created", 1, None),
        ("ticket.created", 2, None),
        ("ticket.replied", 1, None),
        ("ticket.status_changed", 2, None),
        ("ticket.closed", 2, one["ticket_id"]),
        ("ticket.replied", 1, None),
        ("ticket.status_changed", 1, None),
    ]


async def test_a_chain_of_merges_leads_to_its_end(client: httpx2.AsyncClient) -> None:
    one, two, three = [await virtual(client, text) for text in ("a", "b", "c")]

    await act(client, one, "merge", into="2")
    await act(client, two, "merge", into="3")

    assert (await whole(client, "1"))["number"] == 3
    assert await said(client, three) == ["a", "b", "c"]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_merges_in_both_directions_at_once_are_one(client: httpx2.AsyncClient) -> None:
    one, two = [await virtual(client, text) for text in ("a", "b")]

    answers = await asyncio.gather(
        client.post(f"/v1/tickets/{one['ticket_id']}/merge", json={"into": "2"}),
        client.post(f"/v1/tickets/{two['ticket_id']}/merge", json={"into": "1"}),
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert await said(client, one) == ["a", "b"]
    assert [ticket["merged_into"] is None for ticket in await listed(client)].count(True) == 1


async def test_what_can_not_be_merged_is_refused(
    client: httpx2.AsyncClient, ann: Person, bob: Person
) -> None:
    ann_id, bob_id = await ann.subscribe(client), await bob.subscribe(client)
    anns = await post(client, "/v1/tickets", subscriber_id=ann_id, text="a")
    bobs = await post(client, "/v1/tickets", subscriber_id=bob_id, text="b")
    none = await virtual(client)
    await act(client, none, "merge", into=anns["ticket_id"])

    async def refused(ticket: str, into: str) -> tuple[int, str]:
        return refusal(await client.post(f"/v1/tickets/{ticket}/merge", json={"into": into}))

    assert await refused("1", "1") == (400, "validation_failed")
    assert await refused("1", "2") == (409, "conflict")
    assert await refused("3", "2") == (409, "conflict")
    assert await refused("2", "3") == (409, "conflict")
    assert await refused("1", "9") == (404, "not_found")
    assert await refused("9", "1") == (404, "not_found")
    assert await said(client, bobs) == ["b"]


async def test_a_ticket_is_open_where_the_other_ones_customer_waits(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    pending, closed, waiting = [await virtual(client) for _ in range(3)]
    await act(client, pending, "reply", text="Which one?")
    await change(client, closed, status="closed")
    again = await act(client, waiting, "merge", into=pending["ticket_id"])
    other = await virtual(client)

    still = await act(client, other, "merge", into=closed["ticket_id"])

    assert (again["status"], again["waiting_since"]) == ("open", waiting["waiting_since"])
    assert (still["status"], still["waiting_since"]) == ("closed", None)


async def test_another_projects_ticket_is_answered_as_missing(
    service: Service, client: httpx2.AsyncClient, make_tenant: Any
) -> None:
    stranger: Tenant = await make_tenant(service, "Other")
    theirs = await virtual(stranger.client)
    ours = await virtual(client)

    answer = await client.post(
        f"/v1/tickets/{ours['ticket_id']}/merge", json={"into": theirs["ticket_id"]}
    )

    assert refusal(answer) == (404, "not_found")
    assert theirs["number"] == ours["number"] == 1


async def test_messages_go_on_in_the_ticket_that_is_left(
    client: httpx2.AsyncClient, ann: Person, ann_id: str
) -> None:
    await ann.write("By the bot")
    by_phone = await post(client, "/v1/tickets", subscriber_id=ann_id, text="By phone")

    await act(client, {"ticket_id": "1"}, "merge", into=by_phone["ticket_id"])
    await ann.write("More")

    assert len(await listed(client)) == 2
    assert await said(client, by_phone) == ["By the bot", "By phone", "More"]
