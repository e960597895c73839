"""The filters of `GET /v1/subscribers`, and its pages while people subscribe."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Blocked, ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from tests.api.conftest import CheckError, Subscribe

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")


async def names(client: httpx2.AsyncClient, **query: Any) -> list[str]:
    """Of whom a list has, page by page of two."""
    seen: list[str] = []
    params = {"limit": 2, **query}
    while True:
        answer = await client.get("/v1/subscribers", params=params)
        assert answer.status_code == 200, answer.text
        seen += [subscriber["first_name"] for subscriber in answer.json()["data"]]
        params["cursor"] = answer.json()["next_cursor"]
        if params["cursor"] is None:
            return seen


@pytest.fixture
async def people(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    """Five people who subscribed a minute apart, the first at 12:00:00."""
    for key in ("news", "sale"):
        await client.post("/v1/permissions", json={"key": key, "title": "News"})
    await subscribe("Ann", tags=["vip"], permissions=["news"])
    clock.advance(60)
    await subscribe("Bob", tags=["vip", "new"], permissions=["news", "sale"], lang="ru")
    clock.advance(60)
    await subscribe("Cat", channel="messenger_b", tags=["new"], external_id="customer-3")
    clock.advance(60)
    await subscribe("Dan", tags=["vip"], permissions=["news"], lang="ru")
    clock.advance(60)
    await subscribe("Eve", channel="messenger_b", external_id="customer-5")
    await service.inbound.receive(
        "messenger_a", Blocked(update_id="b1", chat_id="chat-Ann", user=ANN)
    )


@pytest.mark.both_databases
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "Eve Dan Cat Bob Ann"),
        ({"lang": "ru"}, "Dan Bob"),
        ({"channel": "messenger_b"}, "Eve Cat"),
        ({"status": "blocked"}, "Ann"),
        ({"external_id": "customer-3"}, "Cat"),
        ({"external_id": "customer-4"}, ""),
        ({"tag": "vip"}, "Dan Bob Ann"),
        ({"tag": "VIP"}, ""),
        ({"permission": "news"}, "Dan Bob Ann"),
        ({"permission": "unknown"}, ""),
        ({"tag": "new", "permission": "sale"}, "Bob"),
        ({"tag": "vip", "permission": "news", "lang": "ru"}, "Dan Bob"),
        ({"tag": "vip", "status": "active", "external_id": "customer-3"}, ""),
        ({"created_after": "2026-01-15T12:02:00Z"}, "Eve Dan"),
        ({"created_after": "2026-01-15T12:01:59.999Z"}, "Eve Dan Cat"),
        ({"created_after": "2026-01-15T15:02:00+03:00"}, "Eve Dan"),
        ({"created_after": "2026-01-15T12:04:00Z"}, ""),
        ({"created_after": "1999-12-31T23:59:59Z"}, "Eve Dan Cat Bob Ann"),
        ({"created_after": "2026-01-15T12:00:30Z", "tag": "vip"}, "Dan Bob"),
        ({"created_after": "2026-01-15T12:00:30Z", "permission": "sale"}, "Bob"),
    ],
)
async def test_filters_leave_whom_all_of_them_name_page_by_page(
    client: httpx2.AsyncClient, query: dict[str, str], expected: str
) -> None:
    assert await names(client, **query) == expected.split()


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"created_after": "yesterday"}, "created_after"),
        ({"created_after": "2026-01-15"}, "created_after"),
        ({"created_after": "2026-01-15T12:00:00"}, "created_after"),
        ({"lang": "de"}, "lang"),
        ({"status": "asleep"}, "status"),
        ({"channel": "pigeon"}, "channel"),
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"tags": "vip"}, "tags"),
    ],
)
async def test_a_malformed_filter_is_refused_by_its_name(
    client: httpx2.AsyncClient, check_error: CheckError, query: dict[str, str], field: str
) -> None:
    answer = await client.get("/v1/subscribers", params=query)

    assert check_error(answer, 400, "validation_failed")["error"].startswith(f"{field}: ")


@pytest.mark.both_databases
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("query", [{}, {"tag": "vip"}, {"permission": "news"}])
async def test_a_cursor_goes_on_where_it_was_while_people_subscribe(
    client: httpx2.AsyncClient, subscribe: Subscribe, query: dict[str, str]
) -> None:
    everybody = await names(client, **query)
    first = (await client.get("/v1/subscribers", params={"limit": 2, **query})).json()
    await subscribe("Fay", tags=["vip"], permissions=["news"])
    rest = await names(client, cursor=first["next_cursor"], **query)

    assert [one["first_name"] for one in first["data"]] + rest == everybody
    assert await names(client, **query) == ["Fay", *everybody]


async def test_who_returns_is_not_created_again(
    client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    await subscribe("Ann")
    clock.advance(60)
    await subscribe("Ann")

    assert await names(client, created_after="2026-01-15T12:00:30Z") == []
