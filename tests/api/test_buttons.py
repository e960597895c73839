"""A press on a button of a project's message, and what a modified client may try."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, OutgoingMessage
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Send
from tests.api.reading import events_named

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")


async def send_question(service: Service, tenant: Tenant, subscribe: Any) -> None:
    subscriber_id = await subscribe("Ann")
    answer = await tenant.client.post(
        "/v1/send",
        json={
            "subscriber_id": subscriber_id,
            "text": "Vote",
            "buttons": [[{"text": "For", "data": "vote:1"}, {"text": "Against", "data": "vote:0"}]],
        },
    )
    assert answer.status_code == 202, answer.text
    await settled(service)


def pressed(
    message_ref: str, data: str = "yes", *, user: ChannelUser = ANN, chat_id: str = "chat-Ann"
) -> ButtonPressed:
    return ButtonPressed(
        update_id=f"press-{message_ref}-{data}-{chat_id}-{user.user_id}",
        chat_id=chat_id,
        user=user,
        data=data,
        message_ref=message_ref,
        button_ref="press-1",
        text="what the client says",
    )


async def press(
    service: Service, channel: RecordingChannel, data: str, chat_id: str = "chat-Ann"
) -> None:
    message_ref = channel.sent[-1].message_ref
    await service.inbound.receive("messenger_a", pressed(message_ref, data, chat_id=chat_id))
    await settled(service)


async def test_a_click_on_a_button_of_a_message_is_told(
    service: Service, client: httpx2.AsyncClient, send: Send, ann: str, channel: RecordingChannel
) -> None:
    message_id = await send(buttons=[[{"text": "Yes", "data": "yes"}]])
    await settled(service)
    await service.inbound.receive("messenger_a", pressed(channel.sent[-1].message_ref))
    await settled(service)

    (data,) = await events_named(client, "button.clicked")
    assert (data["message_id"], data["subscriber_id"]) == (message_id, ann)
    assert (data["data"], data["text"]) == ("yes", "Yes")
    assert channel.answered == [("press-1", None)]


async def test_a_click_that_is_quicker_than_the_messages_outcome_is_told(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, may_end = asyncio.Event(), asyncio.Event()
    shows = channel.send

    async def show_and_wait(chat_id: str, message: OutgoingMessage) -> str:
        ref = await shows(chat_id, message)
        shown.set()
        await may_end.wait()
        return ref

    monkeypatch.setattr(channel, "send", show_and_wait)
    message_id = await send(buttons=[[{"text": "Yes", "data": "yes"}]])
    await shown.wait()
    bob = ChannelUser("user-Bob", "Bob")
    await service.inbound.receive("messenger_a", pressed("m1", user=bob, chat_id="chat-Bob"))
    await service.inbound.receive("messenger_a", pressed("m1", "no"))
    await service.inbound.receive("messenger_a", pressed("m1"))
    may_end.set()
    await settled(service)

    (click,) = await events_named(client, "button.clicked")
    assert (click["message_id"], click["data"]) == (message_id, "yes")
    assert sorted(channel.answered, key=str) == [
        ("press-1", "This button no longer works."),
        ("press-1", "This button no longer works."),
        ("press-1", None),
    ]


@pytest.mark.both_databases
async def test_a_click_by_somebody_else_is_not_told(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    await send(buttons=[[{"text": "Yes", "data": "yes"}]])
    await settled(service)
    bob = ChannelUser("user-Bob", "Bob")
    await service.inbound.receive("messenger_a", pressed(channel.sent[-1].message_ref, user=bob))

    assert await events_named(client, "button.clicked") == []


async def test_a_button_of_ours_that_nobody_knows_gets_a_notice(
    service: Service, channel: RecordingChannel, ann: str
) -> None:
    await service.inbound.receive("messenger_a", pressed("m1", "~unknown"))
    await settled(service)

    assert channel.answered == [("press-1", "This button no longer works.")]


async def test_a_press_is_told_with_the_buttons_own_data_and_text(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "vote:1")

    (click,) = await events_named(tenant.client, "button.clicked")
    assert (click["data"], click["text"]) == ("vote:1", "For")
    assert channel.answered == [("press-1", None)]


async def test_data_that_was_never_offered_is_not_told(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "refund:all")

    assert await events_named(tenant.client, "button.clicked") == []
    assert channel.answered == [("press-1", "This button no longer works.")]


async def test_a_press_from_another_chat_is_not_told(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "vote:1", chat_id="chat-Boris")

    assert await events_named(tenant.client, "button.clicked") == []
