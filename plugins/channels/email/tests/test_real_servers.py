"""The channel against Postfix and Dovecot: what a fake that we wrote could not tell."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from aiohttp import web

from msgsvc_core.channels import ChannelUser, chats
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import machine, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.email import FakeMail, Mail
from msgsvc_devkit.platforms.email.messages import read_mail
from msgsvc_devkit.web_servers import stop
from msgsvc_email import plugin
from msgsvc_helpdesk import plugin as helpdesk

from .conftest import BASE_URL, MEDIA
from .real_servers import GONE, PASSWORD, RealServers, real_servers, why_not

pytestmark = pytest.mark.slow

ANN = "ann@people.example"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


@pytest.fixture(scope="module")
def gone_port() -> int:
    """Where the server of the domain `GONE` will listen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def servers(gone_port: int) -> Iterator[RealServers]:
    """Postfix and Dovecot. Where they are missing, or may not be started, the tests are skipped, or fail if
    they are required."""
    if reason := why_not():
        machine.missing("mail-servers", reason)
    with real_servers(gone_port) as servers:
        yield servers


@pytest.fixture
async def service(make_service: ServiceFactory, servers: RealServers) -> Service:
    return await start(make_service, servers)


async def start(make_service: ServiceFactory, servers: RealServers, **settings: Any) -> Service:
    return await make_service(
        extra_plugins=[("email", plugin), ("helpdesk", helpdesk)],
        use_clock=SystemClock(),
        base_url=BASE_URL,
        channels={"mail": servers.settings},
        media=MEDIA,
        **settings,
    )


@pytest.fixture
async def picture_url() -> AsyncIterator[str]:
    async def give(_request: web.Request) -> web.Response:
        return web.Response(body=PNG, content_type="image/png")

    app = web.Application()
    app.add_routes([web.get("/p.png", give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site.port}/p.png"
    await stop(runner)


async def subscribe(service: Service, tenant: Tenant, address: str) -> str:
    async with service.db.transaction() as tx:
        user = ChannelUser(address, "Ann")
        project_id = tenant.project.project_id
        found = await service.subscribers.ensure(
            tx, project_id, "mail", user, address, source="api"
        )
        now_ms = service.clock.now_ms()
        await chats.touch(
            tx, "mail", address, user_id=address, project_id=project_id, now_ms=now_ms
        )
    return found.subscriber_id


async def arrived(servers: RealServers, address: str, before: int) -> Mail:
    """The mail that came after so many."""

    async def found() -> list[bytes]:
        return servers.mails(address)[before:]

    raw = (await until(found))[0].replace(b"\n", b"\r\n")
    return read_mail("", address, raw, utf8=False)


async def status(client: httpx2.AsyncClient, subscriber_id: str) -> str:
    return str((await client.get(f"/v1/subscribers/{subscriber_id}")).json()["status"])


def write(servers: RealServers, mail: EmailMessage, recipient: str) -> None:
    """Ann's mail program sends a mail."""
    mail["From"] = f"Ann <{ANN}>"
    context = ssl.create_default_context(cafile=servers.certificate)
    with smtplib.SMTP("127.0.0.1", servers.smtp) as smtp:
        smtp.starttls(context=context)
        smtp.login(ANN, PASSWORD)
        smtp.send_message(mail, ANN, [recipient])


async def test_a_message_with_buttons_and_a_picture_arrives_and_one_post_unsubscribes(
    service: Service, tenant: Tenant, servers: RealServers, picture_url: str
) -> None:
    subscriber_id, client = await subscribe(service, tenant, ANN), tenant.client
    before = len(servers.mails(ANN))
    answer = await client.post(
        "/v1/send",
        json={
            "subscriber_id": subscriber_id,
            "text": "Заказ **7** готов",
            "format": "markdown",
            "buttons": [[{"text": "Забрать", "data": "take"}]],
            "media": {"type": "image", "url": picture_url},
        },
    )
    assert answer.status_code == 202, answer.text
    mail = await arrived(servers, ANN, before)

    assert (mail.text, mail.header("Subject")) == ("Заказ 7 готов", "Заказ 7 готов")
    [[(label, url)]] = mail.rows
    assert label == "Забрать"
    assert url.startswith(f"{BASE_URL}/b/")
    assert [(one.content, one.inline) for one in mail.attachments] == [(PNG, True)]

    link = urlsplit(mail.header("List-Unsubscribe").strip("<>"))
    answer = await client.post(link.path, data={"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200
    assert await status(client, subscriber_id) != "active"


async def test_a_mailbox_that_does_not_exist_is_refused_at_once(
    service: Service, tenant: Tenant
) -> None:
    subscriber_id = await subscribe(service, tenant, "nobody@people.example")
    await tenant.client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "News"})

    async def unsubscribed() -> bool:
        return await status(tenant.client, subscriber_id) != "active"

    await until(unsubscribed)


async def test_a_bounce_of_another_server_unsubscribes(
    service: Service, tenant: Tenant, gone_port: int
) -> None:
    subscriber_id = await subscribe(service, tenant, f"ann@{GONE}")
    elsewhere = FakeMail()
    elsewhere.port, elsewhere.needs_account = gone_port, False
    async with elsewhere:
        await tenant.client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "News"})

        async def unsubscribed() -> bool:
            return await status(tenant.client, subscriber_id) != "active"

        await until(unsubscribed)
        assert any(one.startswith("RCPT") for one in elsewhere.commands)


async def test_a_reply_becomes_a_ticket_also_after_a_restart(
    service: Service, tenant: Tenant, servers: RealServers, make_service: ServiceFactory
) -> None:
    subscriber_id, before = await subscribe(service, tenant, ANN), len(servers.mails(ANN))
    await tenant.client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "News"})
    news = await arrived(servers, ANN, before)

    def reply(text: str) -> None:
        mail = EmailMessage()
        mail["To"], mail["Subject"] = news.header("Reply-To"), "Re: News"
        mail["In-Reply-To"] = news.header("Message-ID")
        mail.set_content(f"{text}\n\nOn Friday, Shop wrote:\n> News\n")
        write(servers, mail, news.header("Reply-To"))

    async def texts(client: httpx2.AsyncClient) -> list[str]:
        tickets = (await client.get("/v1/tickets")).json()["data"]
        found = []
        for ticket in tickets:
            path = f"/v1/tickets/{ticket['ticket_id']}"
            messages = (await client.get(f"{path}/messages")).json()["data"]
            found += [one["text"] for one in messages]
        return sorted(found)

    async def heard_first() -> bool:
        return await texts(tenant.client) == ["I have a question"]

    await asyncio.to_thread(reply, "I have a question")
    await until(heard_first)
    await service.stop()
    await asyncio.to_thread(reply, "Are you there?")
    again = await start(make_service, servers, database_url=service.settings.database_url)
    headers = {"Authorization": tenant.client.headers["Authorization"]}
    transport = httpx2.ASGITransport(app=again.app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://msgsvc.test", headers=headers
    ) as client:

        async def heard_both() -> bool:
            return await texts(client) == ["Are you there?", "I have a question"]

        await until(heard_both)


def test_the_servers_log_no_complaint_about_a_message(servers: RealServers) -> None:
    assert Path(servers.certificate).is_file()
    assert "warning: malformed" not in servers.log()
    assert "improper command pipelining" not in servers.log()
