"""Answers and notes: what reaches the customer, with which file, and what is refused."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled

from .conftest import (
    MakeMember,
    Person,
    act,
    change,
    listed,
    messages_of,
    post,
    refusal,
    said,
    told,
    virtual,
)


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
    latest = (await messages_of(client, ticket))["data"][0]
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

    latest = (await messages_of(client, ticket))["data"][0]
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
    await change(client, ticket, status="closed")
    await settled(service)
    shown = len(ann.messages)

    answer = await act(client, ticket, "reply", text="Rude.", internal=True)
    await settled(service)

    assert answer["message"]["internal"] is True
    assert answer["ticket"]["status"] == "closed"
    assert answer["ticket"]["first_response_seconds"] is None
    assert len(ann.messages) == shown
    assert "ticket.replied" not in await told(client)


@pytest.mark.shared_service
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


async def test_markup_of_an_answer_and_of_a_note_does_not_count(
    client: httpx2.AsyncClient, ann_id: str
) -> None:
    ticket = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Hi")
    text = f"<b>{'x' * 4000}</b>"

    for internal in (False, True):
        body = {"text": text, "format": "html", "internal": internal}
        answer = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json=body)
        assert answer.status_code < 300, answer.text


async def test_a_closed_ticket_takes_no_answer_until_it_is_opened(
    client: httpx2.AsyncClient,
) -> None:
    ticket = await virtual(client)
    await change(client, ticket, status="closed")

    refused = await client.post(f"/v1/tickets/{ticket['ticket_id']}/reply", json={"text": "Hi"})
    await change(client, ticket, status="open")
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
    messages = (await messages_of(client, ticket))["data"]
    assert [message["file_ids"] for message in messages] == [[file_id], [file_id]]


async def test_media_by_an_address_goes_as_in_send(client: httpx2.AsyncClient, ann_id: str) -> None:
    ticket = await post(client, "/v1/tickets", subscriber_id=ann_id, text="Where?")
    media = {"type": "image", "url": "https://shop.example/map.png", "filename": None}

    answer = await act(client, ticket, "reply", text="Here", media=media)

    message_id = answer["message"]["delivery"]["message_id"]
    assert (await client.get(f"/v1/messages/{message_id}")).json()["media"] == media
    assert answer["message"]["media"] == media
