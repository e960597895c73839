"""The hourly purge: what is old goes in steps."""

from typing import Any

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.purging import Purged, purged
from msgsvc_otp import store


async def test_codes_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    def code(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "status": "expired",
            "purpose": "pay",
            "length": 6,
            "ttl_minutes": 5,
            "max_attempts": 3,
            "attempts": 0,
            "created_at_ms": at_ms,
            "expires_at_ms": at_ms,
        }

    found = await purged(service, clock, (store, "purge"), "otp_codes", "otp_id", code)

    assert found == Purged(left=["x5"], steps=[2, 2, 1])
