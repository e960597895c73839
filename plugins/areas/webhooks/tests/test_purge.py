"""The hourly purge: what is old goes in steps, and no part of it waits for another that fails."""

from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, steps_of_two
from msgsvc_core.testing.fixtures import Tenant
from msgsvc_webhooks import journal
from msgsvc_webhooks.jobs import DAY_MS
from msgsvc_webhooks.service import Webhooks


async def test_deliveries_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, journal)
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert("webhooks_deliveries", delivery(tenant, f"x{number}", at_ms))
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT delivery_id FROM webhooks_deliveries")
    assert [row["delivery_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]


async def test_attempts_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, journal, "purge_attempts")
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "webhooks_attempts",
                {
                    "project_id": tenant.project.project_id,
                    "delivery_id": f"x{number}",
                    "number": 1,
                    "started_at_ms": at_ms,
                    "duration_ms": 5,
                    "answer": "",
                },
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT delivery_id FROM webhooks_attempts")
    assert [row["delivery_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]


async def test_deliveries_go_though_secrets_cannot_be_encrypted_anew(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_tx: Tx) -> None:
        raise RuntimeError("cannot be read")

    await settled(service)
    monkeypatch.setattr(service.get(Webhooks), "reseal", fail)
    taken = steps_of_two(monkeypatch, journal)
    async with service.db.transaction() as tx:
        await tx.insert("webhooks_deliveries", delivery(tenant, "x", 0))
    clock.advance(3600)
    await settled(service)

    assert taken == [1]


def delivery(tenant: Tenant, delivery_id: str, created_at_ms: int) -> dict[str, Any]:
    return {
        "project_id": tenant.project.project_id,
        "delivery_id": delivery_id,
        "webhook_id": "whe_1",
        "event_id": "evt_1",
        "event": "x",
        "body": "{}",
        "status": "delivered",
        "attempts": 1,
        "step": 0,
        "created_at_ms": created_at_ms,
    }
