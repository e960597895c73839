"""A service with the plugin, people with verified numbers, and what senders post."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from httpx2 import ASGITransport, AsyncClient

from msgsvc_core.channels import Capabilities, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_gateway import plugin

RECORDED = Path(__file__).parent / "recorded"
PHONE, EMAIL = "+12025550123", "ann@shop.example"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture
async def service(make_service: Callable[..., Awaitable[Service]]) -> Service:
    return await make_service(extra_plugins=[("gateway", plugin)])


@pytest.fixture
async def web(service: Service) -> AsyncIterator[AsyncClient]:
    """A sender: it has no key."""
    async with AsyncClient(
        transport=ASGITransport(app=service.app), base_url="https://msgsvc.example"
    ) as client:
        yield client


def bot(service: Service, name: str) -> RecordingChannel:
    channel = service.channels[name]
    assert isinstance(channel, RecordingChannel)
    return channel


@pytest.fixture
def first(service: Service) -> RecordingChannel:
    return bot(service, "messenger_a")


@pytest.fixture
def second(service: Service) -> RecordingChannel:
    return bot(service, "messenger_b")


@pytest.fixture
def mail(second: RecordingChannel) -> RecordingChannel:
    """The second channel, as one of addresses."""
    second.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    return second


Join = Callable[..., Awaitable[str]]


@pytest.fixture
def join(service: Service, client: AsyncClient, tenant: Tenant) -> Join:
    """`await join("messenger_a", phone="+12025550123")` subscribes somebody with a verified number; returns
    the subscriber's id."""

    async def subscribe(channel: str, user: str = "1001", **contacts: str) -> str:
        link = (await client.post("/v1/subscribers/links", json={})).json()["links"][channel]
        update = Started(
            update_id=f"{channel}-{user}",
            chat_id=f"chat-{user}",
            user=ChannelUser(user, f"Ann {user}", None, "en"),
            payload=link.partition("?start=")[2],
        )
        await service.inbound.receive(channel, update)
        await settled(service)
        people = (await client.get("/v1/subscribers?limit=100")).json()["data"]
        [found] = [
            str(one["subscriber_id"])
            for one in people
            if (one["first_name"], one["channel"]) == (f"Ann {user}", channel)
        ]
        async with service.db.transaction() as tx:
            for kind, value in contacts.items():
                assert kind in {"phone", "email"}
                await service.contacts.record(
                    tx,
                    tenant.project.project_id,
                    found,
                    kind="phone" if kind == "phone" else "email",
                    value=value,
                    source="test",
                )
        for each in service.channels:
            assert isinstance(each, RecordingChannel)
            each.sent.clear()
        return found

    return subscribe


Make = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def make(client: AsyncClient) -> Make:
    """`await make("logto")` creates a gateway by both channels, unless told otherwise."""

    async def post(sender: str, *channels: str, **more: Any) -> dict[str, Any]:
        names = channels or ("messenger_a", "messenger_b")
        body = {"name": sender, "sender": sender, "channels": list(names), **more}
        answer = await client.post("/v1/gateways", json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    return post


Post = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
def post(web: AsyncClient, service: Service) -> Post:
    """`await post(gateway, body)` is what its sender does."""

    async def to_gateway(gateway: dict[str, Any], body: bytes, **headers: str) -> httpx2.Response:
        answer = await web.post(
            gateway["url"],
            content=body,
            headers={"Content-Type": "application/json", **headers},
        )
        await settled(service)
        return answer

    return to_gateway


async def messages(client: AsyncClient, gateway: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/gateways/{gateway['gateway_id']}/messages")
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def events(client: AsyncClient) -> list[tuple[str, dict[str, Any]]]:
    feed = (await client.get("/v1/events?limit=100")).json()["data"]
    return [(one["event"], one["data"]) for one in reversed(feed) if "gateway" in one["event"]]
