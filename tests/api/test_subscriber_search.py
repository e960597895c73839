"""`GET /v1/subscribers?query=`: people by the beginning of a name, a username or an external id."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core import migrations
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Database, migrate
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe


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


def copy_earlier(folder: Path, than: str) -> None:
    """Copies the core's migrations up to a number."""
    folder.mkdir()
    for file in Path(migrations.__path__[0]).glob("0*.py"):
        if file.name < than:
            shutil.copy(file, folder)


async def test_who_subscribed_before_there_was_a_search_is_found_too(
    backend: Any, make_service: ServiceFactory, make_tenant: Any, tmp_path: Path
) -> None:
    url, before = await backend.empty(), tmp_path / "before"
    copy_earlier(before, "0013")
    built = await make_service(database_url=url, start=False)
    core, *others = built.migrations
    assert core.owner == "core"
    await migrate(url, [replace(core, folder=before), *others])
    database = Database(url)
    await database.connect()
    async with database.transaction() as tx:
        key = {"project_id": "prj_old"}
        project = {**key, "name": "Old", "status": "active", "created_at_ms": 0}
        await tx.insert("core_projects", project)
        person = {
            **key,
            "subscriber_id": "sub_old",
            **dict.fromkeys(("channel", "bot"), "messenger_a"),
            **dict.fromkeys(("user_id", "chat_id"), "1"),
            "first_name": "Жанна",
            "external_id": "OLD",
            "lang": "ru",
            "status": "active",
            "source": "api",
            **dict.fromkeys(("created_at_ms", "last_seen_at_ms"), 0),
        }
        await tx.insert("core_subscribers", person)
    await database.disconnect()
    await migrate(url, built.migrations)
    service = await make_service(database_url=url)
    client = (await make_tenant(service)).client
    secret = (await service.projects.create_key("prj_old", "test"))[1]
    client.headers["Authorization"] = f"Bearer {secret}"

    assert await found(client, "жа") == await found(client, "old") == ["Жанна"]
