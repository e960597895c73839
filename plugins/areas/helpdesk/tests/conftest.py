"""A service with the plugin, people who write to its bots, and requests in short."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Update,
)
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, Sent, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_helpdesk import plugin

PLUGINS = [("helpdesk", plugin)]

#: Tests ask often, while the clock stands still.
LIMITS = {"requests_per_minute": 1_000_000}

DAY_S = 24 * 3600

_update_ids = count(1)


@dataclass(frozen=True)
class Person:
    """Somebody with a messenger. Every action returns when the bot has done its part."""

    service: Service
    user: ChannelUser
    channel_name: str = "messenger_a"

    @property
    def chat_id(self) -> str:
        return f"chat-{self.user.user_id}"

    @property
    def messages(self) -> list[Sent]:
        """What the bot has shown them."""
        channel = self.service.channels[self.channel_name]
        assert isinstance(channel, RecordingChannel)
        return [message for message in channel.sent if message.chat_id == self.chat_id]

    @property
    def shown(self) -> str:
        """The text of the last message in their chat."""
        return self.messages[-1].message.text

    async def write(
        self,
        text: str,
        *,
        ref: str | None = None,
        files: tuple[ReceivedFile, ...] = (),
        reply_to: str | None = None,
        thread: str | None = None,
    ) -> None:
        update = MessageReceived(
            **self._update(),
            text=text,
            message_ref=ref,
            files=files,
            reply_to=reply_to,
            thread=thread,
        )
        await self.receive(update)

    async def edit(self, ref: str, text: str, files: tuple[ReceivedFile, ...] = ()) -> None:
        await self.receive(MessageEdited(**self._update(), message_ref=ref, text=text, files=files))

    async def press(self, data: str, ref: str, *, thread: str | None = None) -> None:
        update = ButtonPressed(
            **self._update(), data=data, message_ref=ref, button_ref=ref, thread=thread
        )
        await self.receive(update)

    async def subscribe(self, client: httpx2.AsyncClient) -> str:
        """Opens a subscription link of the project; returns the id of the subscriber."""
        answer = await client.post("/v1/subscribers/links", json={})
        assert answer.status_code == 201, answer.text
        payload = answer.json()["links"][self.channel_name].partition("?start=")[2]
        await self.receive(Started(**self._update(), payload=payload))
        people = (await client.get("/v1/subscribers?limit=100")).json()["data"]
        return next(
            str(one["subscriber_id"])
            for one in people
            if one["first_name"] == self.user.first_name and one["channel"] == self.channel_name
        )

    async def ask(self, client: httpx2.AsyncClient, text: str) -> None:
        """Subscribes, and writes."""
        answer = await client.post("/v1/subscribers/links", json={})
        payload = answer.json()["links"][self.channel_name].partition("?start=")[2]
        await self.receive(Started(**self._update(), payload=payload))
        await self.write(text)

    async def receive(self, update: Update) -> None:
        await self.service.inbound.receive(self.channel_name, update)
        await settled(self.service)

    def _update(self) -> dict[str, Any]:
        return {"update_id": str(next(_update_ids)), "chat_id": self.chat_id, "user": self.user}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS)


@pytest.fixture
def ann(service: Service) -> Person:
    return Person(service, ChannelUser("1001", "Ann", "ann_k", "en"))


@pytest.fixture
def bob(service: Service) -> Person:
    """His language is Russian."""
    return Person(service, ChannelUser("1002", "Bob", None, "ru-RU"))


@pytest.fixture
async def ann_id(ann: Person, client: httpx2.AsyncClient) -> str:
    """The subscriber that Ann is of the test's project."""
    return await ann.subscribe(client)


MakeMember = Callable[..., Any]


@pytest.fixture
def member(client: httpx2.AsyncClient) -> MakeMember:
    """`await member("Mia", role="viewer")` adds one; returns their id."""

    async def add(name: str, **fields: Any) -> str:
        email = f"{name.lower()}@shop.example"
        made = await post(client, "/v1/members", name=name, email=email, **fields)
        return str(made["member_id"])

    return add


async def post(client: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    """What a request that succeeds answers."""
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


async def act(client: httpx2.AsyncClient, ticket: Any, action: str, **body: Any) -> dict[str, Any]:
    """What an action on a ticket answers."""
    return await post(client, f"/v1/tickets/{ticket['ticket_id']}/{action}", **body)


async def change(client: httpx2.AsyncClient, ticket: Any, **changes: Any) -> dict[str, Any]:
    """The ticket after these changes."""
    answer = await client.patch(f"/v1/tickets/{ticket['ticket_id']}", json=changes)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def virtual(client: httpx2.AsyncClient, text: str = "Help!", **body: Any) -> dict[str, Any]:
    """A new ticket of somebody without messenger."""
    return await post(client, "/v1/tickets", channel="virtual", text=text, **body)


async def whole(client: httpx2.AsyncClient, ticket: Any) -> dict[str, Any]:
    """A ticket, by its id or by what the API answered."""
    answer = await client.get(f"/v1/tickets/{_id(ticket)}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def messages_of(client: httpx2.AsyncClient, ticket: Any, **query: Any) -> dict[str, Any]:
    """A page of a ticket's messages, newest first."""
    answer = await client.get(f"/v1/tickets/{_id(ticket)}/messages", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _id(ticket: Any) -> str:
    return ticket if isinstance(ticket, str) else str(ticket["ticket_id"])


async def listed(client: httpx2.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """The tickets of a list, newest first."""
    answer = await client.get("/v1/tickets", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def said(client: httpx2.AsyncClient, ticket: Any) -> list[str]:
    """The texts of a ticket, oldest first."""
    page = await messages_of(client, ticket, limit=100)
    return [message["text"] for message in reversed(page["data"])]


async def told(client: httpx2.AsyncClient, *fields: str) -> list[Any]:
    """Events of tickets so far, oldest first: their names, with these fields where any are asked."""
    feed = (await client.get("/v1/events?limit=100")).json()["data"]
    events = [event for event in reversed(feed) if event["event"].startswith("ticket.")]
    if not fields:
        return [event["event"] for event in events]
    return [(event["event"], *(event["data"].get(name) for name in fields)) for event in events]


async def pass_time(service: Service, clock: FakeClock, seconds: float) -> None:
    """Time passes, and what is due is done: the first look may have begun before."""
    clock.advance(seconds)
    await settled(service)
    clock.advance(20)
    await settled(service)


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["code"]


def project_of(tenant: Tenant) -> str:
    return tenant.project.project_id
