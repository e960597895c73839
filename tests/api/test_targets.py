"""No way of writing an address leads into our own network: at create, at update and at send.

Real routes and the real sender; a canary listens on loopback, and no connection may reach it.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import httpx2
import pytest

from msgsvc_core.security import dns
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.webhooks import WebhookReceiver
from msgsvc_webhooks.service import Webhooks
from tests.api.address_forms import ANSWERS, FORMS

PUBLIC_URL = "http://hooks.example.com/"
NAMED = "http://hooks.example.com:{port}/webhooks"


@dataclass
class Canary:
    """Listens on 127.0.0.1, and on ::1 where this machine has it, on one port."""

    port: int = 0
    connections: int = 0

    async def chirp(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    bird = Canary()
    servers = [await asyncio.start_server(bird.chirp, "127.0.0.1", 0)]
    bird.port = servers[0].sockets[0].getsockname()[1]
    with suppress(OSError):
        servers.append(await asyncio.start_server(bird.chirp, "::1", bird.port))
    yield bird
    for server in servers:
        server.close()
        await server.wait_closed()


@dataclass
class Names:
    """A DNS: `answers` is what names lead to, `asked` how often it was asked."""

    answers: list[str] = field(default_factory=list)
    asked: int = 0

    def ask(self, host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        self.asked += 1
        if not self.answers:
            raise socket.gaierror(socket.EAI_NONAME, f"{host} is unknown")
        return [
            (
                socket.AF_INET6 if ":" in answer else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (answer, port, 0, 0) if ":" in answer else (answer, port),
            )
            for answer in self.answers
        ]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Without it a test of names would ask the machine's own DNS."""
    made = Names()
    monkeypatch.setattr(dns, "query_system", made.ask)
    return made


#: What the journal says, whether the name is unknown or leads inside.
UNRESOLVED = "the host can't be resolved to public addresses"


@dataclass
class Shop:
    """A project with webhooks."""

    service: Service
    tenant: Tenant

    @property
    def client(self) -> httpx2.AsyncClient:
        return self.tenant.client

    async def add(self, url: str) -> str:
        answer = await self.client.post("/v1/webhooks", json={"url": url})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["webhook_id"])

    async def add_unchecked(self, url: str) -> str:
        """As if it had been stored when the rules were others."""
        webhook_id = await self.add(PUBLIC_URL)
        async with self.service.db.transaction() as tx:
            await tx.execute(
                "UPDATE webhooks_endpoints SET url = :url WHERE webhook_id = :webhook_id",
                {"url": url, "webhook_id": webhook_id},
            )
        return webhook_id

    async def deliver(self) -> None:
        """Lets something happen, and waits for what is due."""
        async with self.service.db.transaction() as tx:
            project_id = self.tenant.project.project_id
            fields = {"name": "visit", "properties": {}}
            await self.service.events.emit(tx, project_id, "event.tracked", fields)
        await settled(self.service)

    async def attempts(self, webhook_id: str) -> list[tuple[str, int | None, str | None]]:
        """Of each delivery, the oldest first: its status, and its last attempt's answer and error."""
        answer = await self.client.get(f"/v1/webhooks/{webhook_id}/deliveries")
        return [
            (one["status"], one["attempts"][-1]["status_code"], one["attempts"][-1]["error"])
            for one in reversed(answer.json()["data"])
        ]


@pytest.fixture
def make_shop(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> Callable[..., Awaitable[Shop]]:
    """Makes a project of a service that takes plain http, and as many webhooks as are asked for."""

    async def make(*cidrs: str) -> Shop:
        settings = {"allow_http": True, "allow_cidrs": cidrs, "endpoints_per_project": 500}
        service = await make_service(
            plugins=("webhooks",),
            webhooks=settings,
            limits={"requests_per_minute": 10_000},
        )
        return Shop(service, await make_tenant(service))

    return make


MakeShop = Callable[..., Awaitable[Shop]]


def refused(answer: httpx2.Response) -> bool:
    said = answer.json()
    return bool(
        answer.status_code == 400
        and said.get("code") == "invalid_url"
        and said["error"].startswith("url: ")
    )


def test_at_least_60_forms_are_tried() -> None:
    assert len(set(FORMS.values())) >= 60


async def test_no_form_is_taken_when_a_webhook_is_made_or_changed(
    make_shop: MakeShop, canary: Canary, names: Names
) -> None:
    shop = await make_shop()
    webhook_id = await shop.add(PUBLIC_URL)
    taken = []

    for form, template in FORMS.items():
        body = {"url": template.replace("{port}", str(canary.port))}
        if not refused(await shop.client.post("/v1/webhooks", json=body)):
            taken.append(f"create: {form}")
        if not refused(await shop.client.put(f"/v1/webhooks/{webhook_id}", json=body)):
            taken.append(f"update: {form}")

    assert taken == []
    assert (canary.connections, names.asked) == (0, 0)
    shown = (await shop.client.get("/v1/webhooks")).json()["data"]
    assert [one["url"] for one in shown] == [PUBLIC_URL]


async def test_no_form_is_called_though_it_is_stored(
    make_shop: MakeShop, canary: Canary, names: Names
) -> None:
    shop = await make_shop()
    stored = {
        await shop.add_unchecked(template.replace("{port}", str(canary.port))): form
        for form, template in FORMS.items()
    }

    await shop.deliver()
    outcomes = {stored[webhook_id]: await shop.attempts(webhook_id) for webhook_id in stored}

    for form, [(status, status_code, error)] in outcomes.items():
        assert (form, status, status_code) == (form, "failed", None)
        assert error
    assert (canary.connections, names.asked) == (0, 0)


@pytest.mark.shared_service
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
async def test_public_name_that_leads_inside_is_not_called(
    make_shop: MakeShop, canary: Canary, names: Names, answers: list[str]
) -> None:
    shop = await make_shop()
    webhook_id = await shop.add(NAMED.format(port=canary.port))
    names.answers = answers

    await shop.deliver()

    assert await shop.attempts(webhook_id) == [("queued", None, UNRESOLVED)]
    assert names.asked == 1
    assert canary.connections == 0


async def test_a_name_of_our_own_network_is_told_as_one_that_nobody_knows(
    make_shop: MakeShop, names: Names
) -> None:
    shop = await make_shop()
    tests = []
    for answers in ([], ["10.0.0.7"], ["203.0.113.1", "10.0.0.7"]):
        names.answers = answers
        webhook_id = await shop.add(NAMED.format(port=80))
        await shop.client.post(f"/v1/webhooks/{webhook_id}/test")
        await settled(shop.service)
        tests += await shop.attempts(webhook_id)

    assert tests == [("failed", None, UNRESOLVED)] * 3


@pytest.fixture
async def open_receiver(canary: Canary) -> AsyncIterator[WebhookReceiver]:
    """On the port of the canary, but at 127.0.0.2, which stands for a public address."""
    async with WebhookReceiver(host="127.0.0.2", port=canary.port) as receiver:
        yield receiver


async def test_name_that_moves_inside_between_attempts_is_not_called_there(
    make_shop: MakeShop, canary: Canary, names: Names, open_receiver: WebhookReceiver
) -> None:
    shop = await make_shop("127.0.0.2/32")
    names.answers = ["127.0.0.2"]
    webhook_id = await shop.add(NAMED.format(port=canary.port))
    await shop.deliver()
    names.answers = ["127.0.0.1"]
    # The next attempt opens a new connection and asks anew, as after a while without deliveries.
    await shop.service.get(Webhooks).close()

    await shop.deliver()

    assert await shop.attempts(webhook_id) == [
        ("delivered", 200, None),
        ("queued", None, UNRESOLVED),
    ]
    assert (len(open_receiver.requests), canary.connections) == (1, 0)


async def test_name_that_moves_inside_after_its_check_is_called_where_it_was_checked(
    make_shop: MakeShop,
    canary: Canary,
    names: Names,
    open_receiver: WebhookReceiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = await make_shop("127.0.0.2/32")
    names.answers = ["127.0.0.2"]
    ask = names.ask

    def answer_once(host: str, port: int, family: socket.AddressFamily) -> dns.Found:
        found = ask(host, port, family)
        names.answers = ["127.0.0.1"]  # whoever asks again is led inside
        return found

    monkeypatch.setattr(dns, "query_system", answer_once)
    webhook_id = await shop.add(NAMED.format(port=canary.port))

    await shop.deliver()

    assert await shop.attempts(webhook_id) == [("delivered", 200, None)]
    assert names.asked == 1
    assert (len(open_receiver.requests), canary.connections) == (1, 0)


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("status", "form"),
    [
        (301, "four decimals"),
        (302, "localhost"),
        (303, "IPv4-mapped"),
        (307, "one decimal"),
        (308, "IPv6 loopback"),
    ],
)
async def test_redirect_inside_is_not_followed(
    make_shop: MakeShop,
    canary: Canary,
    names: Names,
    open_receiver: WebhookReceiver,
    status: int,
    form: str,
) -> None:
    shop = await make_shop("127.0.0.2/32")
    webhook_id = await shop.add(open_receiver.url)
    open_receiver.redirect(FORMS[form].replace("{port}", str(canary.port)), status=status)

    await shop.deliver()

    [(outcome, status_code, error)] = await shop.attempts(webhook_id)
    assert (outcome, status_code) == ("queued", status)
    assert "redirect" in str(error)
    assert (len(open_receiver.requests), canary.connections, names.asked) == (1, 0, 0)


async def test_canary_is_heard_where_the_operator_opened_loopback(
    make_shop: MakeShop, canary: Canary
) -> None:
    shop = await make_shop("127.0.0.0/8")
    await shop.add(FORMS["four decimals"].replace("{port}", str(canary.port)))

    await shop.deliver()

    assert canary.connections == 1
