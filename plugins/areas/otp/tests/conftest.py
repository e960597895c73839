"""A service with the plugin, and people who are sent codes."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_otp import plugin

_update_ids = count(1)

#: A code on a line of its own.
_CODE = re.compile(r"^(\d{4,8})$", re.MULTILINE)


@dataclass(frozen=True)
class Person:
    """Somebody with a messenger. Every action returns when the bot has done its part."""

    service: Service
    channel_name: str
    user: ChannelUser

    @property
    def chat_id(self) -> str:
        return f"chat-{self.user.user_id}"

    @property
    def channel(self) -> RecordingChannel:
        channel = self.service.channels[self.channel_name]
        assert isinstance(channel, RecordingChannel)
        return channel

    @property
    def messages(self) -> list[Sent]:
        return [message for message in self.channel.sent if message.chat_id == self.chat_id]

    @property
    def shown(self) -> str:
        """The text of the last message in their chat."""
        return self.messages[-1].message.text

    @property
    def code(self) -> str:
        """The code of the last message that has one."""
        found = [match[1] for one in self.messages if (match := _CODE.search(one.message.text))]
        return found[-1]

    @property
    def wrong(self) -> str:
        """Another code than the last one, of the same length."""
        code = self.code
        return f"{(int(code) + 1) % 10 ** len(code):0{len(code)}d}"

    async def open(self, link: str) -> str:
        """Opens a link to the bot and presses Start; returns what the bot says last."""
        update = Started(
            update_id=str(next(_update_ids)),
            chat_id=self.chat_id,
            user=self.user,
            payload=link.partition("?start=")[2],
        )
        await self.service.inbound.receive(self.channel_name, update)
        await settled(self.service)
        return self.shown

    async def subscribe(self, client: httpx2.AsyncClient, **link: Any) -> str:
        """Opens a subscription link of the project; returns the id of the subscriber."""
        answer = await client.post("/v1/subscribers/links", json=link)
        assert answer.status_code == 201, answer.text
        await self.open(answer.json()["links"][self.channel_name])
        people = (await client.get("/v1/subscribers?limit=100")).json()["data"]
        return next(
            str(one["subscriber_id"])
            for one in people
            if one["first_name"] == self.user.first_name and one["channel"] == self.channel_name
        )


@pytest.fixture
async def service(make_service: Callable[..., Awaitable[Service]]) -> Service:
    return await make_service(extra_plugins=[("otp", plugin)])


def ann_of(service: Service) -> Person:
    return Person(service, "messenger_a", ChannelUser("1001", "Ann", "ann_k", "en"))


@pytest.fixture
def ann(service: Service) -> Person:
    return ann_of(service)


@pytest.fixture
def bob(service: Service) -> Person:
    """On the same messenger as Ann; his language is Russian."""
    return Person(service, "messenger_a", ChannelUser("1002", "Bob", None, "ru-RU"))


@pytest.fixture
async def ann_id(ann: Person, client: httpx2.AsyncClient) -> str:
    """The subscriber that Ann is of the test's project."""
    return await ann.subscribe(client)


Send = Callable[..., Awaitable[str]]
Verify = Callable[..., Awaitable[httpx2.Response]]
Seen = Callable[[], Awaitable[list[tuple[str, int]]]]


@pytest.fixture
def send(client: httpx2.AsyncClient, ann_id: str, service: Service) -> Send:
    """`await send(purpose="pay")` has a code sent to Ann, unless told otherwise; returns its id."""

    async def post(**body: Any) -> str:
        who = {} if "external_id" in body else {"subscriber_id": ann_id}
        answer = await client.post("/v1/otp/send", json={**who, **body})
        assert answer.status_code == 202, answer.text
        await settled(service)
        return str(answer.json()["otp_id"])

    return post


@pytest.fixture
def verify(client: httpx2.AsyncClient) -> Verify:
    """`await verify(otp_id=..., code="123456")`."""

    async def post(**body: Any) -> httpx2.Response:
        return await client.post("/v1/otp/verify", json=body)

    return post


@pytest.fixture
def seen(service: Service, tenant: Tenant) -> Seen:
    """The plugin's events so far, oldest first, each with the attempts that were left."""

    async def ask() -> list[tuple[str, int]]:
        feed = (await tenant.client.get("/v1/events?limit=100")).json()["data"]
        return [
            (event["event"], event["data"]["attempts_left"])
            for event in reversed(feed)
            if event["event"].startswith("otp.")
        ]

    return ask


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["code"]


async def shown(client: httpx2.AsyncClient, otp_id: str) -> dict[str, Any]:
    """A code as the API shows it."""
    answer: dict[str, Any] = (await client.get(f"/v1/otp/{otp_id}")).json()
    return answer
