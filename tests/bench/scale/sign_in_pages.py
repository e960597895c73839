"""Many sign-in pages that wait, each in a browser of its own, as the hosted page's script waits.

Its long poll is made again as soon as it ends, so that idle pages are not without work.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import cast
from urllib.parse import urlsplit

from msgsvc_auth.hosted.models import Site, Ticket, Visit
from msgsvc_auth.hosted.service import browser_digest
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import MAX_WAIT_S, CreateStaticLinkBody
from msgsvc_auth.service import SignIn
from msgsvc_core.service import Service
from tests.bench.polls import allow_open_files, settled
from tests.bench.pressing import Press, p99_ms, pressed
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import ServiceUnderTest, Setup, cpu_s, started_service
from tests.bench.status import SECTIONS
from tests.process import Server

MOST_KIB, MOST_P99_MS = Bound(most=30), Bound(most=250)

#: Pages that wait before, so that what is needed once is not counted.
FIRST = 50

#: Pages that begin to wait at a time; a listener's queue is no longer than this.
AT_ONCE = 100

#: Windows (`--window`) over which CPU time is watched, until each page has asked again once.
WINDOWS = 2.5

#: Sign-ins that are opened in one transaction.
STEP = 500

SLUG = "shop"


@dataclass(frozen=True, slots=True)
class Seen:
    """KiB for each page, CPU time as a part of the clock's while all wait, and each Yes among them."""

    kib: float
    percent: float | None
    presses: Sequence[Press]


def sign_in_pages(run: Run) -> list[Finding]:
    """On the first of the databases."""
    number, kind = run.options.pages, run.databases.kinds[0]
    allow_open_files(number + FIRST + 500)
    outbox = run.new_folder() / "outbox.jsonl"
    setup = Setup(
        kind,
        channel=f'plugin = "phone"\noutbox = "{outbox}"',
        plugins=("phone", "auth"),
        sections=SECTIONS,
        server=f"max_connections = {number + 1000}",
    )
    run.tell(f"{number:,} sign-in pages, {kind}: starting the server")
    with started_service(run, setup) as service:
        requests = _begun(service, number + FIRST)
        quiet = asyncio.run(pressed(run, service, outbox, service.server.url))
        seen = asyncio.run(_measured(run, service, requests, outbox))
    name = f"{number:,} waiting sign-in pages {kind}"
    took, took_quiet = ([press.poll_ms for press in each] for each in (seen.presses, quiet))
    return [
        Finding(f"{name}: KiB each", seen.kib, bound=MOST_KIB, alone=True),
        Finding(f"{name}: % of a core", seen.percent, alone=True),
        Finding(f"a Yes among {name}: ms / without them", median(took), median(took_quiet)),
        Finding(
            f"a Yes among {name}: p99 ms / without them",
            p99_ms(took),
            p99_ms(took_quiet),
            MOST_P99_MS,
            alone=True,
        ),
    ]


def _begun(service: ServiceUnderTest, number: int) -> Sequence[bytes]:
    """The request for the status of a sign-in of its own, as the script of each page makes it."""
    host = urlsplit(service.server.url).netloc

    async def begin(opened: Service) -> Sequence[bytes]:
        sign_in, requests = opened.get(SignIn), list[bytes]()
        body = CreateStaticLinkBody(
            slug=SLUG, name="Shop", callback_url="https://shop.example/back"
        )
        async with opened.db.transaction() as tx:
            link = await opened.get(StaticLinks).create(tx, service.project_id, body)
            project = await opened.projects.get(tx, service.project_id)
        site = Site(link, project)
        for start in range(0, number, STEP):
            async with opened.db.transaction() as tx:
                for place in range(start, min(number, start + STEP)):
                    visit, secret = Visit(f"visit-{place}", "en"), Ticket.new_secret()
                    new = await sign_in.open_by_link(
                        tx, link, state=visit.state, browser_digest=browser_digest(site, secret)
                    )
                    ticket, key = Ticket(secret, new.token), visit.key(site)
                    requests.append(
                        f"GET /login/{SLUG}/status?key={key}&page={ticket.page}&wait={MAX_WAIT_S}"
                        f" HTTP/1.1\r\nHost: {host}\r\n"
                        f"Cookie: msgsvc-login-{key}={ticket}\r\n\r\n".encode()
                    )
        return requests

    return service.use(begin)


async def _measured(
    run: Run, service: ServiceUnderTest, requests: Sequence[bytes], outbox: Path
) -> Seen:
    number = len(requests) - FIRST
    run.tell("sign-in pages: the first", total=number)
    pages = await _open(run, service.server, requests[:FIRST])
    before_mib = await settled(service.server)
    run.tell("sign-in pages: opening them")
    pages += await _open(run, service.server, requests[FIRST:])
    run.tell("sign-in pages: all wait")
    after_mib = await settled(service.server)
    percent = await _percent(service.server, min(MAX_WAIT_S, WINDOWS * run.options.window))
    presses = await pressed(run, service, outbox, service.server.url)
    wrong = [page for page in pages if page.wrong]
    for page in pages:
        page.close()
    if wrong:
        raise BenchError(f"{len(wrong)} pages wait no more; one was told {wrong[0].wrong!r}")
    return Seen((after_mib - before_mib) * 1024 / number, percent, presses)


class _Page(asyncio.Protocol):
    """One connection, which asks again whenever it is told to go on waiting."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = b""
        self._is_closed = False
        #: Why it does not wait any more.
        self.wrong = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Kept, for a transport that nobody holds is closed.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._received.endswith(b"}"):
            return
        if b'"pending"' in self._received:
            self._received = b""
            self._transport.write(self._request)
        else:
            self.wrong = self._received

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_closed:
            self.wrong = self.wrong or b"its connection was closed"

    def close(self) -> None:
        self._is_closed = True
        self._transport.abort()


async def _open(run: Run, server: Server, requests: Sequence[bytes]) -> list[_Page]:
    parts = urlsplit(server.url)
    # Both come from `listens on`.
    assert parts.hostname
    assert parts.port
    loop = asyncio.get_running_loop()
    pages = [_Page(request) for request in requests]
    waiting = iter(pages)
    for start in range(0, len(pages), AT_ONCE):
        count = min(AT_ONCE, len(pages) - start)
        connecting = (
            loop.create_connection(lambda: next(waiting), parts.hostname, parts.port)
            for _ in range(count)
        )
        await asyncio.gather(*connecting)
        run.advance(count)
    return pages


async def _percent(server: Server, watch_s: float) -> float | None:
    """CPU time as a part of the clock's."""
    began_s, before_s = time.monotonic(), cpu_s(server)
    await asyncio.sleep(watch_s)
    after_s, passed_s = cpu_s(server), time.monotonic() - began_s
    return None if before_s is None or after_s is None else (after_s - before_s) / passed_s * 100
