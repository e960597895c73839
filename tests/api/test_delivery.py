"""Delivery, where several messages of a chat, or two runners, could step on each other."""

import asyncio
import json
from functools import partial
from typing import Literal

import pytest

from msgsvc_core.channels import (
    Capabilities,
    ChannelUser,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.outbound.gate import BATCH
from msgsvc_core.db import WriteBatch
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.messages import store
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import Message
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.work import PATIENCE_S
from tests.api.subscribing import Subscribe

ANN = ChannelUser("user-ann", "Ann", "ann", "en")


@pytest.mark.both_databases
async def test_who_blocked_the_bot_is_not_called_again_for_what_waits_behind(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    channel.failures = [DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")]
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        messages = [
            await service.messages.queue(tx, project_id, SendBody(subscriber_id=ann, text=text))
            for text in ("one", "two")
        ]
    await settled(service)

    async with service.db.read() as tx:
        found = [await service.messages.find(tx, project_id, m.message_id) for m in messages]

    assert [message.status for message in found] == ["failed", "skipped"]
    assert channel.texts == []


async def test_a_chat_gets_its_messages_in_order_over_several_batches(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Subscribe
) -> None:
    people = {name: await subscribe(name) for name in ("Ann", "Ben")}
    channel.sent.clear()
    wanted = [f"{name} {number}" for number in range(BATCH + 20) for name in people]
    unit = WriteBatch()
    for text in wanted:
        body = SendBody(subscriber_id=people[text.partition(" ")[0]], text=text)
        await service.messages.add(unit, tenant.project.project_id, body)
    await service.db.write(unit)
    await settled(service)

    for name in people:
        mine = [text for text in wanted if text.startswith(name)]
        assert [text for text in channel.texts if text.startswith(name)] == mine


async def test_only_one_of_two_runners_may_send_a_message(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(jobs={"runner": "none"})
    project = await service.projects.create("Shop")
    async with service.db.transaction() as tx:
        ann = await service.subscribers.ensure(
            tx, project.project_id, "messenger_a", ANN, "chat-ann", source="api"
        )
    message = await service.messages.send(
        project.project_id, subscriber_id=ann.subscriber_id, text="Hi"
    )
    async with service.db.transaction() as tx:
        first = await store.mark_sending(tx, [message])
    async with service.db.transaction() as tx:
        second = await store.mark_sending(tx, [message])

    assert set(first) == {message.message_id}
    assert second == {}


async def test_a_send_in_process_is_refused_as_the_api_refuses_it(
    service: Service, tenant: Tenant
) -> None:
    with pytest.raises(ValidationFailed, match="txt: there is no such field"):
        await service.messages.send(tenant.project.project_id, subscriber_id="sub_1", txt="Hi")


async def test_nothing_is_told_of_a_message_that_was_erased_while_it_was_sent(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    subscribe: Subscribe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = await subscribe("Ann")
    project_id = tenant.project.project_id

    async def send(_chat_id: str, _message: OutgoingMessage) -> str:
        async with service.db.transaction() as tx:
            await tx.execute("DELETE FROM core_messages")
        return "m1"

    monkeypatch.setattr(channel, "send", send)
    async with service.db.transaction() as tx:
        await service.messages.queue(tx, project_id, SendBody(subscriber_id=ann, text="Hello"))
    await settled(service)

    feed = (await tenant.client.get("/v1/events")).json()["data"]
    assert [one["event"] for one in feed if one["event"].startswith("delivery.")] == []


@pytest.mark.parametrize(("status", "ended"), [("queued", "failed"), ("sending", "unknown")])
async def test_a_message_whose_job_is_dead_has_failed(
    make_service: ServiceFactory, status: str, ended: str
) -> None:
    quiet = await make_service(jobs={"runner": "none"})
    project = await quiet.projects.create("Shop")
    async with quiet.db.transaction() as tx:
        ann = await quiet.subscribers.ensure(
            tx, project.project_id, "messenger_a", ANN, "chat-ann", source="api"
        )
    message = await quiet.messages.send(
        project.project_id, subscriber_id=ann.subscriber_id, text="Hi"
    )
    async with quiet.db.transaction() as tx:
        # As if each runner had died over it.
        await tx.execute("UPDATE core_jobs SET deliveries = 100")
        await tx.execute("UPDATE core_messages SET status = :status", {"status": status})

    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)

    async with service.db.read() as tx:
        found = await service.messages.find(tx, project.project_id, message.message_id)
        events = await tx.fetch_all("SELECT data FROM core_events WHERE name = 'delivery.failed'")
    assert (found.status, found.reason) == (ended, "unknown")
    assert [json.loads(event["data"])["reason"] for event in events] == ["unknown"]


async def queued(service: Service, tenant: Tenant, subscriber_id: str, *texts: str) -> list[str]:
    """The ids of messages that were queued together."""
    async with service.db.transaction() as tx:
        return [
            (
                await service.messages.queue(
                    tx, tenant.project.project_id, SendBody(subscriber_id=subscriber_id, text=text)
                )
            ).message_id
            for text in texts
        ]


async def found(service: Service, tenant: Tenant, message_ids: list[str]) -> list[Message]:
    async with service.db.read() as tx:
        return [
            await service.messages.find(tx, tenant.project.project_id, message_id)
            for message_id in message_ids
        ]


async def test_what_is_in_doubt_ends_as_unknown_and_is_not_sent_again(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "cut off", in_doubt=True)]
    ids = await queued(service, tenant, ann, "one")
    await settled(service)
    clock.advance(3600)
    await settled(service)

    [message] = await found(service, tenant, ids)
    async with service.db.read() as tx:
        [event] = await tx.fetch_all("SELECT data FROM core_events WHERE name = 'delivery.failed'")
    data = json.loads(event["data"])
    assert (message.status, message.reason, channel.texts) == ("unknown", "unknown", [])
    assert (data["reason"], data["retryable"], data["should_unsubscribe"]) == (
        "unknown",
        None,
        None,
    )
    assert data["error"] == "cut off"


@pytest.mark.both_databases
@pytest.mark.parametrize("called", ["sending", "unknown"])
async def test_a_refusal_that_came_after_another_took_over_is_kept(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    subscribe: Subscribe,
    called: str,
) -> None:
    ann = await subscribe("Ann")
    began, ends = asyncio.Event(), asyncio.Event()

    async def send(chat_id: str, message: OutgoingMessage) -> str:
        began.set()
        await ends.wait()
        raise DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")

    channel.send = send  # type: ignore[method-assign] # it waits for the other runner
    ids = await queued(service, tenant, ann, "one")
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    async with service.db.transaction() as tx:
        # As another runner does; one that has not got to it yet has the job alone.
        await tx.execute("UPDATE core_jobs SET leased_by = 'another' WHERE state = 'running'")
        await tx.execute(
            "UPDATE core_messages SET status = :status, reason = 'unknown'", {"status": called}
        )
    ends.set()
    await until(partial(has_status, service, tenant, ids, "failed"))

    [message] = await found(service, tenant, ids)
    async with service.db.read() as tx:
        person = await service.subscribers.get(tx, tenant.project.project_id, ann)
        events = await tx.fetch_all("SELECT data FROM core_events WHERE name = 'delivery.failed'")
    assert (message.status, message.reason) == ("failed", "user_blocked_bot")
    assert person.status == "blocked"
    # Who called it `unknown` has told of it.
    assert len(events) == (1 if called == "sending" else 0)


async def has_status(service: Service, tenant: Tenant, ids: list[str], status: str) -> bool:
    return all(message.status == status for message in await found(service, tenant, ids))


@pytest.mark.both_databases
async def test_what_the_platform_can_not_take_fails_without_a_call(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    async with service.db.transaction() as tx:
        body = SendBody(subscriber_id=ann, text="x" * 50)
        message = await service.messages.queue(tx, tenant.project.project_id, body)
        # As if the bot had moved to a platform that takes less.
        channel.capabilities = Capabilities(max_text_length=10)
    ids = [message.message_id, *await queued(service, tenant, ann, "short")]
    await settled(service)

    messages = await found(service, tenant, ids)
    assert [(m.status, m.reason) for m in messages] == [
        ("failed", "invalid_message"),
        ("sent", None),
    ]
    assert messages[0].error == "text: must be at most 10 characters on this channel"
    assert channel.texts == ["short"]


@pytest.mark.parametrize(
    "failure",
    [
        DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502"),
        DeliveryError(Reason.RATE_LIMITED, "slow down", 5, scope="chat"),
        DeliveryError(Reason.RATE_LIMITED, "slow down", 5),
    ],
    ids=["5xx", "429 of the chat", "429 of the bot"],
)
async def test_a_message_that_is_tried_again_is_not_overtaken_in_its_chat(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
    failure: DeliveryError,
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    channel.failures = [failure]
    await queued(service, tenant, ann, "one", "two")
    await settled(service)
    await queued(service, tenant, ann, "three")
    await settled(service)
    before = list(channel.texts)
    for _ in range(4):
        clock.advance(6)
        await settled(service)

    assert before == []
    assert channel.texts == ["one", "two", "three"]


async def test_what_two_runners_crashed_with_is_not_overtaken_in_its_chat(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    async with service.db.transaction() as tx:
        for text in ("one", "two", "three"):
            body = SendBody(subscriber_id=ann, text=text)
            await service.messages.queue(tx, tenant.project.project_id, body)
        # The lane's lease is over already, those of its jobs are not.
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_dead', deliveries = 2,"
            " leased_until_ms = :later_ms WHERE name = 'message.deliver' AND job_id <>"
            " (SELECT MAX(job_id) FROM core_jobs WHERE name = 'message.deliver')",
            {"later_ms": clock.now_ms() + 60_000},
        )
        await tx.execute("DELETE FROM core_lanes")
    for _ in range(4):
        await settled(service)
        clock.advance(0.3)

    assert channel.texts == ["one", "two", "three"]


async def test_the_next_owner_of_a_lane_keeps_to_the_order_too(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service()
    project = await service.projects.create("Shop")
    async with service.db.transaction() as tx:
        ann = await service.subscribers.ensure(
            tx, project.project_id, "messenger_a", ANN, "chat-ann", source="api"
        )

    async def send(text: str) -> None:
        await service.messages.send(project.project_id, subscriber_id=ann.subscriber_id, text=text)

    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")]
    await send("one")
    await settled(service)
    await service.stop()
    service = await make_service(database_url=service.settings.database_url)
    await send("two")
    await settled(service)
    clock.advance(2)
    await settled(service)

    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    assert channel.texts == ["one", "two"]


async def test_a_platform_that_asks_to_wait_takes_up_no_attempt(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    refusals = 2 * service.settings.limits.delivery_attempts
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", 1) for _ in range(refusals)]
    ids = await queued(service, tenant, ann, "one")
    for _ in range(refusals):
        await settled(service)
        clock.advance(1.1)
    await settled(service)

    [message] = await found(service, tenant, ids)
    assert (message.status, channel.texts) == ("sent", ["one"])


@pytest.mark.parametrize("scope", ["bot", "chat"])
async def test_a_platform_that_asks_to_wait_is_obeyed_however_long_the_message_has_waited_before(
    make_service: ServiceFactory,
    tenant: Tenant,
    service: Service,
    clock: FakeClock,
    subscribe: Subscribe,
    scope: Literal["bot", "chat"],
) -> None:
    ann = await subscribe("Ann")
    await service.stop()
    shared = service.settings.database_url
    still = await make_service(database_url=shared, jobs={"runner": "none"})
    ids = await queued(still, tenant, ann, "one")
    await still.stop()
    clock.advance((still.settings.limits.delivery_hours + 1) * 3600)

    late = await make_service(database_url=shared, start=False)
    channel = late.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", 1, scope=scope)]
    await late.start()
    try:
        await settled(late)
        clock.advance(1.1)
        await settled(late)
        [message] = await found(late, tenant, ids)
    finally:
        await late.stop()

    assert (message.status, channel.texts) == ("sent", ["one"])


@pytest.mark.parametrize("scope", ["bot", "chat"])
async def test_a_platform_that_asks_to_wait_for_a_day_is_obeyed_no_longer(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
    scope: Literal["bot", "chat"],
) -> None:
    ann = await subscribe("Ann")
    hours = service.settings.limits.delivery_hours
    wait = DeliveryError(Reason.RATE_LIMITED, "wait", 3600, scope=scope)
    channel.failures = [wait] * (hours + 1)
    ids = await queued(service, tenant, ann, "one")
    for _ in range(hours):
        await settled(service)
        clock.advance(3601)
    [before] = await found(service, tenant, ids)
    await settled(service)

    [message] = await found(service, tenant, ids)
    assert (before.status, message.status, message.reason) == ("queued", "failed", "rate_limited")
    assert channel.failures == []


async def test_what_failed_in_our_own_hands_is_not_overtaken_in_its_chat(
    service: Service,
    tenant: Tenant,
    channel: RecordingChannel,
    clock: FakeClock,
    subscribe: Subscribe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_contract(_message: OutgoingMessage) -> str | None:
        raise RuntimeError("a channel that breaks its contract")

    ann = await subscribe("Ann")
    channel.sent.clear()
    first = [f"first {number}" for number in range(5)]
    async with service.db.transaction() as tx:
        for text in first:
            body = SendBody(subscriber_id=ann, text=text)
            await service.messages.queue(tx, tenant.project.project_id, body)
        monkeypatch.setattr(channel, "problem", break_contract)
    await settled(service)
    monkeypatch.undo()
    await queued(service, tenant, ann, "later")
    await settled(service)
    at_once = list(channel.texts)
    for _ in range(10):
        clock.advance(0.2)
        await settled(service)

    assert at_once == []
    assert channel.texts == [*first, "later"]
