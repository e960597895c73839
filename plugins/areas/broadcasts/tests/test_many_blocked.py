"""Many who have blocked the bot, met by several at once: all are written down, and nobody is in doubt."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.db import Deadlock, retrying
from msgsvc_core.mailings import outcomes
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, until
from msgsvc_devkit.fixtures import Tenant, tenant_of

from .conftest import AddPeople, add, counts, ended, recipients, take

PEOPLE = 300


@pytest.fixture(autouse=True)
def half_have_blocked(channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second person has; calls end in another order than they begin in."""
    chance, send = random.Random(7), channel.send

    async def send_or_not(chat_id: str, message: OutgoingMessage) -> str:
        await asyncio.sleep(chance.random() * 0.02)
        if int(chat_id.split("-")[1]) % 2 == 0:
            raise DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden: bot was blocked by the user")
        return await send(chat_id, message)

    monkeypatch.setattr(channel, "send", send_or_not)


@pytest.fixture
async def other(service: Service) -> AsyncIterator[Tenant]:
    """Another project of the same bot."""
    tenant = await tenant_of(service, "Other")
    yield tenant
    await tenant.client.aclose()


@pytest.fixture(autouse=True)
async def time_goes_on(clock: FakeClock) -> AsyncIterator[None]:
    """A batch that failed is tried again after a while."""

    async def run() -> None:
        while True:
            await asyncio.sleep(0.2)
            clock.advance(1)

    running = asyncio.create_task(run())
    yield
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


@pytest.fixture
def nothing_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what waits for another that waits for it shows."""
    monkeypatch.setattr(retrying, "TRIES", 1)


@pytest.mark.usefixtures("nothing_is_begun_anew")
async def test_two_broadcasts_by_one_bot(service: Service, tenant: Tenant, other: Tenant) -> None:
    both = (tenant, other)
    for each in both:
        await add(service, each, PEOPLE)
    jobs = await asyncio.gather(*(take(each.client) for each in both))
    found = await asyncio.gather(
        *(ended(each.client, job) for each, job in zip(both, jobs, strict=True))
    )

    for each, job, broadcast in zip(both, jobs, found, strict=True):
        sent, failed, skipped, total = counts(broadcast)
        # Whom the other met first is skipped.
        assert (sent, failed + skipped, total) == (PEOPLE // 2, PEOPLE // 2, PEOPLE)
        assert await recipients(each.client, job, status="unknown") == []


@pytest.mark.usefixtures("nothing_is_begun_anew")
async def test_a_broadcast_and_a_batch_of_one_project(tenant: Tenant, people: AddPeople) -> None:
    ids = await people(PEOPLE)
    job = await take(tenant.client)
    batch = await send_all(tenant.client, ids[::-1])
    broadcast, sent = await ended(tenant.client, job), await batch_ended(tenant.client, batch)

    assert counts(broadcast)[0] == sent["sent"] == PEOPLE // 2
    assert await unknown(tenant.client) == []


@pytest.mark.usefixtures("nothing_is_begun_anew")
async def test_batches_of_two_projects(service: Service, tenant: Tenant, other: Tenant) -> None:
    both, ids = (tenant, other), [await add(service, each, 100) for each in (tenant, other)]
    batches = await asyncio.gather(
        send_all(tenant.client, ids[0]), send_all(other.client, ids[1][::-1])
    )

    for each, batch in zip(both, batches, strict=True):
        assert (await batch_ended(each.client, batch))["sent"] == 50
        assert await unknown(each.client) == []


async def test_a_broadcast_is_written_down_though_the_database_gives_a_step_up(
    tenant: Tenant, people: AddPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    await people(PEOPLE)
    fail_twice(monkeypatch, outcomes.MailingOutcomes, "settle")
    job = await take(tenant.client)

    assert counts(await ended(tenant.client, job)) == (PEOPLE // 2, PEOPLE // 2, 0, PEOPLE)
    assert await unknown(tenant.client) == []


@pytest.mark.both_databases
async def test_a_batch_is_written_down_though_the_database_gives_its_end_up(
    tenant: Tenant, people: AddPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await people(100)
    fail_twice(monkeypatch, MessageOutcomes, "settle")
    batch = await send_all(tenant.client, ids)

    assert (await batch_ended(tenant.client, batch))["sent"] == 50
    assert await unknown(tenant.client) == []


def fail_twice(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """Has its transaction given up after all of its statements, the first two times."""
    real, left = getattr(module, name), [1, 2]

    async def settle(*args: Any) -> Any:
        done = await real(*args)
        if args[-1] and left:
            left.pop()
            raise Deadlock("deadlock detected")
        return done

    monkeypatch.setattr(module, name, settle)


async def send_all(client: httpx2.AsyncClient, ids: Sequence[str]) -> str:
    messages = [{"subscriber_id": each, "text": "Hi"} for each in ids]
    answer = await client.post("/v1/send/batch", json={"messages": messages})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["batch_id"])


async def batch_ended(client: httpx2.AsyncClient, batch_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = dict((await client.get(f"/v1/batches/{batch_id}")).json())
        return found if found["finished_at"] else None

    return await until(look, interval_s=0.02)


async def unknown(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    answer = await client.get("/v1/messages", params={"status": "unknown", "limit": 100})
    return list(answer.json()["data"])
