"""The hourly purge: what is old goes in steps."""

from typing import Any

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.purging import Purged, purged
from msgsvc_scheduling import store


async def test_records_that_are_over_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    def record(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "kind": "scheduled",
            "status": "sent",
            "message": "{}",
            "created_at_ms": at_ms,
            "finished_at_ms": at_ms,
        }

    found = await purged(
        service, clock, (store, "purge"), "scheduling_records", "record_id", record
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])
