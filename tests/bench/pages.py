"""Pages of the dashboard that show lists, in a project with very many rows and in one with a thousand.

As `tests.bench.lists` does it for the API: in this process, each page in turn with its counterpart.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median
from urllib.parse import parse_qsl

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import migrate
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import tenant_of
from msgsvc_devkit.services import SECRET_KEY
from tests.api.lists.filling import Sizes, fill, id_of
from tests.api.lists.project import ids_of
from tests.api.resources import MiniAppPlugin
from tests.bench.lists import FEW, MOST, Timed, settle, sizes_of
from tests.bench.report import Finding
from tests.bench.run import BenchError, Run
from tests.dashboard.list_filling import fill_pages
from tests.dashboard.listing import UNSET, Offered, is_list, older
from tests.dashboard.walking import SETTINGS, Walk, at, pages_of


@dataclass(frozen=True, slots=True)
class Shop:
    """A project with so many rows, and who looks at it."""

    service: Service
    owner: Visitor
    operator: Visitor
    ids: Mapping[str, str]


def paging(run: Run) -> list[Finding]:
    """Every list page with every filter that it offers, and the page after the first."""
    found = []
    for kind in run.databases.kinds:
        urls = [run.databases.new(kind) for _ in range(2)]
        found += asyncio.run(_measure(run, kind, urls))
    return found


async def _measure(run: Run, kind: str, urls: Sequence[str]) -> list[Finding]:
    run.tell(f"filling {kind} for pages")
    async with AsyncExitStack() as stack:
        few, many = [
            await stack.enter_async_context(shop_of(url, sizes))
            for url, sizes in zip(urls, (FEW, sizes_of(run.options.rows)), strict=True)
        ]
        lists = [page for page in pages_of(few.service) if is_list(page)]
        run.tell(f"pages {kind}", total=len(lists))
        found = []
        for page in lists:
            walks = [at(page, shop.owner.project_id, shop.ids) for shop in (few, many)]
            timed = await _timed(few, many, *walks, times=run.options.rounds)
            worst = max(timed, key=lambda each: each.many_ms / each.few_ms)
            owner = {"installation:operate": "operator", "account:self": "account"}.get(
                page.access, page.area
            )
            where = f"{owner} {page.path or '/'} {kind}, {worst.what or 'unfiltered'}"
            title = f"{where}: ms / with 1,000 rows"
            found.append(Finding(title, worst.many_ms, worst.few_ms, MOST))
            run.advance(1)
    return found


async def _timed(few: Shop, many: Shop, of_few: Walk, of_many: Walk, *, times: int) -> list[Timed]:
    """As it is opened, with each filter, and the further page of the larger project: the medians."""
    found, seen = [], set[str]()
    waiting = ["", UNSET.get(of_few.page.name, "")]
    while waiting:
        query = waiting.pop(0)
        if query in seen:
            continue
        seen.add(query)
        html = await _page(many, of_many, query)
        offered = Offered(html, of_many.page.name, of_many.url)
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(times):
            taken[0].append(await ask(few, of_few, query))
            taken[1].append(await ask(many, of_many, query))
        found.append(Timed(query, median(taken[1]), median(taken[0])))
        if query in {"", UNSET.get(of_few.page.name)}:
            waiting += [one for one in offered.queries if "cursor" not in one]
            # A cursor names a place, which the small project has as well as the large one.
            waiting += [*older(offered.queries)][:1]
    return found


async def _page(shop: Shop, walk: Walk, query: str) -> str:
    who = shop.operator if walk.page.access == "installation:operate" else shop.owner
    answer = await who.client.get(walk.url, params=parse_qsl(query), timeout=None)
    if answer.status_code not in {200, 303, 404}:
        raise BenchError(f"{walk} ?{query} answers {answer.status_code}")
    return answer.text


async def ask(shop: Shop, walk: Walk, query: str) -> float:
    """Milliseconds that a page takes."""
    started_s = time.perf_counter()
    await _page(shop, walk, query)
    return (time.perf_counter() - started_s) * 1000


@asynccontextmanager
async def shop_of(url: str, sizes: Sizes) -> AsyncIterator[Shop]:
    """A service with such a project, which it fills; nothing runs in it."""
    values = {
        **SETTINGS,
        "database_url": url,
        "secret_keys": (SECRET_KEY,),
        "jobs": {"runner": "none"},
        "limits": {"requests_per_minute": 1_000_000},
    }
    service = Service(
        Settings.model_validate(values),
        # The time at which the rows are from.
        clock=FakeClock(),
        extra_plugins=[("recording", RecordingPlugin()), ("mini_app", MiniAppPlugin())],
    )
    await migrate(url, service.migrations)
    await service.start()
    tenant = await tenant_of(service, "Shop")
    project_id = tenant.project.project_id
    owner = await visitor(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    try:
        ids = await ids_of(tenant.client)
        async with service.db.transaction() as tx:
            await fill(tx, project_id, ids, sizes)
            await fill_pages(tx, project_id, owner.account_id, sizes.others)
        await settle(service)
        one = {"ticket_id": "1", "account_id": owner.account_id, "member_id": id_of("mem", 1)}
        by_prefix = {"waiting_job_id": "job", "client_id": "app", "subscriber_id": "sub"}
        firsts = {name: id_of(prefix, 1) for name, prefix in by_prefix.items()}
        all_ids = {**ids, **one, **firsts}
        yield Shop(service, owner, operator, all_ids)
    finally:
        for client in (tenant.client, owner.client, operator.client):
            await client.aclose()
        await service.stop()
