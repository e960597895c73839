"""Tickets over real HTTP, with customers on three messengers, and texts that try to be more."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.telegram import Person as TelegramPerson
from tests.payloads import NAMES, PAYLOADS

from . import platforms
from .conftest import (
    LIMITS,
    PLUGINS,
    Person,
    act,
    change,
    listed,
    messages_of,
    post,
    said,
    told,
    virtual,
)

#: As much of a picture as it takes to be recognised.
PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)


class Desk:
    """A project's tickets over HTTP, and its customers."""

    def __init__(self, service: Service, client: httpx2.AsyncClient, platform: Any) -> None:
        self.service, self.client, self._platform = service, client, platform

    async def customer(self, name: str) -> platforms.Customer:
        """Somebody who has opened a subscription link."""
        customer: platforms.Customer = await self._platform.customer(self.service, name)
        known = len(await self.subscribers())
        links = (await post(self.client, "/v1/subscribers/links"))["links"]
        await customer.open(links["messenger_a"])

        async def arrived() -> bool:
            return len(await self.subscribers()) > known

        await until(arrived)
        return customer

    async def subscribers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/v1/subscribers?limit=100")).json()[
            "data"
        ]
        return found

    async def hears(self, customer: platforms.Customer, text: str) -> dict[str, Any]:
        """Has a customer write; returns the ticket of which that is the last message."""
        await customer.write(text)

        async def heard() -> dict[str, Any] | None:
            for ticket in (await listed(self.client))[:1]:
                if (await said(self.client, ticket))[-1] == text:
                    return ticket
            return None

        found = await until(heard)
        assert found is not None
        return found

    async def files(self) -> list[str]:
        """The files of the first ticket's messages."""
        tickets = await listed(self.client)
        if not tickets:
            return []
        messages = (await messages_of(self.client, tickets[0]))["data"]
        return [file_id for message in messages for file_id in message["file_ids"]]

    async def says_all(self, texts: Sequence[str]) -> None:
        """Answers with each text, as it is and in a canned answer's markup."""
        first = {"ticket_id": "1"}
        for text in texts:
            await act(self.client, first, "reply", text=text)
            await act(self.client, first, "reply", canned="said", variables={"text": text})

    async def says(self, ticket: Any, customer: platforms.Customer, **body: Any) -> str:
        """Answers, and returns what the customer sees of it once it is there."""
        known = len(await customer.shown())
        await act(self.client, ticket, "reply", **body)

        async def arrived() -> list[str]:
            shown = await customer.shown()
            return shown if len(shown) > known else []

        # After the last answer comes the question how it went.
        return (await until(arrived))[known]


@asynccontextmanager
async def serving(service: Service, listener: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    yield
    server.should_exit = True
    await task


@pytest.fixture(params=platforms.NAMES)
async def desk(
    request: pytest.FixtureRequest, make_service: ServiceFactory, make_tenant: Any
) -> AsyncIterator[Desk]:
    async with platforms.platform_of(request.param) as platform:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        service = await make_service(
            extra_plugins=[*PLUGINS, platform.plugin],
            channels={"messenger_a": platform.channel},
            limits=LIMITS,
            base_url=url,
            helpdesk={"acknowledge": False},
            use_clock=SystemClock(),
        )
        tenant: Tenant = await make_tenant(service)
        headers = {"Authorization": f"Bearer {tenant.key}"}
        async with (
            serving(service, listener),
            httpx2.AsyncClient(base_url=url, headers=headers) as client,
        ):

            async def ready() -> bool:
                answer = await client.post("/v1/subscribers/links", json={})
                return answer.is_success and "messenger_a" in answer.json()["links"]

            await until(ready)
            yield Desk(service, client, platform)


async def test_a_tickets_whole_life(desk: Desk) -> None:
    ann = await desk.customer("Ann")
    ticket = await desk.hears(ann, "My order is late")
    assert await desk.says(ticket, ann, text="Which one?") == "Which one?"
    await desk.hears(ann, "Number 7")
    await act(desk.client, ticket, "reply", text="Ask the courier", internal=True)
    shown = await desk.says(
        ticket, ann, text="It comes **today**", format="markdown", status="closed"
    )
    await desk.hears(ann, "Thank you!")
    await change(desk.client, ticket, status="closed")

    assert "today" in shown
    assert "Ask the courier" not in await ann.shown()
    final = await messages_of(desk.client, ticket)
    assert [message["author"] for message in reversed(final["data"])] == [
        "customer",
        "agent",
        "customer",
        "agent",
        "agent",
        "customer",
    ]
    assert [
        message["delivery"]["status"]
        for message in final["data"]
        if message["delivery"] is not None
    ] == ["sent", "sent"]
    assert await told(desk.client, "author", "from", "to", "number") == [
        ("ticket.created", None, None, None, 1),
        ("ticket.replied", "agent", None, None, 1),
        ("ticket.status_changed", None, "open", "pending", 1),
        ("ticket.status_changed", None, "pending", "open", 1),
        ("ticket.replied", "customer", None, None, 1),
        ("ticket.replied", "agent", None, None, 1),
        ("ticket.status_changed", None, "open", "closed", 1),
        ("ticket.closed", None, None, None, 1),
        ("ticket.status_changed", None, "closed", "open", 1),
        ("ticket.replied", "customer", None, None, 1),
        ("ticket.status_changed", None, "open", "closed", 1),
        ("ticket.closed", None, None, None, 1),
    ]


@pytest.mark.parametrize("desk", ["telegram"], indirect=True)
async def test_files_go_both_ways_and_changes_are_followed(desk: Desk) -> None:
    ann = await desk.customer("Ann")
    person: TelegramPerson = ann.person  # type: ignore[attr-defined] # she is on Telegram
    await person.send_file("photo", PNG, caption="It came brokn")

    async def ready() -> dict[str, Any] | None:
        for file_id in await desk.files():
            file = (await desk.client.get(f"/v1/files/{file_id}")).json()
            if file["status"] == "ready":
                return dict(file)
        return None

    file = await until(ready)
    assert file is not None
    content = await desk.client.get(f"/v1/files/{file['file_id']}/content")
    await person.edit("It came broken")

    async def changed() -> bool:
        return await said(desk.client, "1") == ["It came broken"]

    await until(changed)
    known = len(person.messages)
    await act(desk.client, {"ticket_id": "1"}, "reply", text="This?", file_id=file["file_id"])
    answer = await person.wait_for("This?")

    assert content.content == PNG
    assert await desk.files() == [file["file_id"], file["file_id"]]
    [message] = [
        one for one in (await messages_of(desk.client, "1"))["data"] if one["author"] == "customer"
    ]
    assert [edit["text"] for edit in message["edits"]] == ["It came brokn"]
    assert len(person.messages) == known + 1
    assert answer.file is not None
    assert answer.file.content == PNG


async def test_texts_that_try_to_be_more_stay_texts_on_the_way_in_and_out(desk: Desk) -> None:
    await post(
        desk.client,
        "/v1/tickets/canned-answers",
        key="said",
        text="<b>You said:</b> {{ text }}",
        format="html",
    )
    customer = await desk.customer("Ann")
    # A command would be one, and spaces at the ends are the messenger's.
    texts = [f"- {payload.strip()}" for payload in PAYLOADS]
    for text in texts:
        await customer.write(text)

    async def heard() -> list[str]:
        found = [
            text for ticket in await listed(desk.client) for text in await said(desk.client, ticket)
        ]
        return found if len(found) == len(texts) else []

    arrived = await until(heard, interval_s=0.1)
    assert [visible(text) for text in arrived] == [visible(text) for text in texts]
    # The sandbox shows the last 50 messages of a chat.
    for part in (texts[start : start + 24] for start in range(0, len(texts), 24)):
        await desk.says_all(part)
        expected = [each for text in part for each in (visible(text), visible(f"You said: {text}"))]

        async def shown(most: int = len(expected)) -> list[str]:
            return [visible(text) for text in await customer.shown()][-most:]

        async def answered(last: str = expected[-1]) -> bool:
            return (await shown())[-1] == last

        await until(answered)
        assert await shown() == expected


def visible(text: str) -> str:
    """Line breaks and spaces are what platforms make of them."""
    return " ".join(text.split())


async def test_names_and_file_names_are_kept_as_texts(
    client: httpx2.AsyncClient, service: Service
) -> None:
    for number, payload in enumerate(NAMES):
        stored = await client.post("/v1/files", files={"file": (f"{payload}.txt", b"Hi")})
        assert stored.status_code == 201, stored.text
        file_ids = [stored.json()["file_id"]]
        ticket = await virtual(client, payload, name=payload, subject=payload, file_ids=file_ids)
        await Person(service, ChannelUser(f"user-{number}", payload)).ask(client, payload)

        answer = await client.get(f"/v1/tickets/{ticket['ticket_id']}")
        theirs = (await listed(client, limit=1))[0]

        assert answer.headers["content-type"].startswith("application/json")
        found = answer.json()
        assert (found["customer_name"], found["subject"]) == (payload, payload)
        assert [one["text"] for one in (await messages_of(client, ticket))["data"]] == [payload]
        assert (theirs["customer_name"], theirs["channel"]) == (payload, "messenger_a")
        assert await said(client, theirs) == [payload]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """For what needs no messenger."""
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS)
