"""Messages: what becomes of those that were taken, and how it is told."""

import httpx2
import pytest

from msgsvc_core.channels import (
    Button,
    DeliveryError,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Send, Subscribe, client_at
from tests.api.reading import events_named, message_of


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """Nobody serves the file that is named here: see test_media_checks."""
    return await make_service(media={"check": False})


@pytest.fixture
async def quiet(make_service: ServiceFactory, service: Service, ann: str) -> Service:
    """Takes messages for `service`, which is stopped, so that nothing is sent until it starts."""
    taking = await make_service(database_url=service.settings.database_url, jobs={"runner": "none"})
    await service.stop()
    return taking


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
    service: Service,
    quiet: Service,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
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


@pytest.mark.both_databases
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
    assert await ids(reason="invalid_message") == [failed]
    assert await ids(reason="rate_limited") == []
    assert await ids(subscriber_id=ann) == [failed, sent]
    assert await ids(subscriber_id="sub_nobody") == []
    assert await ids(channel="messenger_a") == [failed, sent]
    assert await ids(channel="messenger_b") == []


async def test_a_list_shows_what_was_sent_after_a_moment(
    service: Service, client: httpx2.AsyncClient, send: Send, clock: FakeClock
) -> None:
    first = await send()
    clock.advance(60)
    second = await send()
    created_at = (await message_of(client, first))["created_at"]

    listed = await client.get("/v1/messages", params={"created_after": created_at})

    assert [message["message_id"] for message in listed.json()["data"]] == [second]


async def test_a_list_of_an_unknown_channel_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.get("/v1/messages", params={"channel": "messenger_z"})

    assert check_error(answer, 400, "validation_failed")["error"].startswith("channel: ")


async def test_a_message_is_shown_with_all_that_was_sent(
    client: httpx2.AsyncClient, send: Send
) -> None:
    media = {"type": "document", "url": "https://example.com/a.pdf", "filename": "a.pdf"}
    message = await message_of(
        client,
        await send(
            text="*Hi*",
            format="markdown",
            media=media,
            buttons=[[{"text": "Open", "url": "https://example.com"}]],
            silent=True,
            expires_in=60,
            metadata={"order": 7},
        ),
    )

    assert (message["text"], message["format"], message["silent"]) == ("*Hi*", "markdown", True)
    assert message["media"] == media
    assert message["buttons"] == [
        [{"text": "Open", "url": "https://example.com", "data": None, "style": None}]
    ]
    assert (message["permission"], message["batch_id"]) == (None, None)
    assert message["metadata"] == {"order": 7}
    assert message["expires_at"] == "2026-01-15T12:01:00.000Z"
    assert (message["edited_at"], message["deleted_at"]) == (None, None)


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
    subscribe: Subscribe,
    reason: Reason,
) -> None:
    ben = await subscribe("Ben")
    limits = service.settings.limits
    attempts = limits.delivery_attempts if reason.retryable else 1
    if reason is Reason.RATE_LIMITED:
        # Told to wait, it is tried until it is too old: once an hour here, and at the beginning.
        attempts = limits.delivery_hours + 1
    channel.failures = [DeliveryError(reason, "so it is")]
    message_id = await send(metadata={"order": 7})
    for _ in range(attempts):
        await settled(service)
        # Others get through, so the failure is this message's own.
        channel.failures = []
        await send(subscriber_id=ben, text="Hi")
        await settled(service)
        channel.failures = [DeliveryError(reason, "so it is")]
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
    assert (message["status"], message["reason"]) == ("skipped", "expired")
    assert channel.texts[1:] == []
    [event] = await events_named(client, "delivery.failed")
    assert (event["message_id"], event["status"]) == (message_id, "skipped")
    assert event["reason"] == "expired"
    found = (await client.get("/v1/messages", params={"reason": "expired"})).json()["data"]
    assert [each["message_id"] for each in found] == [message_id]


async def test_a_message_to_who_has_left_is_skipped(
    service: Service, client: httpx2.AsyncClient, send: Send, ann: str, tenant: Tenant
) -> None:
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", "user-Ann", reason="user_blocked_bot")
    message_id = await send()
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["reason"]) == ("skipped", "blocked")
    [event] = await events_named(client, "delivery.failed")
    assert (event["message_id"], event["reason"]) == (message_id, "blocked")


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
    async with client_at(without, tenant) as client:
        answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi"})

    check_error(answer, 409, "conflict")


async def test_a_message_in_the_platforms_hands_when_the_process_died_is_unknown(
    service: Service,
    quiet: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
) -> None:
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
    service: Service,
    quiet: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann: str,
    channel: RecordingChannel,
) -> None:
    message = await quiet.messages.send(tenant.project.project_id, subscriber_id=ann, text="Hi")

    await service.start()
    await settled(service)

    assert (await message_of(client, message.message_id))["status"] == "sent"
    assert channel.texts[1:] == ["Hi"]
