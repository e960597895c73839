"""Messages: what is refused at the call, what becomes of the others, and how it is told."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    Button,
    ButtonPressed,
    ChannelUser,
    DeliveryError,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, RecordingChannel, settled
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")

Send = Callable[..., Awaitable[str]]


@pytest.fixture
async def ann(subscribe: Subscribe) -> str:
    return await subscribe("Ann")


@pytest.fixture
def send(client: httpx2.AsyncClient, ann: str) -> Send:
    """`await send(text="Hi")` sends to Ann, unless told otherwise; returns the message's id."""

    async def post(**body: Any) -> str:
        answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi", **body})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    return post


async def message_of(client: httpx2.AsyncClient, message_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/messages/{message_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events_named(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    """Data of the events of that name, oldest first."""
    data = (await client.get("/v1/events", params={"event": name})).json()["data"]
    return [event["data"] for event in reversed(data)]


# ---- what is refused ----------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a text of 4,001 characters": ({"text": "x" * 4001}, "text: must be at most 4000 characters"),
    "four rows": ({"buttons": [[{"text": "A", "data": "a"}]] * 4}, "buttons: "),
    "four buttons in a row": ({"buttons": [[{"text": "A", "data": "a"}] * 4]}, "buttons[0]: "),
    "an empty row": ({"buttons": [[{"text": "A", "data": "a"}], []]}, "buttons[1]: "),
    "a button without text": ({"buttons": [[{"text": "", "data": "a"}]]}, "buttons[0][0].text: "),
    "a button without action": ({"buttons": [[{"text": "A"}]]}, "buttons[0][0]: "),
    "a button with two actions": (
        {"buttons": [[{"text": "A", "data": "a", "url": "https://example.com"}]]},
        "buttons[0][0]: ",
    ),
    "data of 65 bytes": ({"buttons": [[{"text": "A", "data": "x" * 65}]]}, "buttons[0][0]: "),
    "data of 66 bytes in 33 characters": (
        {"buttons": [[{"text": "A", "data": "й" * 33}]]},
        "buttons[0][0]: ",
    ),
    "data that looks like ours": (
        {"buttons": [[{"text": "A", "data": "~auth"}]]},
        "buttons[0][0]: ",
    ),
    "a script as link": (
        {"buttons": [[{"text": "A", "url": "javascript:alert(1)"}]]},
        "buttons[0][0].url: ",
    ),
    "a link with a space": (
        {"buttons": [[{"text": "A", "url": "https://example.com/a b"}]]},
        "buttons[0][0].url: ",
    ),
    "a link of 2,049 characters": (
        {"buttons": [[{"text": "A", "url": "https://example.com/" + "x" * 2029}]]},
        "buttons[0][0].url: ",
    ),
    "media of an unknown type": (
        {"media": {"type": "sticker", "url": "https://example.com/a"}},
        "media.type: ",
    ),
    "media from a file": ({"media": {"type": "image", "url": "file:///etc/passwd"}}, "media.url: "),
    "metadata of 4,097 bytes": ({"metadata": {"a": "x" * 4088}}, "metadata: "),
    "no time to live": ({"expires_in": 0}, "expires_in: "),
    "31 days to live": ({"expires_in": 31 * 24 * 3600}, "expires_in: "),
}

TAKEN: dict[str, dict[str, Any]] = {
    "a text of 4,000 characters": {"text": "й" * 4000},
    "3 by 3 buttons": {"buttons": [[{"text": "A", "data": "a"}] * 3] * 3},
    "data of 64 bytes": {"buttons": [[{"text": "A", "data": "й" * 32}]]},
    "a tilde inside data": {"buttons": [[{"text": "A", "data": "a~"}]]},
    "a link with letters of any script": {
        "buttons": [[{"text": "A", "url": "https://пример.рф/страница?x=%20"}]]
    },
    "metadata of 4,096 bytes": {"metadata": {"a": "x" * 4087}},
    "30 days to live": {"expires_in": 30 * 24 * 3600},
}


@pytest.mark.parametrize(("body", "begins"), REFUSED.values(), ids=REFUSED)
async def test_beyond_a_limit_the_call_is_refused_with_the_field(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, body: dict[str, Any], begins: str
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi", **body})

    assert check_error(answer, 400, "validation_failed")["error"].startswith(begins)


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
async def test_at_a_limit_the_message_is_sent(
    service: Service, client: httpx2.AsyncClient, send: Send, body: dict[str, Any]
) -> None:
    message_id = await send(**body)
    await settled(service)

    assert (await message_of(client, message_id))["status"] == "sent"


async def test_a_limit_can_be_raised_by_the_deployer(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    service = await make_service(limits={"button_rows": 1})
    client = (await make_tenant(service)).client

    limits = (await client.get("/v1/project")).json()["limits"]

    assert limits["button_rows"] == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "validation_failed"),
        ({"subscriber_id": "sub_1", "external_id": "x"}, 400, "mutually_exclusive_identifiers"),
        ({"subscriber_id": "sub_nobody"}, 404, "subscriber_not_found"),
        ({"external_id": "nobody"}, 404, "subscriber_not_found"),
        ({"external_id": " x"}, 400, "invalid_external_id"),
    ],
)
async def test_a_send_names_exactly_one_subscriber(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    body: dict[str, Any],
    status: int,
    code: str,
) -> None:
    answer = await client.post("/v1/send", json={"text": "Hi", **body})

    check_error(answer, status, code)


async def test_a_send_by_external_id_goes_to_the_most_recently_active_subscriber(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    await subscribe("Ann", external_id="customer-1")
    clock.advance(60)
    newer = await subscribe("Ann", channel="messenger_b", external_id="customer-1")

    answer = await client.post("/v1/send", json={"external_id": "customer-1", "text": "Hi"})

    assert (await message_of(client, answer.json()["message_id"]))["subscriber_id"] == newer


async def test_a_send_by_external_id_goes_to_the_channel_that_is_named(
    client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    older = await subscribe("Ann", external_id="customer-1")
    clock.advance(60)
    await subscribe("Ann", channel="messenger_b", external_id="customer-1")
    body = {"external_id": "customer-1", "channel": "messenger_a", "text": "Hi"}

    answer = await client.post("/v1/send", json=body)

    assert (await message_of(client, answer.json()["message_id"]))["subscriber_id"] == older


# ---- what arrives -------------------------------------------------------------------------------


async def test_everything_of_a_message_reaches_the_channel(
    service: Service, send: Send, channel: RecordingChannel
) -> None:
    await send(
        text="*Hi*",
        format="markdown",
        silent=True,
        media={"type": "document", "url": "https://example.com/a.pdf", "filename": "a.pdf"},
        buttons=[[{"text": "Open", "url": "https://example.com"}], [{"text": "No", "data": "no"}]],
    )
    await settled(service)

    assert channel.sent[-1].message == OutgoingMessage(
        "*Hi*",
        "markdown",
        ((Button("Open", url="https://example.com"),), (Button("No", data="no"),)),
        Media("document", "https://example.com/a.pdf", "a.pdf"),
        silent=True,
    )


async def test_a_send_is_answered_with_an_id_and_nothing_more(
    client: httpx2.AsyncClient, ann: str
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi"})

    assert answer.status_code == 202
    assert set(answer.json()) == {"message_id", "status"}
    assert answer.json()["status"] == "queued"


async def test_success_is_told_with_the_metadata(
    service: Service, client: httpx2.AsyncClient, send: Send, ann: str
) -> None:
    message_id = await send(metadata={"order": 7})
    await settled(service)

    (data,) = await events_named(client, "delivery.success")
    assert (data["message_id"], data["subscriber_id"]) == (message_id, ann)
    assert data["metadata"] == {"order": 7}


async def test_the_messages_of_a_chat_keep_their_order(
    service: Service, send: Send, channel: RecordingChannel
) -> None:
    texts = [f"message {number}" for number in range(70)]
    for text in texts:
        await send(text=text)
    await settled(service)

    assert channel.texts[1:] == texts


async def test_a_message_that_must_wait_holds_back_those_behind_it_in_its_chat(
    make_service: ServiceFactory,
    service: Service,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    quiet = await make_service(database_url=service.settings.database_url, jobs={"runner": "none"})
    await service.stop()
    texts = [f"message {number}" for number in range(3)]
    for text in texts:
        await quiet.messages.send(tenant.project.project_id, subscriber_id=ann, text=text)
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")]
    await service.start()
    await settled(service)
    before = channel.texts[1:]
    clock.advance(60)
    await settled(service)

    assert before == []
    assert channel.texts[1:] == texts


async def test_lists_show_the_newest_first_and_filter(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel, ann: str
) -> None:
    sent = await send()
    await settled(service)
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "no")]
    failed = await send()
    await settled(service)

    async def ids(**query: str) -> list[str]:
        data = (await client.get("/v1/messages", params=query)).json()["data"]
        return [message["message_id"] for message in data]

    assert await ids() == [failed, sent]
    assert await ids(status="failed") == [failed]
    assert await ids(subscriber_id=ann) == [failed, sent]
    assert await ids(subscriber_id="sub_nobody") == []


# ---- what does not ------------------------------------------------------------------------------

FLAGS = {
    Reason.USER_BLOCKED_BOT: (False, True),
    Reason.CHAT_NOT_FOUND: (False, True),
    Reason.BOT_BANNED: (False, False),
    Reason.INVALID_MESSAGE: (False, False),
    Reason.RATE_LIMITED: (True, False),
    Reason.PLATFORM_UNAVAILABLE: (True, False),
    Reason.UNKNOWN: (None, None),
}


@pytest.mark.parametrize("reason", Reason)
async def test_a_failure_is_told_with_its_reason_and_flags(
    make_service: ServiceFactory,
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    reason: Reason,
) -> None:
    attempts = service.settings.limits.delivery_attempts if reason.retryable else 1
    channel.failures = [DeliveryError(reason, "so it is") for _ in range(attempts)]
    message_id = await send(metadata={"order": 7})
    for _ in range(attempts):
        await settled(service)
        clock.advance(3600)

    (data,) = await events_named(client, "delivery.failed")
    assert data["message_id"] == message_id
    assert (data["reason"], data["error"]) == (str(reason), "so it is")
    assert (data["retryable"], data["should_unsubscribe"]) == FLAGS[reason]
    assert data["metadata"] == {"order": 7}
    message = await message_of(client, message_id)
    assert (message["status"], message["reason"]) == ("failed", str(reason))
    assert message["attempts"] == attempts


@pytest.mark.parametrize("reason", [Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND])
async def test_who_can_not_be_reached_any_more_is_unsubscribed(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    ann: str,
    channel: RecordingChannel,
    reason: Reason,
) -> None:
    channel.failures = [DeliveryError(reason, "gone")]
    await send()
    await settled(service)

    assert (await client.get(f"/v1/subscribers/{ann}")).json()["status"] == "blocked"
    (data,) = await events_named(client, "subscription.deleted")
    assert data["reason"] == str(reason)


@pytest.mark.parametrize("reason", [Reason.BOT_BANNED, Reason.INVALID_MESSAGE, Reason.UNKNOWN])
async def test_who_may_be_reached_again_stays_subscribed(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    ann: str,
    channel: RecordingChannel,
    reason: Reason,
) -> None:
    channel.failures = [DeliveryError(reason, "not now")]
    await send()
    await settled(service)

    assert (await client.get(f"/v1/subscribers/{ann}")).json()["status"] == "active"


async def test_a_channel_that_breaks_its_contract_fails_the_message_as_unknown(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    channel.failures = [ZeroDivisionError("oops")]  # type: ignore[list-item] # breaks the contract
    message_id = await send()
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["reason"]) == ("failed", "unknown")


async def test_one_failure_does_not_touch_the_others_of_its_batch(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    people = [await subscribe(name) for name in ("Ann", "Bob", "Cat")]
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "no")]
    for subscriber_id in people:
        await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hi"})
    await settled(service)

    messages = (await client.get("/v1/messages")).json()["data"]
    assert sorted(message["status"] for message in messages) == ["failed", "sent", "sent"]


async def test_a_message_that_expired_is_skipped(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", retry_after_s=60)]
    message_id = await send(expires_in=60)
    await settled(service)
    clock.advance(60)
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["error"]) == ("skipped", "expired")
    assert channel.texts[1:] == []


async def test_a_message_to_who_has_left_is_skipped(
    service: Service, client: httpx2.AsyncClient, send: Send, ann: str, tenant: Tenant
) -> None:
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", "user-Ann", reason="user_blocked_bot")
    message_id = await send()
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["error"]) == ("skipped", "not subscribed")


async def test_a_message_to_a_channel_that_was_taken_out_is_a_conflict(
    make_service: ServiceFactory,
    service: Service,
    tenant: Tenant,
    ann: str,
    check_error: CheckError,
) -> None:
    without = await make_service(
        database_url=service.settings.database_url,
        channels={"messenger_b": {"plugin": "recording"}},
    )
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=without.app),
        base_url="http://msgsvc.test",
        headers=tenant.client.headers,
    ) as client:
        answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi"})

    check_error(answer, 409, "conflict")


async def test_a_message_in_the_platforms_hands_when_the_process_died_is_unknown(
    make_service: ServiceFactory,
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
) -> None:
    quiet = await make_service(database_url=service.settings.database_url, jobs={"runner": "none"})
    await service.stop()
    message = await quiet.messages.send(
        tenant.project.project_id, subscriber_id=ann, text="Hi", metadata={"order": 7}
    )
    async with quiet.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET status = 'sending'")

    await service.start()
    await settled(service)

    assert (await message_of(client, message.message_id))["status"] == "unknown"
    (data,) = await events_named(client, "delivery.failed")
    assert (data["reason"], data["metadata"]) == ("unknown", {"order": 7})
    assert (data["retryable"], data["should_unsubscribe"]) == (None, None)
    assert channel.texts[1:] == []


async def test_a_message_that_was_only_queued_when_the_process_ended_is_sent(
    make_service: ServiceFactory,
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
) -> None:
    quiet = await make_service(database_url=service.settings.database_url, jobs={"runner": "none"})
    await service.stop()
    message = await quiet.messages.send(tenant.project.project_id, subscriber_id=ann, text="Hi")

    await service.start()
    await settled(service)

    assert (await message_of(client, message.message_id))["status"] == "sent"
    assert channel.texts[1:] == ["Hi"]


# ---- buttons ------------------------------------------------------------------------------------


def pressed(message_ref: str, data: str = "yes", user: ChannelUser = ANN) -> ButtonPressed:
    return ButtonPressed(
        update_id=f"press-{message_ref}-{user.user_id}",
        chat_id="chat-Ann",
        user=user,
        data=data,
        message_ref=message_ref,
        button_ref="press-1",
        text="Yes",
    )


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
