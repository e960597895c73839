"""The hourly purge: what is old goes in steps."""

import pytest

from msgsvc_auth import store
from msgsvc_auth.jobs import DAY_MS
from msgsvc_auth.mini_app import store as mini_app_store
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, steps_of_two
from msgsvc_core.testing.fixtures import Tenant


async def test_sessions_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, store, "purge_sessions")
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "auth_sessions",
                {
                    "project_id": tenant.project.project_id,
                    "session_id": f"x{number}",
                    "token_digest": f"x{number}",
                    "status": "expired",
                    "state": "",
                    "created_at_ms": at_ms,
                    "expires_at_ms": at_ms,
                },
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT session_id FROM auth_sessions")
    assert [row["session_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]


async def test_uses_of_mini_apps_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, mini_app_store, "purge_uses")
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() + DAY_MS - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "auth_mini_app_uses",
                {"data_digest": f"x{number}", "expires_at_ms": at_ms},
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT data_digest FROM auth_mini_app_uses")
    assert [row["data_digest"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]
