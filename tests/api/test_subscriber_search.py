"""`GET /v1/subscribers?query=`: people by the beginning of a name, a username or an external id."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError, Subscribe

pytestmark = pytest.mark.both_databases


async def found(client: httpx2.AsyncClient, text: str, **query: Any) -> list[str]:
    """First names in the order of the list, page by page of two."""
    seen: list[str] = []
    params = {"query": text, "limit": 2, **query}
    while True:
        answer = await client.get("/v1/subscribers", params=params)
        assert answer.status_code == 200, answer.text
        seen += [subscriber["first_name"] for subscriber in answer.json()["data"]]
        params["cursor"] = answer.json()["next_cursor"]
        if params["cursor"] is None:
            return seen


@pytest.fixture
async def people(subscribe: Subscribe) -> None:
    """Usernames are the first names in small letters."""
    await subscribe("Жанна", tags=["vip"])
    await subscribe("ЖАН")
    await subscribe("Ann", external_id="Customer-7")
    await subscribe("anna", tags=["vip"])
    await subscribe("Joanna", external_id="annex")
    await subscribe("Äöü")


@pytest.mark.usefixtures("people")
async def test_people_are_found_by_what_a_name_begins_with_in_the_order_of_the_names(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    assert await found(client, "жан") == ["ЖАН", "Жанна"]
    assert await found(client, "ЖАНН") == ["Жанна"]
    # Joanna by her external id; everybody once, whatever else of theirs begins so.
    assert await found(client, "ANN") == ["Ann", "anna", "Joanna"]
    assert await found(client, "@Anna") == ["anna"]
    assert await found(client, " customer-7 ") == ["Ann"]
    assert await found(client, "a\u0308ÖU\u0308") == ["Äöü"]
    assert await found(client, "nna") == []
    assert await found(client, "%") == []
    assert await found(client, "ann", tag="vip") == ["anna"]
    assert await found(client, "ж", tag="vip", status="active") == ["Жанна"]
    check_error(await client.get("/v1/subscribers", params={"query": ""}), 400, "validation_failed")
    newest = (await client.get("/v1/subscribers", params={"limit": 1})).json()["next_cursor"]
    wrong = {"query": "ann", "cursor": newest}
    check_error(await client.get("/v1/subscribers", params=wrong), 400, "bad_request")
    searched = (await client.get("/v1/subscribers?query=a&limit=1")).json()["next_cursor"]
    wrong = {"cursor": searched}
    check_error(await client.get("/v1/subscribers", params=wrong), 400, "bad_request")


async def test_who_is_called_otherwise_now_is_found_by_that_alone(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann")
    for external_id in ("Old", "NEW"):
        await client.patch(f"/v1/subscribers/{subscriber_id}", json={"external_id": external_id})
    async with service.db.transaction() as tx:
        called = ChannelUser("user-Ann", "Зоя", "Bob", "en")
        await service.subscribers.ensure(
            tx, tenant.project.project_id, "messenger_a", called, "chat-Ann", source="api"
        )

    assert await found(client, "ann") == await found(client, "old") == []
    assert await found(client, "зоя") == await found(client, "bob") == ["Зоя"]
    assert await found(client, "new") == ["Зоя"]
    await client.patch(f"/v1/subscribers/{subscriber_id}", json={"external_id": None})
    assert await found(client, "new") == []
