"""What a message costs PostgreSQL: round trips, statements, bytes, WAL, dead tuples and transactions.

For single messages, from `POST /v1/send` to the recorded outcome, and for those of a broadcast, from its
request to its end. The service reaches the server through a proxy that counts (`postgres_proxy`); everything
else is asked of the server itself, by another way. WAL is written for all databases of a server together, so
nobody else may write to it meanwhile.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx2

from msgsvc_devkit.databases import postgres_url
from tests.bench import fake_platform, postgres_proxy
from tests.bench.audience import add_audience
from tests.bench.load import put_load
from tests.bench.postgres_proxy import Counts
from tests.bench.report import Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import TEXT, ServiceUnderTest, Setup, started, started_service
from tests.process import Server

#: Seconds after which an idle server process has reported its statistics (PGSTAT_IDLE_INTERVAL, 10 s).
REPORTED_S = 11.0

#: Seconds between two looks whether all is done, and until that is called an error.
LOOK_S, MOST_S = 0.2, 300.0

#: People of the broadcast that comes before the measured one: connections and their statements are prepared.
WARM_UP = 1000

#: How many of the most frequent statements `--statements` shows, and characters of each.
SHOWN, SHOWN_CHARACTERS = 40, 160

_TUPLES = """
SELECT COALESCE(SUM(n_tup_upd + n_tup_del), 0)::bigint AS dead,
       COALESCE(SUM(n_tup_hot_upd), 0)::bigint AS hot FROM pg_stat_user_tables
"""
_COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
_OTHERS = """
SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_LEFT = """
SELECT EXISTS (SELECT 1 FROM core_jobs WHERE lane LIKE 'channel:%' AND state <> 'dead')
    OR EXISTS (SELECT 1 FROM core_mailings WHERE finished_at_ms IS NULL)
"""
_SENT = "SELECT COUNT(*) FROM core_messages WHERE status = 'sent'"


@dataclass(frozen=True, slots=True)
class _Totals:
    """Of the server, since it began to count. `images` are full pages in the WAL."""

    wal_bytes: int
    images: int
    dead: int
    hot: int
    commits: int


def postgres(run: Run) -> list[Finding]:
    """On PostgreSQL alone; nothing where it is not measured."""
    if "postgresql" not in run.databases.kinds:
        return []
    found: list[Finding] = []
    run.tell("postgres", total=2)
    with started(run, fake_platform) as platform:
        setup = Setup(
            "postgresql",
            channel=f'plugin = "courier"\nurl = "{platform.url}"',
            plugins=("courier", "broadcasts"),
        )
        for name, send in (("deliver", _send_singly), ("broadcast", _broadcast)):
            run.tell(f"postgres: {name}")
            found += _measured(run, setup, name, send)
            run.advance(1)
    return found


def _measured(
    run: Run, setup: Setup, name: str, send: Callable[[Run, ServiceUnderTest, int], None]
) -> list[Finding]:
    """`send` has the service send messages: about so many for the warm-up, and 0 for the real thing."""
    urls: list[str] = []

    def route(url: str) -> str:
        urls.append(url)
        return _by_way_of(proxy, url)

    with started(run, postgres_proxy, postgres_url()) as proxy:
        with started_service(run, setup, route) as service:
            [url] = urls
            if run.options.warm_up:
                send(run, service, WARM_UP)
                _until_done(url)
                time.sleep(REPORTED_S)
            before_sent = _ask(url, _SENT)
            before, counted = asyncio.run(_totals(url, checkpoint=True)), _counts(proxy)
            send(run, service, 0)
            _until_done(url)
            counts = _counts(proxy).since(counted)
            wal = asyncio.run(_totals(url, checkpoint=False))
        # Its connections are gone, and with that their statistics reported.
        _until(lambda: not _ask(url, _OTHERS), "the service's connections are left")
        after = asyncio.run(_totals(url, checkpoint=False))
        messages = _ask(url, _SENT) - before_sent
    if not messages:
        raise BenchError(f"{name}: nothing was sent")
    if run.options.statements:
        _show(run, name, counts, messages)
    dead, hot = after.dead - before.dead, after.hot - before.hot
    figures = {
        "round trips for 1,000": counts.round_trips * 1000,
        "statements for 1,000": counts.executed * 1000,
        "transactions for 1,000": (after.commits - before.commits) * 1000,
        "bytes to PostgreSQL each": counts.bytes_sent,
        "bytes from PostgreSQL each": counts.bytes_received,
        "WAL bytes each": wal.wal_bytes - before.wal_bytes,
        "full pages in the WAL for 1,000": (wal.images - before.images) * 1000,
        "dead tuples for 1,000": dead * 1000,
        "dead tuples for 1,000, only VACUUM removes them": (dead - hot) * 1000,
    }
    return [
        Finding(f"{name} postgresql: {what}", figure / messages, alone=True)
        for what, figure in figures.items()
    ]


def _send_singly(run: Run, service: ServiceUnderTest, at_least: int) -> None:
    seconds = 1 if at_least else run.options.seconds
    load = put_load(
        service.sends,
        connections=run.options.connections,
        seconds=seconds,
        tick=lambda _passed_s: None,
    )
    if load.failed:
        raise BenchError(f"{load.failed} of {load.requests} requests failed")


def _broadcast(run: Run, service: ServiceUnderTest, count: int) -> None:
    count = count or run.options.messages
    tag = service.use(lambda opened: add_audience(opened, service.project_id, count))
    answer = httpx2.post(
        f"{service.server.url}/v1/broadcast",
        json={"audience": {"tags_any": [tag]}, "text": TEXT},
        headers={"Authorization": f"Bearer {service.sends.api_key}"},
    )
    if answer.status_code != 202:
        raise BenchError(f"broadcast: {answer.status_code} {answer.text}")


def _by_way_of(proxy: Server, url: str) -> str:
    """The URL of the same database, through the proxy."""
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}{urlsplit(proxy.url).netloc}"))


def _counts(proxy: Server) -> Counts:
    return Counts.of(httpx2.get(f"{proxy.url}/counts").text)


def _until_done(url: str) -> None:
    """Returns when no message is left that was accepted, and no broadcast."""
    _until(lambda: not _ask(url, _LEFT), "messages are left")


def _until(done: Callable[[], bool], otherwise: str) -> None:
    ends_s = time.monotonic() + MOST_S
    while not done():
        if time.monotonic() > ends_s:
            raise BenchError(f"{otherwise} after {MOST_S:g} s")
        time.sleep(LOOK_S)


def _ask(url: str, query: str) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return asyncio.run(ask())


async def _totals(url: str, *, checkpoint: bool) -> _Totals:
    connection = await asyncpg.connect(url)
    try:
        if checkpoint:
            # The first change of a page after it writes the whole page: so it is the same for every run.
            with suppress(asyncpg.InsufficientPrivilegeError):
                await connection.execute("CHECKPOINT")
        wal_bytes = await connection.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'")
        images = await connection.fetchval("SELECT wal_fpi FROM pg_stat_wal")
        tuples = await connection.fetchrow(_TUPLES)
        commits = await connection.fetchval(_COMMITS)
    finally:
        await connection.close()
    assert tuples is not None, "an aggregate has one row"
    return _Totals(int(wal_bytes), int(images), tuples["dead"], tuples["hot"], commits)


def _show(run: Run, name: str, counts: Counts, messages: int) -> None:
    console = run.progress.console
    console.print(f"{name}: {messages:,} messages; executed for each thousand of them")
    for text, count in counts.statements.most_common(SHOWN):
        line = " ".join(text.split())[:SHOWN_CHARACTERS]
        console.print(f"{count * 1000 / messages:9.1f}  {line}", markup=False, highlight=False)
