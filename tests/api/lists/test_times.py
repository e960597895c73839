"""Every list of the API is bounded by `created_after` and `created_before`."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.ids import stamped_by
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import SETTINGS, MiniAppPlugin, resources_of
from tests.api.subscribing import Subscribe
from tests.paths import by_kind

BOUNDS = {"created_after", "created_before"}

HOUR_S = 3600


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


def lists(service: Service) -> list[Endpoint]:
    return [
        endpoint
        for endpoint in service.endpoints
        if not endpoint.public
        and endpoint.query is not None
        and "cursor" in endpoint.query.model_fields
    ]


@pytest.mark.shared_service
async def test_every_list_takes_both_bounds(service: Service) -> None:
    found = lists(service)
    without = [
        endpoint.name
        for endpoint in found
        if endpoint.query is None or not endpoint.query.model_fields.keys() >= BOUNDS
    ]

    assert len(found) > 30
    assert not without


@pytest.mark.both_databases
async def test_every_list_has_what_was_created_between_its_bounds(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    clock: FakeClock,
) -> None:
    with stamped_by(lambda: clock.now_ms() * 1_000_000):
        ids = await resources_of(service, tenant, subscribe, "Ann")
        await settled(service)
        clock.advance(HOUR_S)
        noon = to_rfc3339(clock.now_ms())
        clock.advance(HOUR_S)
        await resources_of(service, tenant, subscribe, "Bob")
        await settled(service)
        wrong, both = [], []
        for endpoint in lists(service):
            path = by_kind(endpoint.path).format_map(ids)
            whole = await entries(client, path, {})
            older = await entries(client, path, {"created_before": noon})
            newer = await entries(client, path, {"created_after": noon})
            none = await entries(client, path, {"created_after": noon, "created_before": noon})
            fits = all(each.get("created_at", noon) <= noon for each in older)
            fits = fits and all(each.get("created_at", noon) >= noon for each in newer)
            if none or not fits or names([*older, *newer]) != names(whole):
                wrong.append(f"{path}: {len(older)} and {len(newer)} of {len(whole)}, {len(none)}")
            if older and newer:
                both.append(endpoint.name)

    assert not wrong
    assert len(both) > 20, both


async def entries(
    client: httpx2.AsyncClient, path: str, bounds: Mapping[str, str]
) -> list[dict[str, Any]]:
    """All pages of a list, of one entry each."""
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {**bounds, "limit": 1}
    while True:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, f"{path} {query}: {answer.text}"
        page = answer.json()
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


def names(entries: list[dict[str, Any]]) -> list[str]:
    """What each entry is called by, sorted."""
    return sorted(json.dumps(next(iter(each.values()))) for each in entries)
