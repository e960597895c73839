"""Pages of lists of a project with very many rows, against the same of one with a thousand.

The requests go to the application in this process: what a server adds would be the same for both, and
hide what differs. Each is made in turn with its counterpart, so that both are as cold or as warm.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median

import httpx2

from msgsvc_core.api.pagination import MARK_LENGTH, after_cursor, next_cursor
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import migrate
from msgsvc_core.kernel.ids import is_id
from msgsvc_core.messages.indexing import file_all
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.services import SECRET_KEY
from tests.api.lists.asking import Asked, lists
from tests.api.lists.filling import Sizes, fill, id_of
from tests.api.lists.project import ids_of
from tests.api.resources import PLUGINS, SETTINGS
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run

#: Of what a page took with a thousand rows (the issue's figure).
MOST = Bound(most=5)

#: What it is compared with.
FEW = Sizes(messages=1000, subscribers=1000, tickets=1000, others=1000)

#: Times that each page is asked for; the median counts.
TIMES = 7


@dataclass(frozen=True, slots=True)
class Shop:
    """A project with so many rows, and a client of it."""

    service: Service
    client: httpx2.AsyncClient
    ids: Mapping[str, str]
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class Timed:
    """What a page took, in milliseconds."""

    what: str
    many_ms: float
    few_ms: float


def listing(run: Run) -> list[Finding]:
    """Every list with every filter, its first page and one from the middle."""
    found = []
    for kind in run.databases.kinds:
        urls = [run.databases.new(kind) for _ in range(2)]
        found += asyncio.run(_measure(run, kind, urls))
    return found


def sizes_of(rows: int) -> Sizes:
    """As many messages, a tenth as many people and of all else, and a hundredth as many tickets."""
    return Sizes(rows, max(rows // 10, 1000), max(rows // 100, 1000), max(rows // 10, 1000))


async def _measure(run: Run, kind: str, urls: Sequence[str]) -> list[Finding]:
    run.tell(f"filling {kind}")
    async with AsyncExitStack() as stack:
        few, many = [
            await stack.enter_async_context(_shop(url, sizes))
            for url, sizes in zip(urls, (FEW, sizes_of(run.options.rows)), strict=True)
        ]
        requests = [
            lists(shop.service.endpoints, shop.ids, shop.sizes, counted=True)
            for shop in (few, many)
        ]
        run.tell(f"lists {kind}", total=len(requests[0]))
        found = []
        for name, of_few in requests[0].items():
            timed = [
                each
                for pair in zip(of_few, requests[1][name], strict=True)
                for each in await _timed(few, many, *pair)
            ]
            worst = max(timed, key=lambda each: each.many_ms / each.few_ms)
            title = f"{name} {kind}, {worst.what}: ms / with 1,000 rows"
            found.append(Finding(title, worst.many_ms, worst.few_ms, MOST))
            run.advance(1)
    return found


async def _timed(few: Shop, many: Shop, of_few: Asked, of_many: Asked) -> list[Timed]:
    """The first page, and one from the middle where there is one."""
    pages = [(dict(of_few.query), dict(of_many.query), "first page")]
    middles = [await _middle(few, of_few), await _middle(many, of_many)]
    if all(middles):
        queries = [
            {**asked.query, "cursor": middle}
            for asked, middle in zip((of_few, of_many), middles, strict=True)
        ]
        pages.append((queries[0], queries[1], "middle"))
    found = []
    for small, large, which in pages:
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(TIMES):
            times[0].append(await _ask(few, of_few.path, small))
            times[1].append(await _ask(many, of_many.path, large))
        query = " ".join(f"{name}={value}" for name, value in of_many.query.items()) or "unfiltered"
        found.append(Timed(f"{which}, {query}", median(times[1]), median(times[0])))
    return found


async def _middle(shop: Shop, asked: Asked) -> str | None:
    """The cursor of the entry half way down a list that goes by ids; None if it has but one page."""
    answer = (await shop.client.get(asked.path, params=dict(asked.query))).json()
    cursor = answer.get("messages", answer)["next_cursor"]
    if cursor is None:
        return None
    mark, cursor = cursor[:MARK_LENGTH], cursor[MARK_LENGTH:]
    last = after_cursor(cursor) or ""
    prefix, _, number = last.partition("_")
    if not is_id(last, prefix) or not number.isdecimal():
        return None
    return mark + next_cursor(id_of(prefix, int(number) // 2))


async def _ask(shop: Shop, path: str, query: Mapping[str, str]) -> float:
    started_s = time.perf_counter()
    answer = await shop.client.get(path, params=query)
    taken_ms = (time.perf_counter() - started_s) * 1000
    if answer.status_code != 200:
        raise BenchError(f"{path} {dict(query)}: {answer.text}")
    return taken_ms


@asynccontextmanager
async def _shop(url: str, sizes: Sizes) -> AsyncIterator[Shop]:
    service = Service(
        Settings.model_validate(_settings(url)),
        # The time at which the rows are from.
        clock=FakeClock(),
        extra_plugins=[("recording", RecordingPlugin())],
    )
    await migrate(url, service.migrations)
    await service.start()
    project = await service.projects.create("Shop")
    _, secret = await service.projects.create_key(project.project_id, "bench")
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {secret}"},
        timeout=None,
    )
    try:
        ids = await ids_of(client)
        async with service.db.transaction() as tx:
            await fill(tx, project.project_id, ids, sizes)
        await settle(service)
        yield Shop(service, client, {**ids, "ticket_id": "1"}, sizes)
    finally:
        await client.aclose()
        await service.stop()


async def settle(service: Service) -> None:
    """Does what is done by itself within a minute: PostgreSQL gathers statistics, and on SQLite messages
    are entered into their index by subscriber."""
    await file_all(service.db)
    async with service.db.transaction() as tx:
        if tx.dialect == "postgresql":
            await tx.execute("ANALYZE")


def _settings(url: str) -> Mapping[str, object]:
    channels: Sequence[str] = ("messenger_a", "messenger_b")
    return {
        "database_url": url,
        "secret_keys": (SECRET_KEY,),
        "plugins": PLUGINS,
        "channels": {name: {"plugin": "recording"} for name in channels},
        "jobs": {"runner": "none"},
        "limits": {"requests_per_minute": 1_000_000},
        "webhooks": SETTINGS["webhooks"],
    }
