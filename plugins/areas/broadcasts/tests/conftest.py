"""A service with the plugin, people of every kind, and a broadcast's way to its end."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_broadcasts import plugin
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

PLUGINS = [("broadcasts", plugin)]

#: Tests look at a broadcast over and over, while the clock stands still.
LIMITS = {"requests_per_minute": 1_000_000}

AddPeople = Callable[..., Awaitable[list[str]]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS)


async def add(
    service: Service, tenant: Tenant, count: int, *, first: int = 0, **fields: Any
) -> list[str]:
    """Adds `count` subscribers by the database alone; returns their ids, which begin at `first`."""
    channel = fields.get("channel", "messenger_a")
    project_id = tenant.project.project_id
    rows = [
        {
            "project_id": project_id,
            "subscriber_id": f"sub_{channel[-1]}{number:07d}",
            "channel": channel,
            "bot": channel,
            "user_id": f"user-{number}",
            "chat_id": f"chat-{number}",
            "first_name": f"P{number}",
            "username": None,
            "lang": "en",
            "status": "active",
            "source": "api",
            "created_at_ms": service.clock.now_ms(),
            "last_seen_at_ms": service.clock.now_ms(),
            "attributes": None,
            **fields,
        }
        for number in range(first, first + count)
    ]
    async with service.db.transaction() as tx:
        for start in range(0, count, 500):
            await tx.insert_many("core_subscribers", rows[start : start + 500])
    return [row["subscriber_id"] for row in rows]


@pytest.fixture
def people(service: Service, tenant: Tenant) -> AddPeople:
    """`await people(3, lang="ru")` adds three subscribers of the tenant; returns their ids."""

    async def make(count: int, **fields: Any) -> list[str]:
        return await add(service, tenant, count, **fields)

    return make


async def give(service: Service, tenant: Tenant, tag: str, ids: Sequence[str]) -> None:
    """Makes people carry a tag, which is made if it is new."""
    for subscriber_id in ids:
        answer = await tenant.client.put(f"/v1/subscribers/{subscriber_id}/tags/{tag}")
        assert answer.is_success, answer.text


async def take(client: httpx2.AsyncClient, **body: Any) -> str:
    """Asks for a broadcast, by default of `Hi` to all; returns its id."""
    asked = {"audience": {"all": True}, "text": "Hi", **body}
    if "template" in body:
        del asked["text"]
    answer = await client.post("/v1/broadcast", json=asked)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


async def shown(client: httpx2.AsyncClient, job_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/broadcast/{job_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def ended(client: httpx2.AsyncClient, job_id: str, timeout_s: float = 30) -> dict[str, Any]:
    """The broadcast when it has ended."""

    async def look() -> dict[str, Any] | None:
        found = await shown(client, job_id)
        return found if found["finished_at"] else None

    return await until(look, timeout_s=timeout_s, interval_s=0.02)


def counts(broadcast: dict[str, Any]) -> tuple[int, int, int, int]:
    """`sent`, `failed`, `skipped`, `total`."""
    return tuple(broadcast[name] for name in ("sent", "failed", "skipped", "total"))


async def events(client: httpx2.AsyncClient, name: str) -> list[dict[str, Any]]:
    """The payloads of a name, newest first, at most 100."""
    answer = await client.get("/v1/events", params={"event": name, "limit": 100})
    assert answer.status_code == 200, answer.text
    return [event["data"] for event in answer.json()["data"]]


async def recipients(client: httpx2.AsyncClient, job_id: str, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/broadcast/{job_id}/recipients", params={"limit": 100, **query})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


@pytest.fixture
def channel(service: Service) -> RecordingChannel:
    found = service.channels["messenger_a"]
    assert isinstance(found, RecordingChannel)
    return found
