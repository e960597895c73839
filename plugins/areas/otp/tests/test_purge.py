"""The hourly purge: what is old goes in steps."""

import pytest

from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, steps_of_two
from msgsvc_core.testing.fixtures import Tenant
from msgsvc_otp import store
from msgsvc_otp.jobs import DAY_MS


async def test_codes_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, store)
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "otp_codes",
                {
                    "project_id": tenant.project.project_id,
                    "otp_id": f"x{number}",
                    "status": "expired",
                    "purpose": "pay",
                    "length": 6,
                    "ttl_minutes": 5,
                    "max_attempts": 3,
                    "attempts": 0,
                    "created_at_ms": at_ms,
                    "expires_at_ms": at_ms,
                },
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT otp_id FROM otp_codes")
    assert [row["otp_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]
