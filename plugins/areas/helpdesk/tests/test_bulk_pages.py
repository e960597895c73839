"""One change of several tickets in the dashboard."""

import re
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import PLUGINS, listed, virtual


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[*PLUGINS, ("dashboard", dashboard)])


@pytest.fixture
async def owner(service: Service, tenant: Tenant) -> Visitor:
    return await visitor(service, tenant.project.project_id)


@pytest.fixture
async def tickets(tenant: Tenant) -> list[str]:
    made = [await virtual(tenant.client, tags=["delivery"] * (n < 2)) for n in range(3)]
    return [ticket["ticket_id"] for ticket in made]


async def changed(tenant: Tenant, **query: Any) -> set[str]:
    return {ticket["ticket_id"] for ticket in await listed(tenant.client, **query)}


async def test_the_checked_ones_are_closed(
    service: Service, owner: Visitor, tenant: Tenant, tickets: list[str]
) -> None:
    page = await owner.get("/tickets/select")
    assert all(f'value="{one}"' in page.text for one in tickets)
    form = {"who": "chosen", "id": tickets[:2], "action": "close", "bulk_tag": ""}
    answer = await owner.post("/tickets/bulk", form)
    assert answer.status_code == 303
    at = answer.headers["location"]
    assert 'hx-trigger="every 2s"' in (await owner.client.get(at)).text
    await settled(service)

    state = (await owner.client.get(at)).text
    assert "Completed" in state
    assert "hx-trigger" not in re.sub(r"(?s).*<main", "", state)
    assert await changed(tenant, status="closed") == set(tickets[:2])
    assert "Close tickets" in (await owner.get("/tickets/bulk")).text


async def test_all_that_match_the_filters_of_the_page_get_a_tag(
    service: Service, owner: Visitor, tenant: Tenant, tickets: list[str]
) -> None:
    form = {"who": "all", "action": "add_tag", "bulk_tag": "vip"}
    answer = await owner.post("/tickets/bulk", form, params={"tag": "delivery"})
    await settled(service)

    assert answer.status_code == 303
    assert await changed(tenant, tag="vip") == set(tickets[:2])


async def test_those_of_the_page_are_assigned_to_me(
    service: Service, owner: Visitor, tenant: Tenant, tickets: list[str]
) -> None:
    form = {"who": "page", "on_page": tickets, "action": "assign:me"}
    answer = await owner.post("/tickets/bulk", form)
    await settled(service)

    assert answer.status_code == 303
    assert await changed(tenant, assignee_id="none") == set()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"who": "chosen", "action": "close"}, "check one of the tickets at least"),
        ({"who": "all", "action": "add_tag", "bulk_tag": " "}, "give the tag"),
    ],
)
async def test_what_is_missing_is_said_in_the_form(
    owner: Visitor, tickets: list[str], form: dict[str, Any], told: str
) -> None:
    answer = await owner.post("/tickets/bulk", form)

    assert answer.status_code == 400
    assert told in answer.text.lower() or told.capitalize() in answer.text


async def test_one_that_runs_can_be_cancelled(
    service: Service, owner: Visitor, tenant: Tenant, tickets: list[str]
) -> None:
    answer = await owner.post("/tickets/bulk", {"who": "all", "action": "close"})
    at = answer.headers["location"]
    path = at[at.index("/tickets/bulk") :]
    stopped = await owner.post(f"{path}/cancel", {})
    await settled(service)

    assert stopped.status_code == 303
    assert "Cancelled" in (await owner.client.get(at)).text
    assert await changed(tenant, status="closed") == set()
