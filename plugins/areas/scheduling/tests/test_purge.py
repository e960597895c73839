"""The hourly purge: what is old goes in steps."""

import pytest

from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, steps_of_two
from msgsvc_core.testing.fixtures import Tenant
from msgsvc_scheduling import store
from msgsvc_scheduling.jobs import DAY_MS


async def test_records_that_are_over_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, store)
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "scheduling_records",
                {
                    "project_id": tenant.project.project_id,
                    "record_id": f"x{number}",
                    "kind": "scheduled",
                    "status": "sent",
                    "message": "{}",
                    "created_at_ms": at_ms,
                    "finished_at_ms": at_ms,
                },
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT record_id FROM scheduling_records")
    assert [row["record_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]
