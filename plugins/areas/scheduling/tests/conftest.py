"""A service with the plugin, people to send to, and requests in short."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_scheduling import plugin, store
from msgsvc_scheduling.models import Due

PLUGINS = [("scheduling", plugin)]

#: Tests ask often, while the clock stands still.
LIMITS = {"requests_per_minute": 1_000_000}

#: An hour after the beginning of a test.
LATER = "2026-01-15T13:00:00Z"

#: For a service that does nothing by itself.
IDLE: dict[str, Any] = {"jobs": {"runner": "none"}}

AddPeople = Callable[..., Awaitable[list[str]]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS)


async def add(service: Service, tenant: Tenant, count: int, **fields: Any) -> list[str]:
    """Adds `count` subscribers by the database alone; returns their ids."""
    now_ms = service.clock.now_ms()
    rows = [
        {
            "project_id": tenant.project.project_id,
            "subscriber_id": f"sub_{number:07d}",
            "channel": "messenger_a",
            "bot": "messenger_a",
            "user_id": f"user-{number}",
            "chat_id": f"chat-{number}",
            "first_name": f"P{number}",
            "lang": "en",
            "status": "active",
            "source": "api",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
            **fields,
        }
        for number in range(count)
    ]
    async with service.db.transaction() as tx:
        await tx.insert_many("core_subscribers", rows)
    return [row["subscriber_id"] for row in rows]


@pytest.fixture
def people(service: Service, tenant: Tenant) -> AddPeople:
    """`await people(3, lang="ru")` adds three subscribers of the tenant; returns their ids."""

    async def make(count: int, **fields: Any) -> list[str]:
        return await add(service, tenant, count, **fields)

    return make


@pytest.fixture
async def ann(people: AddPeople) -> str:
    """A subscriber, `chat-0`."""
    [subscriber_id] = await people(1)
    return subscriber_id


@pytest.fixture
def channel(service: Service) -> RecordingChannel:
    found = service.channels["messenger_a"]
    assert isinstance(found, RecordingChannel)
    return found


async def post(client: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    """What a request made, by default with the text `Hi`."""
    asked = body if "template" in body else {"text": "Hi", **body}
    answer = await client.post(path, json=asked)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def get(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def events(client: httpx2.AsyncClient, *names: str) -> list[dict[str, Any]]:
    """The payloads of events of these names, oldest first, each with its name."""
    answer = await client.get("/v1/events", params={"limit": 100})
    assert answer.status_code == 200, answer.text
    return [
        {"event": event["event"], **event["data"]}
        for event in reversed(answer.json()["data"])
        if event["event"] in names
    ]


async def told(client: httpx2.AsyncClient) -> list[tuple[str, str | None]]:
    """What scheduling told, oldest first: the event and its reason."""
    names = ("scheduled.sent", "scheduled.failed", "scheduled.skipped", "recurring.sent")
    return [(event["event"], event.get("reason")) for event in await events(client, *names)]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["code"]


async def due_of(service: Service) -> list[Due]:
    """What is due now."""
    async with service.db.read() as tx:
        return await store.list_due(tx, service.clock.now_ms(), 1000)


async def pass_time(service: Service, clock: FakeClock, seconds: float) -> None:
    """Time passes, and what is due is done."""
    clock.advance(seconds)
    await settled(service)
    # The look at what is due may have begun before: the next one is a second later.
    while await due_of(service):
        clock.advance(1)
        await settled(service)


async def count(service: Service, table: str) -> int:
    async with service.db.read() as tx:
        return int(await tx.fetch_val(f"SELECT COUNT(*) FROM {table}"))


def texts(*services: Service) -> list[str]:
    found: list[str] = []
    for service in services:
        channel = service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        found += channel.texts
    return found
