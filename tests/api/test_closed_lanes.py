"""What waits for a channel that makes no calls ends in time, and is not sent when the channel is back."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelHealth, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.system_messages.calls import MAX_AGE_S
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.messages import store
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import Tenant
from tests.api.reading import events_named, message_of
from tests.api.subscribing import Subscribe

pytestmark = pytest.mark.both_databases

HOUR_S = 3600

SendTo = Callable[..., Awaitable[str]]


class Bot:
    """The bot of a recording channel, which can be out of reach, or refused by its platform."""

    def __init__(self, channel: RecordingChannel, patch: pytest.MonkeyPatch) -> None:
        self.failure: DeliveryError | None = None
        self._take = channel.send
        patch.setattr(channel, "send", self.send)
        patch.setattr(channel, "check", self.check)

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if self.failure is not None:
            raise self.failure
        return await self._take(chat_id, message)

    async def check(self) -> ChannelHealth:
        return ChannelHealth(self.failure is None, "")


AWAY = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection refused")
BANNED = DeliveryError(Reason.BOT_BANNED, "the token was revoked")


@pytest.fixture
def bot(channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch) -> Bot:
    return Bot(channel, monkeypatch)


@pytest.fixture
async def people(subscribe: Subscribe, service: Service, channel: RecordingChannel) -> list[str]:
    found = [await subscribe(f"P{number}") for number in range(8)]
    await settled(service)
    channel.sent.clear()
    return found


@pytest.fixture
def send_to(client: httpx2.AsyncClient) -> SendTo:
    async def send(subscriber_id: str, **body: Any) -> str:
        asked = {"subscriber_id": subscriber_id, "text": "Hi", **body}
        answer = await client.post("/v1/send", json=asked)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    return send


async def close(
    service: Service, tenant: Tenant, people: list[str], bot: Bot, failure: DeliveryError
) -> None:
    """The first messages find that the bot can't work."""
    bot.failure = failure
    async with service.db.transaction() as tx:
        for person in people:
            body = SendBody(subscriber_id=person, text="Hi")
            await service.messages.queue(tx, tenant.project.project_id, body)

    async def is_closed() -> bool:
        async with service.db.read() as tx:
            return bool(await service.get(ChannelStates).troubled(tx))

    await until(is_closed)
    await settled(service)


async def pass_hours(service: Service, clock: FakeClock, hours: float) -> None:
    clock.advance(hours * HOUR_S)
    await settled(service)


async def statuses(client: httpx2.AsyncClient) -> set[tuple[str, str | None]]:
    found = (await client.get("/v1/messages", params={"limit": 100})).json()["data"]
    return {(each["status"], each["reason"]) for each in found}


@pytest.mark.parametrize(
    ("failure", "reason"), [(AWAY, "platform_unavailable"), (BANNED, "bot_banned")]
)
async def test_messages_fail_once_a_channel_has_made_no_calls_for_as_long_as_they_may_wait(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    people: list[str],
    bot: Bot,
    channel: RecordingChannel,
    clock: FakeClock,
    send_to: SendTo,
    failure: DeliveryError,
    reason: str,
) -> None:
    await close(service, tenant, people, bot, failure)
    await pass_hours(service, clock, 12)
    later = await send_to(people[0])
    await pass_hours(service, clock, 11.9)
    before = await statuses(client)
    await pass_hours(service, clock, 0.2)
    told = await events_named(client, "delivery.failed")
    still = await message_of(client, later)
    await pass_hours(service, clock, 12)
    last = await message_of(client, later)
    bot.failure = None
    await pass_hours(service, clock, 1)

    assert ("queued", None) in before
    assert len(told) == len(people)
    assert {(each["status"], each["reason"]) for each in told} == {("failed", reason)}
    # It has waited for half as long.
    assert still["status"] == "queued"
    assert (last["status"], last["reason"]) == ("failed", reason)
    assert channel.texts == []


async def test_nothing_that_is_overdue_is_sent_when_the_platform_is_back_at_the_next_look(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    people: list[str],
    bot: Bot,
    channel: RecordingChannel,
    clock: FakeClock,
    send_to: SendTo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A look of the smallest size, so that more than one is needed.
    for module in ("messages.overdue", "channels.health.overdue"):
        monkeypatch.setattr(f"msgsvc_core.{module}.GROUP", 2)
        monkeypatch.setattr(f"msgsvc_core.{module}.GROUPS", 1)
    await close(service, tenant, people, bot, AWAY)
    # The probe and the look are due together, with a platform that is well again.
    bot.failure = None
    await pass_hours(service, clock, 73)
    for _ in range(20):
        clock.advance(31)
        await settled(service)
    new = await send_to(people[0], text="new")
    await settled(service)

    assert await statuses(client) == {("failed", "platform_unavailable"), ("sent", None)}
    assert (await message_of(client, new))["status"] == "sent"
    assert channel.texts == ["new"]


async def test_a_message_that_expires_while_its_channel_is_closed_is_skipped_then(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    people: list[str],
    bot: Bot,
    channel: RecordingChannel,
    clock: FakeClock,
    send_to: SendTo,
) -> None:
    await close(service, tenant, people[1:], bot, AWAY)
    message_id = await send_to(people[0], expires_in=HOUR_S)
    await pass_hours(service, clock, 0.9)
    before = await message_of(client, message_id)
    await pass_hours(service, clock, 0.2)
    after = await message_of(client, message_id)
    told = await events_named(client, "delivery.failed")
    bot.failure = None
    await pass_hours(service, clock, 1)

    assert before["status"] == "queued"
    assert (after["status"], after["reason"]) == ("skipped", "expired")
    assert [(each["message_id"], each["reason"]) for each in told] == [(message_id, "expired")]
    assert len(channel.texts) == len(people) - 1


async def test_a_message_that_was_being_sent_when_its_process_died_ends_as_unknown(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    people: list[str],
    bot: Bot,
    clock: FakeClock,
) -> None:
    await close(service, tenant, people, bot, AWAY)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET status = 'sending' WHERE status = 'queued'")
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_dead', leased_until_ms = 0"
            " WHERE name = 'message.deliver'"
        )
    await pass_hours(service, clock, 24.1)

    await until(lambda: _all_are(client, ("unknown", "unknown")))
    assert len(await events_named(client, "delivery.failed")) == len(people)


async def _all_are(client: httpx2.AsyncClient, ending: tuple[str, str]) -> bool:
    return await statuses(client) == {ending}


async def test_an_edit_that_waits_for_a_closed_channel_is_given_up(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    people: list[str],
    bot: Bot,
    clock: FakeClock,
    channel: RecordingChannel,
    send_to: SendTo,
) -> None:
    message_id = await send_to(people[0])
    await settled(service)
    await close(service, tenant, people, bot, AWAY)
    await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})
    await pass_hours(service, clock, 24.1)
    message = await message_of(client, message_id)

    assert (message["text"], message["edited_at"]) == ("Hi", None)
    assert message["error"] == "edit: the messenger has not answered for 24 hours"
    assert channel.edited == []


async def test_a_system_message_that_waits_for_a_closed_channel_is_dropped_after_an_hour(
    service: Service,
    tenant: Tenant,
    people: list[str],
    bot: Bot,
    clock: FakeClock,
    channel: RecordingChannel,
) -> None:
    await close(service, tenant, people, bot, AWAY)
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, channel.key, "chat-P1", OutgoingMessage("A question"))
    clock.advance(MAX_AGE_S + 31)
    await settled(service)
    async with service.db.read() as tx:
        left = await tx.fetch_val("SELECT COUNT(*) FROM core_jobs WHERE name = 'channel.call'")

    assert left == 0


async def test_what_expires_and_what_is_overdue_are_found_by_an_index(service: Service) -> None:
    async with service.db.transaction() as tx:
        expired = await _plan(tx, partial(store.lock_expired, tx, 1, 10))
        job = NewJob("message.deliver", lane="channel:a", run_at_ms=1)
        await service.jobs.enqueue(tx, job)
        overdue = await _plan(
            tx,
            partial(service.jobs.take_overdue, tx, job.lane, job.name, until_ms=2, limit=10),
        )

    assert "core_messages_expiry" in expired
    assert "core_jobs_ready" in overdue


async def _plan(tx: Tx, do: Callable[[], Awaitable[object]]) -> str:
    """What the database does for the last statement of `do`."""
    seen: list[tuple[str, Any]] = []
    fetch_all = tx.fetch_all

    async def spy(sql: str, params: Any) -> Any:
        seen.append((sql, params))
        return await fetch_all(sql, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tx, "fetch_all", spy)
        await do()
    (sql, params) = seen[-1]
    if tx.dialect == "sqlite":
        rows = await fetch_all(f"EXPLAIN QUERY PLAN {sql}", params)
        return "\n".join(str(row["detail"]) for row in rows)
    # Of an empty table PostgreSQL reads the one page.
    await tx.execute("SET LOCAL enable_seqscan = off", {})
    rows = await fetch_all(f"EXPLAIN {sql}", params)
    return "\n".join(str(row["QUERY PLAN"]) for row in rows)
