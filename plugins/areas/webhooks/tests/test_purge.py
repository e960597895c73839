"""The hourly purge: what is old goes in steps, and no part of it waits for another that fails."""

from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.purging import Purged, purged
from msgsvc_webhooks import journal, store


async def test_deliveries_go_a_step_at_a_time_though_no_secret_can_be_deleted(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delivery(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "webhook_id": "whe_1",
            "event_id": "evt_1",
            "event": "x",
            "body": "{}",
            "status": "delivered",
            "attempts": 1,
            "step": 0,
            "created_at_ms": at_ms,
        }

    async def fail(_tx: Tx, _now_ms: int) -> None:
        raise RuntimeError("cannot be read")

    monkeypatch.setattr(store, "purge_secrets", fail)
    found = await purged(
        service, clock, (journal, "purge"), "webhooks_deliveries", "delivery_id", delivery
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])


async def test_attempts_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    def attempt(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "number": 1,
            "started_at_ms": at_ms,
            "duration_ms": 5,
            "answer": "",
        }

    found = await purged(
        service, clock, (journal, "purge_attempts"), "webhooks_attempts", "delivery_id", attempt
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])
