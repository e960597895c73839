"""What a page costs who opens it first: bytes over the wire with an empty cache, and parts that move about.

Every page of the dashboard, and those that strangers see; on a screen and on a phone. Those that once
moved on a slow network are opened on one.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from playwright.async_api import Page

from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Bytes over the wire of the first view of any page, heads included.
MOST_BYTES = 120_000

#: Parts in which all pages are looked at.
PARTS = 4

#: Pages of strangers that need nothing but the service.
PUBLIC = (
    *("/docs", "/docs/types", "/docs/errors"),
    *("/sandbox", "/dashboard/sign-in", "/no-such-page"),
)

#: Pages whose first half would be moved by the second.
MOVABLE = (
    "dashboard.overview",
    "broadcasts.listed",
    "helpdesk.ticket",
    "auth.sign_in",
    "forms.share",
)

#: A network of 60 kB/s, on which a page comes in several pieces.
SLOW = {"offline": False, "latency": 20, "downloadThroughput": 60_000, "uploadThroughput": 60_000}

#: Collects what the browser calls layout shifts, from before the page's first paint.
WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) {
    const moved = each.sources.map((source) => source.node?.outerHTML?.slice(0, 120) ?? "gone");
    window.shifts.push({ value: each.value, moved });
  }
}).observe({ type: "layout-shift", buffered: true });
"""

#: Two frames after everything was loaded: what a script shows late has moved its neighbours by then.
SETTLED = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(window.shifts), 100)));
})"""


@dataclass
class Wire:
    """Counts what a page gets over the network, by the browser's own account."""

    bytes: int = 0

    @classmethod
    async def of(cls, page: Page) -> "Wire":
        wire = cls()
        session = await page.context.new_cdp_session(page)
        await session.send("Network.enable")
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        session.on("Network.loadingFinished", wire.add)
        return wire

    def add(self, event: dict[str, float]) -> None:
        self.bytes += round(event["encodedDataLength"])


async def addresses(place: Furnished, part: int) -> AsyncIterator[tuple[str, str, str]]:
    """A page's name, its path, and who opens it: `owner`, `operator` or `stranger`."""
    for walk in place.walks[part::PARTS]:
        who = place.who(walk)
        answer = await who.client.get(walk.url)
        assert answer.status_code in {200, 303}, f"{walk} answers {answer.status_code}"
        if '<main id="main"' in answer.text:
            yield str(walk), walk.url, "operator" if who is place.operator else "owner"
    for path in PUBLIC[part::PARTS]:
        yield path, path, "stranger"
    if part == 0:
        form = await place.tenant.client.get(f"/v1/forms/{place.ids['form_id']}")
        yield "a form", f"/f/{form.json()['slug']}", "stranger"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_page_is_light_and_nothing_of_it_moves(
    place: Furnished, new_window: NewWindow, width: int, part: int
) -> None:
    found, seen = [], 0
    windows = {}
    for who, visitor in (("owner", place.owner), ("operator", place.operator), ("stranger", None)):
        page = await new_window(width, 800)
        if visitor is not None:
            await place.enter(page.context, visitor)
        await page.add_init_script(WATCH)
        windows[who] = (page, await Wire.of(page))

    async for name, path, who in addresses(place, part):
        page, wire = windows[who]
        seen += 1
        before = wire.bytes
        await page.goto(place.url + path)
        shifts = await page.evaluate(SETTLED)
        weight = wire.bytes - before
        assert weight > 1000, f"{name}: nothing was counted"
        if weight > MOST_BYTES:
            found.append(f"{name}: {weight:,} bytes")
        found += [f"{name} moves by {one['value']:.4f}: {one['moved']}" for one in shifts]

    assert seen
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_slow_network_moves_nothing(
    place: Furnished, new_window: NewWindow, width: int
) -> None:
    page = await new_window(width, 800)
    await place.enter(page.context, place.owner)
    await page.add_init_script(WATCH)
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", SLOW)
    walks = [
        walk for walk in place.walks if str(walk).endswith(tuple(f"({name})" for name in MOVABLE))
    ]

    moved = []
    for walk in walks:
        await session.send("Network.clearBrowserCache")
        await page.goto(place.url + walk.url)
        moved += [f"{walk}: {one}" for one in await page.evaluate(SETTLED)]

    assert len(walks) >= len(MOVABLE)
    assert not moved, "\n".join(moved)
