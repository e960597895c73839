"""A broadcast whose waiting job an operator discards is not left waiting for ever."""

from typing import Any

from msgsvc_core.mailings.service import EXPAND_JOB
from msgsvc_devkit.fixtures import ServiceFactory

from .conftest import add, counts, ended, shown, take
from .gate import gate_of, gated, post


async def test_a_broadcast_whose_job_is_discarded_is_paused_and_can_be_resumed(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    still = await gated(make_service, jobs={"runner": "none"})
    tenant = await make_tenant(still)
    await add(still, tenant, 3)
    job_id = await take(tenant.client)
    async with still.db.transaction() as tx:
        waiting = await tx.fetch_val(
            "SELECT job_id FROM core_jobs WHERE name = :name", {"name": EXPAND_JOB}
        )
        await still.job_admin.discard(tx, waiting)
    paused = await shown(tenant.client, job_id)
    await post(tenant.client, job_id, "resume")
    running = await gated(make_service, database_url=still.settings.database_url)
    gate_of(running).open()
    done = await ended(tenant.client, job_id)

    assert paused["status"] == "paused"
    assert paused["error"]
    assert counts(done) == (3, 0, 0, 3)
