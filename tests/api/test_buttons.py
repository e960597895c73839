"""A press on a button of a project's message, and what a modified client may try."""

from typing import Any

from msgsvc_core.channels import ButtonPressed, ChannelUser
from msgsvc_core.service import Service
from msgsvc_core.testing import RecordingChannel, settled
from msgsvc_core.testing.fixtures import Tenant

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


async def press(
    service: Service, channel: RecordingChannel, data: str, chat_id: str = "chat-Ann"
) -> None:
    await service.inbound.receive(
        "messenger_a",
        ButtonPressed(
            update_id=f"press-{data}-{chat_id}",
            chat_id=chat_id,
            user=ANN,
            data=data,
            message_ref=channel.sent[-1].message_ref,
            button_ref="b1",
            text="what the client says",
        ),
    )
    await settled(service)


async def clicks(tenant: Tenant) -> list[dict[str, Any]]:
    answer = await tenant.client.get("/v1/events?event=button.clicked")
    return [event["data"] for event in answer.json()["data"]]


async def test_a_press_is_told_with_the_buttons_own_data_and_text(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "vote:1")

    (click,) = await clicks(tenant)
    assert (click["data"], click["text"]) == ("vote:1", "For")
    assert channel.answered == [("b1", None)]


async def test_data_that_was_never_offered_is_not_told(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "refund:all")

    assert await clicks(tenant) == []
    assert channel.answered == [("b1", "This button no longer works.")]


async def test_a_press_from_another_chat_is_not_told(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Any
) -> None:
    await send_question(service, tenant, subscribe)

    await press(service, channel, "vote:1", chat_id="chat-Boris")

    assert await clicks(tenant) == []
