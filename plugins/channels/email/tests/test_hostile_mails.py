"""Mails that anybody can send to stop a service: it answers all the while, and reads the mail behind them."""

import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.email import FakeMail
from msgsvc_email import plugin
from msgsvc_helpdesk import plugin as helpdesk

pytestmark = pytest.mark.both_databases

HEAD = (
    b"Authentication-Results: mx.shop.example; dmarc=pass header.from=people.example\r\n"
    b"From: ann@people.example\r\nTo: news@shop.example\r\nSubject: Re: x\r\n"
)


def nested(depth: int) -> bytes:
    opened = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (one, one)
        for one in range(depth)
    )
    return HEAD + opened + b"\r\nHello"


#: Mails which took a process from 2 s to minutes, or for ever.
HOSTILE = {
    "lines": HEAD + b"\r\n" + b"ok\n" * 60_000,
    "blank lines": HEAD + b"\r\n" + b"\n" * 160_000,
    "quoted lines": HEAD + b"\r\n" + b"> a\nb\n" * 30_000,
    "angle brackets": HEAD + b"Content-Type: text/html\r\n\r\n" + b"<" * 200_000,
    "heads": HEAD + b"Content-Type: text/html\r\n\r\n" + b"<head " * 30_000,
    "divisions": HEAD + b"Content-Type: text/html\r\n\r\n" + b"<div " * 30_000,
    "quotations": HEAD + b"Content-Type: text/html\r\n\r\n" + b"<blockquote>" * 15_000,
    "brackets in results": b"Authentication-Results: mx.shop.example; "
    + b"(" * 160_000
    + b"\r\n"
    + HEAD
    + b"\r\nHello",
    "brackets in From": b"From: " + b"(" * 160_000 + b"\r\n\r\nHello",
    "parameters": HEAD + b"Content-Type: text/plain" + b"; a*0*=%ff" * 16_000 + b"\r\n\r\nHello",
    "parts in parts": nested(2_000),
    "many parts": HEAD
    + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    + b"--b\r\n\r\nx\r\n" * 15_000,
    "a long subject": HEAD.replace(b"Re: x", b"=?utf-8?q?=41?= " * 10_000) + b"\r\nHello",
    "introductions": HEAD + b"\r\nHello\n" + b"On 27.11.2026 10:00 wrote:\n" * 6_000,
    "fields": HEAD + b"\r\nHello\n" + b"From: a\nTo: b\n" * 10_000,
    "references": HEAD + b"References: " + b"<a@b.example> " * 10_000 + b"\r\n\r\nHello",
}


@pytest.fixture
async def platform() -> AsyncIterator[FakeMail]:
    async with FakeMail() as platform:
        yield platform


@pytest.fixture
async def service(make_service: ServiceFactory, platform: FakeMail) -> Service:
    return await make_service(
        extra_plugins=[("email", plugin), ("helpdesk", helpdesk)],
        use_clock=SystemClock(),
        channels={"mail": dict(platform.inbound_settings)},
    )


async def test_a_service_answers_while_it_reads_mails_that_are_meant_to_stop_it(
    client: httpx2.AsyncClient, platform: FakeMail
) -> None:
    added = await client.post(
        "/v1/subscribers", json={"channel": "mail", "address": "ann@people.example"}
    )
    assert added.status_code == 201, added.text
    for number, raw in enumerate(HOSTILE.values()):
        platform.mailbox.add(b"Message-ID: <%d@people.example>\r\n" % number + raw)
    last = HEAD.replace(b"Re: x", b"The last one")
    platform.mailbox.add(b"Message-ID: <last@people.example>\r\n" + last + b"\r\nWhere is it?")
    longest_s, answered_at = 0.0, time.perf_counter()

    async def arrived() -> bool:
        nonlocal longest_s, answered_at
        answer = await client.get("/healthz")
        now = time.perf_counter()
        longest_s, answered_at = max(longest_s, now - answered_at), now
        assert answer.status_code == 200
        tickets = (await client.get("/v1/tickets")).json()["data"]
        return any(one["subject"] == "The last one" for one in tickets)

    await until(arrived)

    assert longest_s < patient(2.0)
