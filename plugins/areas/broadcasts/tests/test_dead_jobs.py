"""A broadcast whose own job dies is not left between two states."""

from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.jobs.contract import Job
from msgsvc_core.mailings import sending, store
from msgsvc_core.mailings.dead_letters import DeadMailings
from msgsvc_core.mailings.service import EXPAND_JOB, SEND_JOB
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import add, counts, ended, events, recipients, shown, take
from .gate import Gate, gate_of, gated, post, under_way


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await gated(make_service)


@pytest.fixture
def gate(service: Service) -> Gate:
    return gate_of(service)


def _job(tenant: Tenant, job_id: str, name: str, lane: str = "default") -> Job:
    payload = {"job_id": job_id, "tries": 0}
    return Job("job_x", name, lane, payload, 1, 1, 0, tenant.project.project_id)


async def test_broadcast_that_could_not_begin_is_paused_and_can_be_resumed(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    still = await gated(make_service, jobs={"runner": "none"})
    tenant = await make_tenant(still)
    await add(still, tenant, 3)
    job_id = await take(tenant.client)
    async with still.db.transaction() as tx:
        await tx.execute("DELETE FROM core_jobs")
        await still.get(DeadMailings).dead_letter(tx, _job(tenant, job_id, EXPAND_JOB), "boom")
    paused = await shown(tenant.client, job_id)

    resumed = (await post(tenant.client, job_id, "resume")).json()
    running = await gated(make_service, database_url=still.settings.database_url)
    gate_of(running).open()
    done = await ended(tenant.client, job_id)

    assert paused["status"] == "paused"
    assert paused["error"] == "the service could not go on; its operator can see why"
    assert (resumed["status"], resumed["error"]) == ("scheduled", None)
    assert counts(done) == (3, 0, 0, 3)


async def test_a_failure_before_the_calls_leaves_nobody_unknown_and_a_cancel_ends_it(
    service: Service,
    tenant: Tenant,
    gate: Gate,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_self: Any, _post: Any, _letters: Any) -> Any:
        raise RuntimeError("boom")

    async def is_paused() -> bool:
        # Between two attempts, and not during one: each hour also has the purges of all areas.
        await settled(service)
        clock.advance(3600)
        return bool((await shown(tenant.client, job_id))["status"] == "paused")

    gate.open()
    monkeypatch.setattr(sending.RecipientSender, "prepare", fails)
    await add(service, tenant, 3 * sending.MAX_RECIPIENTS_IN_FLIGHT)
    job_id = await take(tenant.client)
    await until(is_paused)
    paused = await shown(tenant.client, job_id)
    monkeypatch.undo()

    resumed = await post(tenant.client, job_id, "resume")
    done = await ended(tenant.client, job_id)

    assert paused["error"] == "the service could not go on; its operator can see why"
    assert counts(paused) == (0, 0, 0, 3 * sending.MAX_RECIPIENTS_IN_FLIGHT)
    assert resumed.status_code == 200
    assert counts(done) == (
        3 * sending.MAX_RECIPIENTS_IN_FLIGHT,
        0,
        0,
        3 * sending.MAX_RECIPIENTS_IN_FLIGHT,
    )


async def paused_as_it_begins(
    make_service: ServiceFactory, tenant: Tenant, still: Service, job_id: str
) -> Service:
    """Pauses a broadcast of a service that does no work, before another finds out who gets it."""
    async with still.db.transaction() as tx:
        await store.start(tx, tenant.project.project_id, job_id, still.clock.now_ms())
    await post(tenant.client, job_id, "pause")
    running = await gated(make_service, database_url=still.settings.database_url)
    await settled(running)
    return running


async def test_a_broadcast_whose_job_died_with_people_in_hand_can_be_cancelled(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    still = await gated(make_service, jobs={"runner": "none"})
    tenant = await make_tenant(still)
    people = await add(still, tenant, 3)
    job_id = await take(tenant.client)
    running = await paused_as_it_begins(make_service, tenant, still, job_id)
    async with still.db.transaction() as tx:
        # As a process leaves them that was killed, for the last time that is tried.
        [shard] = await store.list_shards(tx, tenant.project.project_id, job_id)
        left = replace(shard, in_flight=people[:2], walked_to=people[1])
        await store.set_shard(tx, tenant.project.project_id, job_id, left)

    await post(tenant.client, job_id, "cancel")
    await settled(running)
    done = await shown(tenant.client, job_id)

    assert done["finished_at"]
    assert counts(done) == (0, 2, 1, 3)
    assert len(await recipients(tenant.client, job_id, status="unknown")) == 2
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1


async def test_a_broadcast_to_nobody_that_is_paused_as_it_begins_ends_when_it_is_resumed(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    still = await gated(make_service, jobs={"runner": "none"})
    tenant = await make_tenant(still)
    job_id = await take(tenant.client)
    await paused_as_it_begins(make_service, tenant, still, job_id)

    resumed = await post(tenant.client, job_id, "resume")

    assert resumed.json()["status"] == "completed"
    assert len(await events(tenant.client, "broadcast.completed")) == 1


async def test_cancelled_broadcast_whose_job_dies_ends_all_the_same(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "cancel")

    async with service.db.transaction() as tx:
        await service.get(DeadMailings).dead_letter(
            tx, _job(tenant, job_id, SEND_JOB, lane_of("messenger_a")), "boom"
        )
    done = await shown(tenant.client, job_id)
    gate.open()
    await settled(service)

    sent, failed, skipped, total = counts(done)
    assert done["finished_at"]
    assert (failed > 0, sent + failed + skipped) == (True, total)
    assert counts(await shown(tenant.client, job_id)) == counts(done)
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1
    assert len(await recipients(tenant.client, job_id, status="unknown")) == min(100, failed)
