"""The orders of the lists of tickets."""

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import PLUGINS, act, listed, refusal, virtual


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[*PLUGINS, ("dashboard", dashboard)])


@pytest.fixture
async def tickets(client: httpx2.AsyncClient, clock: FakeClock) -> list[int]:
    """Four: the second was answered, the third is urgent and so due first, the fourth waits since last."""
    targets = {"urgent": {"first_response_seconds": 300, "counted_in": "calendar"}}
    targets["normal"] = {"first_response_seconds": 3600, "counted_in": "calendar"}
    assert (await client.patch("/v1/tickets/sla", json=targets)).is_success
    made = []
    for priority in ("normal", "normal", "urgent", "normal"):
        made.append(await virtual(client, priority=priority, tags=["delivery"]))
        clock.advance(60)
    await act(client, made[1], "reply", text="On its way")
    return [ticket["number"] for ticket in made]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("sort", "numbers"),
    [("newest", [4, 3, 2, 1]), ("waiting", [1, 3, 4]), ("due", [3, 1, 4])],
)
async def test_the_list_is_read_on_in_each_order(
    client: httpx2.AsyncClient, tickets: list[int], sort: str, numbers: list[int]
) -> None:
    seen, cursor = [], ""
    while len(seen) <= len(numbers):
        query = {"sort": sort, "limit": 1, **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/tickets", params=query)).json()
        seen += [ticket["number"] for ticket in page["data"]]
        cursor = page["next_cursor"] or ""
        if not cursor:
            break

    assert seen == numbers


@pytest.mark.both_databases
async def test_filters_hold_in_each_order(client: httpx2.AsyncClient, tickets: list[int]) -> None:
    async def numbers(**query: str) -> list[int]:
        return [ticket["number"] for ticket in await listed(client, **query)]

    assert await numbers(sort="waiting", priority="urgent") == [3]
    assert await numbers(sort="due", tag="delivery", status="open") == [3, 1, 4]
    assert await numbers(sort="due", assignee_id="none", due="today") == [3, 1, 4]
    assert await numbers(sort="waiting", tag="other") == []
    assert await numbers(sort="waiting", created_after="2030-01-01T00:00:00Z") == []


async def test_a_cursor_of_another_order_is_refused(
    client: httpx2.AsyncClient, tickets: list[int]
) -> None:
    page = (await client.get("/v1/tickets", params={"sort": "due", "limit": 1})).json()
    query = {"sort": "waiting", "cursor": page["next_cursor"]}

    assert refusal(await client.get("/v1/tickets", params=query)) == (400, "bad_request")


async def test_the_page_has_the_same_orders(
    service: Service, tenant: Tenant, tickets: list[int]
) -> None:
    owner = await visitor(service, tenant.project.project_id)

    async def numbers(**query: str) -> list[int]:
        text = (await owner.get("/tickets", **query)).text
        found = [(text.find(f"#{number}<"), number) for number in tickets]
        return [number for place, number in sorted(found) if place >= 0]

    assert await numbers(status="all") == [2, 4, 3, 1]
    assert await numbers(status="all", sort="newest") == [4, 3, 2, 1]
    assert await numbers(sort="waiting") == [1, 3, 4]
    assert await numbers(sort="due", tag="delivery") == [3, 1, 4]
