"""Several processes on one PostgreSQL answer `/healthz` while people send what once stopped them all.

Each attack once took a process many seconds, most without an account; see decision 0163 for the figures.
"""

import asyncio
import io
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.email import FakeMail
from msgsvc_devkit.platforms.email.server import AUTHSERV_ID, DOMAIN
from tests.faults.conftest import Figure, Rounds
from tests.faults.sign_in_desk import Desk, open_desk

pytestmark = pytest.mark.faults

PROCESSES = 2

#: Seconds between two looks at whether a process answers, and within which it has to. Unbounded, the
#: attacks took 8 to 80 s each.
LOOK_S, ANSWERS_WITHIN_S = 0.1, patient(3.0)

#: Seconds that an attack gets until it is answered, whatever the answer.
PATIENCE_S = patient(60.0)

_CSRF = re.compile(r'name="_csrf" value="([^"]+)"')

FORM = "application/x-www-form-urlencoded"


@dataclass
class Watch:
    """How long each process took to answer at worst, by its address, and where it did not."""

    slowest_s: dict[str, float] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)

    async def look(self, url: str) -> None:
        """Asks again and again, until cancelled. By new connections, as a balancer's check."""
        timeout = aiohttp.ClientTimeout(total=ANSWERS_WITHIN_S)
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            while True:
                began = time.monotonic()
                try:
                    async with session.get(f"{url}/healthz") as answer:
                        if answer.status != 200:
                            self.unanswered.append(f"{url}: {answer.status}")
                except (aiohttp.ClientError, TimeoutError) as error:
                    self.unanswered.append(f"{url}: {error!r}")
                seconds = time.monotonic() - began
                self.slowest_s[url] = max(self.slowest_s.get(url, 0.0), seconds)
                await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def watching(urls: Sequence[str]) -> AsyncIterator[Watch]:
    watch = Watch()
    looks = [asyncio.create_task(watch.look(url)) for url in urls]
    try:
        yield watch
    finally:
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)


@dataclass(frozen=True)
class Attacker:
    """Somebody who sends to one process."""

    session: aiohttp.ClientSession
    url: str
    key: str

    async def post(self, path: str, body: bytes, content_type: str, **headers: str) -> int:
        """The status of the answer. One that is cut off is an answer, too."""
        given = {"Content-Type": content_type, **headers}
        try:
            async with self.session.post(
                self.url + path, data=io.BytesIO(body), headers=given
            ) as answer:
                await answer.read()
                return answer.status
        except aiohttp.ClientConnectionError:
            return 0

    async def call(self, path: str, body: Mapping[str, Any]) -> int:
        """A call of the API."""
        raw = json.dumps(body).encode()
        return await self.post(path, raw, "application/json", Authorization=f"Bearer {self.key}")

    async def get(self, path: str, **headers: str) -> int:
        async with self.session.get(self.url + path, headers=headers) as answer:
            await answer.read()
            return answer.status


async def combining_marks_at_sign_in(one: Attacker) -> None:
    """128,000 of them: 17 s."""
    async with one.session.get(f"{one.url}/dashboard/sign-in") as page:
        csrf = _CSRF.findall(await page.text())[0]
    marks = "%CC%81" * 128_000
    for body in (
        f"_csrf={csrf}&email={marks}&password=a",
        f"_csrf={csrf}&email=a@a.example&password={marks}",
    ):
        await one.post("/dashboard/sign-in", body.encode(), FORM)


async def templates_of_placeholders(one: Attacker) -> None:
    """A text of 16,000 characters: 77 s."""
    for size in (4_000, 16_000, 64_000):
        text = "zq" + "q" * (size // 2) + "{{a}}" * (size // 10)
        for text_format in ("rich", "markdown", "html", "plain"):
            body = {"key": "bomb", "text": text, "format": text_format}
            assert await one.call("/v1/templates", body) < 500


async def odd_forms(one: Attacker) -> None:
    """Multipart bodies that are none: a 500."""
    declared = "multipart/form-data; boundary=b"
    part = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n"
    bodies = [
        b"--b\r\n" + b"A: b\r\n" * 100_000,
        part * 15_000,
        part + b"\r\n--" * 200_000,
        b"--b--",
        b"-",
    ]
    for path in (
        "/preferences/x",
        "/b/x/1",
        "/code/x",
        "/login/x",
        "/f/frm_x",
        "/dashboard/sign-in",
    ):
        for body in bodies:
            status = await one.post(path, body, declared)
            assert status < 500, (path, body[:40], status)
        charset = f"{declared}; charset=punycode"
        assert await one.post(path, part + b"a-" * 100_000, charset) < 500


async def languages_without_end(one: Attacker) -> None:
    """Headers of 30 KB: 0.1 s each, and none needs an account."""
    for liked in ("-" * 30_000, "a," * 15_000, "-," * 15_000):
        for _ in range(20):
            await one.get("/dashboard/sign-in", **{"Accept-Language": liked})
    await one.get(f"/dashboard/sign-in?lang={'-' * 30_000}")


async def bodies_of_values(one: Attacker) -> None:
    """A megabyte of small values of JSON: 0.13 s each."""
    for unit in (b"{},", b"0,", b'{"a":0},', b"[[]],"):
        body = b"[" + unit * (1_000_000 // len(unit)) + b"0]"
        for _ in range(5):
            key = {"Authorization": f"Bearer {one.key}"}
            assert await one.post("/v1/send", body, "application/json", **key) == 400


async def tables_of_one_line(one: Attacker) -> None:
    """Nine megabytes of separators: 0.13 s in which no other thread had the interpreter."""
    for unit in (b",", b'"",', b"\n", b'"\n",', b"a"):
        content = b"address\n" + unit * (9_000_000 // len(unit))
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        body = head + content + b"\r\n--b--\r\n"
        key = {"Authorization": f"Bearer {one.key}"}
        declared = "multipart/form-data; boundary=b"
        assert await one.post("/v1/people/imports", body, declared, **key) < 500


Attack = Callable[[Attacker], Awaitable[None]]

ATTACKS: Sequence[Attack] = (
    combining_marks_at_sign_in,
    templates_of_placeholders,
    odd_forms,
    languages_without_end,
    bodies_of_values,
    tables_of_one_line,
)


def hostile_mails() -> list[bytes]:
    """Each took seconds to a minute: blank lines, what begins tags, nested comments, parameters in parts."""
    passed = f"Authentication-Results: {AUTHSERV_ID}; dmarc=pass header.from=people.example\r\n"
    fields = f"From: ann@people.example\r\nTo: news@{DOMAIN}\r\nMessage-ID: <1@people.example>\r\n"
    head = f"{passed}{fields}".encode()
    size = 160_000
    mails = [
        head + b"\r\n" + unit * (size // len(unit))
        for unit in (b"\r\n", b"ok\r\n", b"> ", b"\xcc\x81")
    ]
    html = head + b"Content-Type: text/html; charset=utf-8\r\n\r\n"
    mails += [
        html + unit * (size // len(unit))
        for unit in (b"<", b"<head ", b"<div ", b"<!--", b"&#", b"&amp;")
    ]
    results = f"Authentication-Results: {AUTHSERV_ID}; ".encode()
    mails += [
        results + unit * (60_000 // len(unit)) + b"\r\n" + head + b"\r\nHi"
        for unit in (b"(", b"\\(", b";")
    ]
    parameters = b"".join(b"; a*%d*=x" % number for number in range(4_000))
    mails.append(head + b"Content-Type: text/plain" + parameters + b"\r\n\r\nHi")
    nested = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n)
        for n in range(2_000)
    )
    mails.append(head + nested)
    mails.append(b"From: " + b"a@" * 40_000 + b"\r\n" + head + b"\r\nHi")
    return mails


@pytest.fixture
async def mail() -> AsyncIterator[FakeMail]:
    async with FakeMail() as server:
        yield server


def sections(mail: FakeMail) -> str:
    inbound = dict(mail.inbound_settings)
    imap = inbound.pop("imap")
    lines = [
        "",
        "[channels.mail]",
        *(f"{name} = {json.dumps(value)}" for name, value in inbound.items()),
    ]
    lines += [
        "[channels.mail.imap]",
        *(f"{name} = {json.dumps(value)}" for name, value in imap.items()),
    ]
    return "\n".join([*lines, ""])


PLUGINS = ("auth", "otp", "forms", "helpdesk", "dashboard", "email")


async def attack(desk: Desk, attacks: Sequence[Attack]) -> Watch:
    """Each on all processes at once, one attack after the other."""
    urls = [server.url for server in desk.servers]
    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with watching(urls) as watch:
        for each in attacks:
            sessions = [aiohttp.ClientSession(timeout=timeout) for _ in urls]
            attackers = [
                Attacker(session, url, desk.key)
                for session, url in zip(sessions, urls, strict=True)
            ]
            try:
                await asyncio.gather(*(each(one) for one in attackers))
            finally:
                await asyncio.gather(*(session.close() for session in sessions))
        # What they left to do in the background.
        await asyncio.sleep(3 * LOOK_S)
    return watch


async def test_every_process_answers_whatever_strangers_send(
    tmp_path: Path,
    databases: Mapping[str, Any],
    mail: FakeMail,
    rounds: Rounds,
    figure: Figure,
) -> None:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    backend: PostgresDatabases = databases["postgresql"]
    url = await backend.empty()
    async with open_desk(tmp_path, url, PLUGINS, sections(mail)) as desk:
        desk.start(rounds(short=PROCESSES, long=3))
        watch = await attack(desk, ATTACKS)

    await backend.give_back(url)
    slowest_s = max(watch.slowest_s.values())
    figure(
        f"{len(ATTACKS)} attacks by requests on {len(watch.slowest_s)} processes",
        f"/healthz answers within {slowest_s:.2f} s, {len(watch.unanswered)} times not",
        slowest_s=slowest_s,
        unanswered=len(watch.unanswered),
    )
    assert watch.unanswered == []


async def test_every_process_answers_whatever_mails_come(
    tmp_path: Path,
    databases: Mapping[str, Any],
    mail: FakeMail,
    figure: Figure,
) -> None:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    backend: PostgresDatabases = databases["postgresql"]
    url = await backend.empty()
    async with open_desk(tmp_path, url, PLUGINS, sections(mail)) as desk:
        desk.start(PROCESSES)
        mails = hostile_mails()

        async def is_read() -> bool:
            rows = await desk.query("SELECT cursor FROM core_bots WHERE channel = 'mail'")
            return bool(rows) and str(last) in (rows[0]["cursor"] or "")

        async with watching([server.url for server in desk.servers]) as watch:
            # The others come while the first is read.
            last = [mail.mailbox.add(raw) for raw in mails][-1]
            await until(is_read, timeout_s=60.0)

    await backend.give_back(url)
    slowest_s = max(watch.slowest_s.values())
    figure(
        f"{len(mails)} hostile mails to {len(watch.slowest_s)} processes",
        f"all are read; /healthz answers within {slowest_s:.2f} s, {len(watch.unanswered)} times not",
        slowest_s=slowest_s,
        unanswered=len(watch.unanswered),
    )
    assert watch.unanswered == []
