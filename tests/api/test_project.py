"""What a project sees and changes of itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe


async def test_a_project_sees_its_limits_texts_and_channels(
    client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    answer = await client.get("/v1/project")

    assert answer.json() == {
        "project_id": tenant.project.project_id,
        "name": "Shop",
        "status": "active",
        "plan": None,
        "created_at": "2026-01-15T12:00:00.000Z",
        "welcome": None,
        "farewell": None,
        "link_tracking": False,
        "limits": {
            "requests_per_minute": 100_000,
            "text_length": 4000,
            "button_rows": 3,
            "buttons_per_row": 3,
            "tags": 20,
            "permissions": 20,
            "templates": 100,
            "attributes_bytes": 8192,
            "batch_messages": 500,
            "event_properties_bytes": 8192,
            "routes": 20,
            "route_steps": 5,
            "broadcast_recipients": 100_000,
            "broadcast_ids": 10_000,
            "bulk_action_subscribers": 100_000,
            "import_rows": 100_000,
            "plugins": {},
        },
        "channels": [
            {"name": name, "own": False, "link": f"https://{name}.example/bot?start=hello"}
            for name in ("messenger_a", "messenger_b")
        ],
    }


async def test_a_change_leaves_alone_what_it_does_not_name(client: httpx2.AsyncClient) -> None:
    welcome = {"en": "Welcome!", "ru": "Добро пожаловать!"}
    await client.patch("/v1/project", json={"welcome": welcome})
    await client.patch("/v1/project", json={"farewell": "Bye"})
    changed = await client.patch("/v1/project", json={"name": "Corner Coffee"})

    assert changed.status_code == 200
    shown = (await client.get("/v1/project")).json()
    assert shown == changed.json()
    assert (shown["name"], shown["welcome"], shown["farewell"]) == (
        "Corner Coffee",
        welcome,
        "Bye",
    )


async def test_a_text_that_is_null_is_removed(client: httpx2.AsyncClient) -> None:
    await client.patch("/v1/project", json={"welcome": "Hi", "farewell": "Bye"})
    answer = await client.patch("/v1/project", json={"welcome": None})

    assert (answer.json()["welcome"], answer.json()["farewell"]) == (None, "Bye")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_texts_that_are_changed_at_once_are_both_kept(client: httpx2.AsyncClient) -> None:
    await asyncio.gather(
        client.patch("/v1/project", json={"welcome": "Hi"}),
        client.patch("/v1/project", json={"farewell": "Bye"}),
    )

    shown = (await client.get("/v1/project")).json()
    assert (shown["welcome"], shown["farewell"]) == ("Hi", "Bye")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": " Shop"}, "name: must be 1-64 printable characters"),
        ({"name": "x" * 65}, "name: must be 1-64 printable characters"),
        ({"name": ""}, "name: must be 1-64 printable characters"),
        ({"name": "\u3164"}, "name: must be 1-64 printable characters"),
        ({"name": None}, "name: must not be null"),
        ({"welcome": "  "}, "welcome: must hold more than spaces and invisible characters"),
        ({"farewell": {"en": "x" * 1001}}, "farewell: must be at most 1000 characters"),
        ({"welcome": {}}, "welcome: give a text, or one for en or ru"),
        ({"welcome": 5}, "welcome: must be a text, or an object of texts by en and ru"),
        ({"welcome": {"de": "Hallo"}}, "welcome: must be a text, or an object of texts by en and"),
        ({"welcome": {"en": None}}, "welcome: must be a text, or an object of texts by en and ru"),
        (
            {"welcome": "Hi {{ name }}"},
            "welcome: there is no 'name' here, but first_name and project",
        ),
        ({"farewell": {"ru": "Пока, {{ last_name }}"}}, "farewell.ru: there is no 'last_name'"),
        ({"welcome": "Hi {{ first_name"}, "welcome: "),
        ({"plan": "pro"}, "plan: there is no such field"),
    ],
)
async def test_what_a_project_cannot_be_is_refused_by_its_name(
    client: httpx2.AsyncClient, check_error: CheckError, body: dict[str, Any], message: str
) -> None:
    answer = await client.patch("/v1/project", json=body)

    assert check_error(answer, 400, "validation_failed")["error"].startswith(message)
    assert (await client.get("/v1/project")).json()["name"] == "Shop"


async def test_a_text_may_name_the_person_and_the_project(client: httpx2.AsyncClient) -> None:
    text = 'Hi {{ first_name | default("you") }}, welcome to {{ project }}!'
    answer = await client.patch("/v1/project", json={"welcome": {"en": text}})

    assert answer.json()["welcome"] == {"en": text}


async def test_a_text_of_1000_characters_is_taken(client: httpx2.AsyncClient) -> None:
    answer = await client.patch("/v1/project", json={"welcome": "x" * 1000})

    assert answer.status_code == 200


async def test_a_new_name_is_the_one_that_people_read_next(
    client: httpx2.AsyncClient, subscribe: Subscribe, channel: Any
) -> None:
    await client.patch("/v1/project", json={"name": "Corner Coffee"})
    await subscribe("Ann")

    assert "Corner Coffee" in channel.texts[-1]


async def test_each_limit_that_init_raises_is_shown_with_its_value_in_force(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    raised = {
        "auth": {"sessions_per_hour": 3600},
        "forms": {"forms_per_project": 200},
        "scheduling": {"open_records": 10_000},
        "webhooks": {"endpoints_per_project": 50},
        "limits": {"routes": 200, "broadcast_recipients": 200_000},
    }
    service = await make_service(plugins=["auth", "forms", "scheduling", "webhooks"], **raised)
    client = (await make_tenant(service)).client
    shown = (await client.get("/v1/project")).json()["limits"]

    assert (shown["routes"], shown["broadcast_recipients"]) == (200, 200_000)
    assert shown["plugins"] == {
        "auth.sessions_per_hour": 3600,
        "forms.forms_per_project": 200,
        "scheduling.open_records": 10_000,
        "webhooks.endpoints_per_project": 50,
    }
