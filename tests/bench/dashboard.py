"""Every page of the dashboard as it is opened, in a project with very many rows and in one with a thousand.

The overview with each of its periods, the search, and all that areas have; as `tests.bench.pages` asks for
lists: in this process, each page in turn with its counterpart. The least time of each counts: it is what the
page takes, while the others tell of what else the machine was doing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from msgsvc_core.dashboard import Page
from tests.bench.lists import FEW, sizes_of
from tests.bench.pages import Shop, ask, shop_of
from tests.bench.report import Bound, Finding
from tests.bench.run import Run
from tests.dashboard.listing import FILES, OF_ONE_THING, WRITTEN
from tests.dashboard.walking import Walk, at, pages_of, parameters

#: Of what a page took with a thousand rows, and milliseconds (the issue's figures).
MOST, MOST_MS = Bound(most=2.2), Bound(most=100)

#: How pages are opened that are asked for something: by name, beside plainly.
ASKED = {
    "overview.overview": ["days=1", "days=7", "days=90"],
    "search.search": [f"q={text}" for text in WRITTEN["search.search q"]],
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A page with a question, and what it took in milliseconds."""

    name: str
    many_ms: float
    few_ms: float


def dashboard(run: Run) -> list[Finding]:
    """Each page's time, and the slowest of all in milliseconds."""
    found = []
    for kind in run.databases.kinds:
        urls = [run.databases.new(kind) for _ in range(2)]
        opened = asyncio.run(_measure(run, kind, urls))
        found += [
            Finding(f"{each.name} {kind}: ms / with 1,000 rows", each.many_ms, each.few_ms, MOST)
            for each in opened
        ]
        slowest = max(opened, key=lambda each: each.many_ms)
        title = f"slowest page {kind}, {slowest.name}: ms"
        found.append(Finding(title, slowest.many_ms, bound=MOST_MS, alone=True))
    return found


async def _measure(run: Run, kind: str, urls: Sequence[str]) -> list[Opened]:
    run.tell(f"filling {kind} for the dashboard")
    async with AsyncExitStack() as stack:
        few, many = [
            await stack.enter_async_context(shop_of(url, sizes))
            for url, sizes in zip(urls, (FEW, sizes_of(run.options.rows)), strict=True)
        ]
        pages = [page for page in pages_of(few.service) if _is_opened(page)]
        run.tell(f"dashboard {kind}", total=len(pages))
        found = []
        for page in pages:
            found += [each async for each in _opened(few, many, page, run.options.rounds)]
            run.advance(1)
        return found


def _is_opened(page: Page) -> bool:
    """Whether the bench's rows have what its path names; a file is read to its end."""
    named = OF_ONE_THING.intersection(parameters(page))
    return page.method == "GET" and page.name not in FILES and not named


async def _opened(few: Shop, many: Shop, page: Page, times: int) -> AsyncIterator[Opened]:
    walks = [at(page, shop.owner.project_id, shop.ids) for shop in (few, many)]
    for query in _queries(page):
        taken: tuple[list[float], list[float]] = ([], [])
        # The first time is for what is read once: templates, and pages of the database.
        for attempt in range(times + 1):
            for place, (shop, walk) in enumerate(zip((few, many), walks, strict=True)):
                took_ms = await ask(shop, walk, query)
                if attempt:
                    taken[place].append(took_ms)
        name = f"{_where(walks[0])}{query and '?'}{query}"
        yield Opened(name, min(taken[1]), min(taken[0]))


def _queries(page: Page) -> Iterator[str]:
    yield ""
    yield from ASKED.get(page.name, ())


def _where(walk: Walk) -> str:
    page = walk.page
    inside = {"installation:operate": "operator", "account:self": "account"}.get(page.access, "")
    return f"{inside}{page.path or '/'}"
