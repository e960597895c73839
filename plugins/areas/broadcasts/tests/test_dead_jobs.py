"""A broadcast whose own job dies is not left between two states."""

from typing import Any

import pytest

from msgsvc_core.channels.calls import lane_of
from msgsvc_core.jobs.contract import Job
from msgsvc_core.mailings.burial import bury
from msgsvc_core.mailings.service import EXPAND_JOB, SEND_JOB
from msgsvc_core.service import Service
from msgsvc_core.testing import settled
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant

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
        await bury(still, tx, _job(tenant, job_id, EXPAND_JOB), "boom")
    paused = await shown(tenant.client, job_id)

    resumed = (await post(tenant.client, job_id, "resume")).json()
    running = await gated(make_service, database_url=still.settings.database_url)
    gate_of(running).open()
    done = await ended(tenant.client, job_id)

    assert paused["status"] == "paused"
    assert "boom" in paused["error"]
    assert (resumed["status"], resumed["error"]) == ("scheduled", None)
    assert counts(done) == (3, 0, 0, 3)


async def test_cancelled_broadcast_whose_job_dies_ends_all_the_same(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "cancel")

    async with service.db.transaction() as tx:
        await bury(service, tx, _job(tenant, job_id, SEND_JOB, lane_of("messenger_a")), "boom")
    done = await shown(tenant.client, job_id)
    gate.open()
    await settled(service)

    sent, failed, skipped, total = counts(done)
    assert done["finished_at"]
    assert (failed > 0, sent + failed + skipped) == (True, total)
    assert counts(await shown(tenant.client, job_id)) == counts(done)
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1
    assert len(await recipients(tenant.client, job_id, status="unknown")) == min(100, failed)
