"""Pause, resume and cancel at any moment, and the counts that add up all the same."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.channels import OutgoingMessage, Pace
from msgsvc_core.jobs import store as jobs_store
from msgsvc_core.mailings import store
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import add, counts, ended, events, recipients, shown, take
from .gate import PEOPLE, Gate, gate_of, gated, post, under_way


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await gated(make_service)


@pytest.fixture
def gate(service: Service) -> Gate:
    return gate_of(service)


async def test_cancel_ends_it_when_what_is_in_hand_has_ended(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)

    cancelled = (await post(tenant.client, job_id, "cancel")).json()
    gate.open()
    done = await ended(tenant.client, job_id)
    await settled(service)

    assert (cancelled["status"], cancelled["finished_at"]) == ("cancelled", None)
    sent, failed, skipped, total = counts(done)
    assert (failed, total) == (0, PEOPLE)
    assert sent == len(gate.sent) < PEOPLE
    assert skipped == PEOPLE - sent
    [event] = await events(tenant.client, "broadcast.cancelled")
    assert (event["sent"], event["skipped"], event["total"]) == (sent, skipped, PEOPLE)
    assert await events(tenant.client, "broadcast.completed") == []
    assert (await recipients(tenant.client, job_id, status="queued")) == []
    assert len(await recipients(tenant.client, job_id, status="skipped")) == min(100, skipped)


async def test_paused_broadcast_sends_nothing_more_and_goes_on_where_it_was(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)

    paused = (await post(tenant.client, job_id, "pause")).json()
    gate.open()
    await settled(service)
    held = len(gate.sent)
    still = await shown(tenant.client, job_id)
    resumed = (await post(tenant.client, job_id, "resume")).json()
    done = await ended(tenant.client, job_id)

    assert (paused["status"], paused["eta_seconds"]) == ("paused", None)
    assert (still["status"], still["sent"]) == ("paused", held)
    assert held < PEOPLE
    assert resumed["status"] == "running"
    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)
    assert len({sent.chat_id for sent in gate.sent}) == len(gate.sent) == PEOPLE


async def test_pause_and_resume_while_calls_are_under_way_loses_nobody(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)

    for what in ("pause", "resume", "pause", "resume"):
        assert (await post(tenant.client, job_id, what)).is_success
    gate.open()
    done = await ended(tenant.client, job_id)
    await settled(service)

    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)
    assert len({sent.chat_id for sent in gate.sent}) == len(gate.sent) == PEOPLE
    assert len(await events(tenant.client, "broadcast.completed")) == 1


async def test_who_resumes_and_a_turn_that_ends_do_not_wait_for_each_other(
    service: Service, tenant: Tenant, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "pause")
    removed, resumed = asyncio.Event(), asyncio.Event()
    lock_shard, complete = store.lock_shard, jobs_store.complete

    async def note_removal(*args: Any, **more: Any) -> bool:
        done = await complete(*args, **more)
        removed.set()
        return done

    async def lock_late(*args: Any) -> Any:
        if removed.is_set():
            await resumed.wait()
        return await lock_shard(*args)

    monkeypatch.setattr(jobs_store, "complete", note_removal)
    monkeypatch.setattr(store, "lock_shard", lock_late)
    gate.open()
    await removed.wait()
    resuming = asyncio.create_task(post(tenant.client, job_id, "resume"))
    # Time to come to what it waits for; a quick machine or a slow one only shows less.
    await asyncio.sleep(0.3)
    resumed.set()

    assert (await resuming).status_code == 200
    assert counts(await ended(tenant.client, job_id)) == (PEOPLE, 0, 0, PEOPLE)


async def test_broadcast_is_not_given_up_however_often_its_sender_died_once_it_goes_on(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "pause")
    gate.open()
    await settled(service)
    gate.shut(after=150)

    async with service.db.transaction() as tx:
        await service.mailings.resume(tx, tenant.project.project_id, job_id)
        await tx.execute("UPDATE core_jobs SET deliveries = 5 WHERE name = 'mailing.send'")

    async def deaths_are_forgotten() -> bool:
        async with service.db.read() as tx:
            sql = "SELECT deliveries FROM core_jobs WHERE name = 'mailing.send'"
            return bool(await tx.fetch_val(sql) == 1)

    await until(deaths_are_forgotten)
    gate.open()
    done = await ended(tenant.client, job_id)

    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)


async def test_paused_broadcast_can_be_cancelled(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "pause")
    gate.open()
    await settled(service)

    done = (await post(tenant.client, job_id, "cancel")).json()

    assert (done["status"], counts(done)) == (
        "cancelled",
        (len(gate.sent), 0, PEOPLE - len(gate.sent), PEOPLE),
    )
    assert done["finished_at"]
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_scheduled_broadcast_is_cancelled_at_once_and_never_begins(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 3)
    job_id = await take(tenant.client, send_at="2026-01-15T13:00:00Z")

    done = (await post(tenant.client, job_id, "cancel")).json()
    clock.advance(3600)
    await settled(service)

    assert (done["status"], counts(done)) == ("cancelled", (0, 0, 3, 3))
    assert gate.begun == 0
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_people_who_leave_or_are_erased_meanwhile_are_skipped(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    last, one_before = f"sub_a{PEOPLE - 1:07d}", f"sub_a{PEOPLE - 2:07d}"

    for path in (last, f"{one_before}?erase=true"):
        assert (await tenant.client.delete(f"/v1/subscribers/{path}")).is_success
    # One of those in the platform's hands too.
    assert (await tenant.client.delete("/v1/subscribers/sub_a0000150?erase=true")).is_success
    gate.open()
    done = await ended(tenant.client, job_id)

    assert counts(done) == (PEOPLE - 3, 0, 3, PEOPLE)
    [left] = await recipients(tenant.client, job_id, status="skipped")
    assert (left["subscriber_id"], left["error"]) == (last, "not subscribed")


@pytest.mark.parametrize(
    ("what", "status"), [("resume", "scheduled"), ("resend-unknown", "not ended")]
)
async def test_what_does_not_fit_its_status_is_a_conflict(
    tenant: Tenant, service: Service, what: str, status: str
) -> None:
    job_id = await take(tenant.client, send_at="2026-01-15T13:00:00Z")

    answer = await post(tenant.client, job_id, what)

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert status in answer.json()["error"]


@pytest.mark.both_databases
async def test_ended_broadcast_can_be_neither_cancelled_nor_paused(
    tenant: Tenant, service: Service
) -> None:
    job_id = await take(tenant.client)
    await ended(tenant.client, job_id)

    for what in ("pause", "resume", "cancel", "resend-unknown"):
        assert (await post(tenant.client, job_id, what)).status_code == 409


async def test_a_sign_in_question_overtakes_a_broadcast(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    gate.pace = Pace(per_bot_s=200)
    gate.free = 10**6
    await add(service, tenant, PEOPLE)
    job_id = await take(tenant.client)

    async def some_are_sent() -> bool:
        return len(gate.sent) >= 20

    await until(some_are_sent)
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "messenger_a", "chat-urgent", OutgoingMessage("Sign in?"))
    before = len(gate.sent)
    done = await ended(tenant.client, job_id)

    place = [sent.chat_id for sent in gate.sent].index("chat-urgent")
    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)
    # Two seconds of the pace are the bar; what may be ahead is under a second of it.
    assert place - before <= 200


async def test_pace_of_a_minute_is_kept(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    gate.free = 10**6
    await add(service, tenant, 50)
    job_id = await take(tenant.client, messages_per_minute=600)
    at: list[int] = []

    for _ in range(60):
        await settled(service)
        at.append(len(gate.sent))
        if len(gate.sent) == 50:
            break
        clock.advance(0.1)
    done = await ended(tenant.client, job_id)

    # Ten a second: one at the start, and one more with each tenth that passes.
    assert at == [min(50, number + 1) for number in range(len(at))]
    assert counts(done) == (50, 0, 0, 50)


@pytest.mark.both_databases
async def test_fast_pace_is_kept_by_who_waits_for_the_next(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    gate.free = 10**6
    await add(service, tenant, 100)
    job_id = await take(tenant.client, messages_per_minute=60_000)
    held: list[int] = []

    for due in (1, 31, 61):

        async def all_due_are_sent(due: int = due) -> bool:
            return len(gate.sent) >= due

        await until(all_due_are_sent)
        await settled(service)
        held.append(len(gate.sent))
        clock.advance(0.03)
    clock.advance(1)
    done = await ended(tenant.client, job_id)

    # A thousand a second: one at the start, and one more with each millisecond that passes.
    assert held == [1, 31, 61]
    assert counts(done) == (100, 0, 0, 100)


async def test_progress_and_the_time_that_is_left(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    gate.free = 10**6
    await add(service, tenant, 100)
    job_id = await take(tenant.client, messages_per_minute=60)

    for _ in range(20):
        await settled(service)
        clock.advance(1)
    await settled(service)
    running = await shown(tenant.client, job_id)

    assert (running["sent"], running["progress"]) == (21, 0.21)
    assert running["eta_seconds"] == 79
