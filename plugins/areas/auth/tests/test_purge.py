"""The hourly purge: what is old goes in steps."""

from typing import Any

import pytest

from msgsvc_auth import store
from msgsvc_auth.jobs import DAY_MS
from msgsvc_auth.mini_app import store as mini_app_store
from msgsvc_auth.requested import store as requested_store
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.purging import Purged, purged


async def test_sessions_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    def session(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "token_digest": f"at {at_ms}",
            "status": "expired",
            "state": "",
            "created_at_ms": at_ms,
            "expires_at_ms": at_ms,
        }

    found = await purged(
        service, clock, (store, "purge_sessions"), "auth_sessions", "session_id", session
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])


@pytest.mark.both_databases
async def test_requests_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    def request(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": tenant.project.project_id,
            "token_digest": f"at {at_ms}",
            "source": "oidc",
            "source_id": "1",
            "requester_name": "Grafana",
            "requester_url": "https://grafana.example/",
            "return_url": "https://msgsvc.example/back",
            "state": "",
            "number_matching": False,
            "created_at_ms": at_ms,
            "expires_at_ms": at_ms + DAY_MS,
        }

    found = await purged(
        service, clock, (requested_store, "purge_requests"), "auth_requests", "request_id", request
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])


async def test_uses_of_mini_apps_go_a_step_at_a_time(service: Service, clock: FakeClock) -> None:
    found = await purged(
        service,
        clock,
        (mini_app_store, "purge_uses"),
        "auth_mini_app_uses",
        "data_digest",
        lambda at_ms: {"expires_at_ms": at_ms + DAY_MS},
    )

    assert found == Purged(left=["x5"], steps=[2, 2, 1])
