"""A message's file for many recipients: downloaded once, and encoded beside the event loop."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from io import BytesIO
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from msgsvc_core.channels import Media, MediaFile, OutgoingMessage
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.email import FakeMail
from msgsvc_devkit.web_servers import stop
from msgsvc_email.channel import EmailChannel
from msgsvc_email.dkim import Signer
from msgsvc_email.encoded_files import encoded
from msgsvc_email.message import Addresses, composed
from msgsvc_email.settings import EmailSettings

from .conftest import ChannelFactory, failure_of

LARGE = b"%PDF-1.7 " + bytes(range(256)) * 38_000


@dataclass
class Host:
    """A host of files; `answers` counts what it was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def media(self, name: str, content: bytes) -> Media:
        self.files[name] = content
        return Media("document", f"{self.url}/{name}")

    async def give(self, request: web.Request) -> web.Response:
        self.answers.append(request.match_info["name"])
        return web.Response(body=self.files[self.answers[-1]], content_type="application/pdf")


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host, app = Host(), web.Application()
    app.add_routes([web.get("/{name}", host.give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host.url = f"http://127.0.0.1:{site.port}"
    yield host
    await stop(runner)


async def test_a_file_for_many_is_downloaded_once(
    channel: EmailChannel, platform: FakeMail, host: Host
) -> None:
    bill = host.media("bill.pdf", b"%PDF-1.7 " + b"\n.\n" * 50)
    people = [platform.person(f"Person{number}") for number in range(5)]
    message = OutgoingMessage("Look", media=bill)
    await asyncio.gather(*(channel.send(one.address, message.with_key(one.name)) for one in people))

    assert host.answers == ["bill.pdf"]
    for person in people:
        [file] = person.messages[-1].attachments
        assert file.content == host.files["bill.pdf"]


async def test_files_of_one_person_each_are_not_kept_without_bound(
    channel: EmailChannel, platform: FakeMail, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_email.encoded_files.MAX_KEPT_BYTES", 3_000)
    ann = platform.person("Ann")
    names = [f"{number}.pdf" for number in range(5)]
    for name in [*names, names[0], names[0]]:
        media = host.media(name, b"%PDF-1.7 " + b"a" * 1_000)
        await channel.send(ann.address, OutgoingMessage("Look", media=media).with_key(name))

    assert host.answers == [*names, names[0]]


async def test_a_file_that_could_not_be_loaded_is_asked_for_again(
    make_channel: ChannelFactory, platform: FakeMail, host: Host
) -> None:
    channel = await make_channel(max_attachment_bytes=100)
    ann = platform.person("Ann")
    message = OutgoingMessage("Look", media=host.media("bill.pdf", b"%PDF-1.7 " + b"a" * 100))
    await failure_of(channel.send(ann.address, message.with_key("1")))
    host.media("bill.pdf", b"%PDF-1.7")
    await channel.send(ann.address, message.with_key("2"))

    assert host.answers == ["bill.pdf", "bill.pdf"]


async def test_a_mail_with_a_file_is_composed_beside_the_event_loop(
    channel: EmailChannel, platform: FakeMail, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def observed(*args: Any, **options: Any) -> bytes:
        threads.append(threading.get_ident())
        return composed(*args, **options)

    monkeypatch.setattr("msgsvc_email.channel.composed", observed)
    ann = platform.person("Ann")
    bill = host.media("bill.pdf", b"%PDF-1.7")
    await channel.send(ann.address, OutgoingMessage("Look", media=bill).with_key("1"))

    assert len(ann.messages) == len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_large_file_takes_a_recipient_little_of_the_processor() -> None:
    settings = EmailSettings(host="mx.shop.example", sender="news@shop.example")
    media = Media("document", "https://shop.example/large.pdf")
    with BytesIO(LARGE) as content:
        file = encoded(MediaFile(content, "large.pdf", "application/pdf", len(LARGE)))
    signer = Signer(Ed25519PrivateKey.generate(), "shop.example", "s1")
    began = time.process_time()
    mail = composed(
        OutgoingMessage("Look", media=media),
        Addresses("ann@people.example", None, "1@shop.example"),
        settings,
        at=datetime(2026, 11, 29, tzinfo=UTC),
        footer=None,
        file=file,
    )
    signed = signer.signed(mail, 0)
    took_s = time.process_time() - began

    read = message_from_bytes(signed, policy=policy.default)
    assert isinstance(read, EmailMessage)
    [attached] = read.iter_attachments()
    assert attached.get_content() == LARGE
    assert took_s < patient(0.2), (
        "the library alone takes 0.4 s, and its lines took a signature as much"
    )
