"""Pictures of pages that are the same each time: what differs from run to run is masked or held."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from PIL import Image
from playwright.async_api import Browser, BrowserContext, CDPSession, Page

from tests.e2e.furnished import Furnished
from tests.e2e.windows import PATIENCE_MS, Scheme
from tests.pictures.pages import Pictured
from tests.pictures.variants import VIEWPORTS, Lang, Size, Variant

#: Pixels of the tallest page that is pictured whole, and of what is pictured of others.
TALLEST, TOP = 8000, 2000

#: Ids, keys and ports, which differ each time, become noughts of the same length; what is drawn from them is
#: hidden. Words have no digits in them.
MASK = r"""() => {
  const mask = (text) => text
    .replace(/(127\.0\.0\.1|localhost):\d+/g, "$1:8000")
    .replace(/\bmsk_[0-9A-Za-z]+/g, (found) => "0".repeat(found.length))
    .replace(/_[0-9a-z]{10}_bot\b/g, "_0000000000_bot")
    .replace(/(?=[A-Za-z]*\d)[0-9A-Za-z]{16,}/g, (found) => "0".repeat(found.length));
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const masked = mask(node.data);
    if (masked !== node.data) node.data = masked;
  }
  for (const field of document.querySelectorAll("input, textarea")) {
    const masked = field.type === "file" ? field.value : mask(field.value);
    if (masked !== field.value) field.value = masked;
  }
  for (const drawn of document.querySelectorAll(".qr, .match-number, img[alt*=QR]")) {
    drawn.style.visibility = "hidden";
  }
}"""

#: What was made at one moment stands in any order, and takes more or less time: hidden on these pages.
ANY_ORDER = {
    "webhooks.webhooks-webhook_id": "tbody",
    "webhooks.webhooks-deliveries-delivery_id": ".attempts",
    "subscribers.subscribers-subscriber_id": ".timeline",
    # A code with a random name in it.
    "developers.channels-requests-channel_request_id": ".bot-link",
}

HIDE = """(selector) => {
  for (const one of document.querySelectorAll(selector)) one.style.display = "none";
}"""

#: What a page loads by itself when it is opened, e.g. the preview of a message, is there. What it asks for
#: again every few seconds stays as it is: axe-core would see half the contrast of a part that is replaced.
COMPLETE = """() => {
  if (document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")) return false;
  document.addEventListener("htmx:beforeRequest", (event) => event.preventDefault());
  return true;
}"""

#: Letters, lines, curves and shades that are of no page: machines that draw these alike draw pages alike.
PROBE = """<!doctype html><body style="margin:20px;font:16px/1.5 'DejaVu Sans',sans-serif;color:#123">
<h1>Sphinx of black quartz, judge my vow 0123456789</h1><p><b>Съешь ещё этих мягких французских булок</b></p>
<p style="font-size:12px;color:#767676">The quick brown fox</p><code
 style="font:13px 'DejaVu Sans Mono',monospace">{}[]</code>
<div style="width:200px;height:60px;border:1px solid #999;border-radius:12px;
box-shadow:0 2px 8px #0004"></div>
<svg width="80" height="80"><circle cx="40" cy="40" r="30" fill="none"
 stroke="#175" stroke-width="3"/></svg>"""

SETTLED = """() => document.fonts.ready.then(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done(null)));
}))"""


@dataclass(slots=True)
class Window:
    """A browser's window, and what it complained of since a page was opened in it."""

    page: Page
    session: CDPSession
    complaints: list[str] = field(default_factory=list)

    async def resize(self, size: Size, width: int | None = None) -> None:
        """A screen, or a phone, which is touched; `width` is another than it usually has, in pixels."""
        usual, height = VIEWPORTS[size]
        await self.page.set_viewport_size({"width": width or usual, "height": height})
        touch = {"enabled": size == "phone"}
        await self.session.send("Emulation.setTouchEmulationEnabled", touch)
        await self.page.evaluate(SETTLED)

    async def colour(self, scheme: Scheme) -> None:
        """By day or by night."""
        await self.page.emulate_media(color_scheme=scheme)
        await self.page.evaluate(SETTLED)

    def listen(self) -> None:
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self._note(said.type, said.text))

    def _note(self, kind: str, text: str) -> None:
        # A page that tells that there is no such page says so with its status, which Chromium notes.
        if kind == "error" and "the server responded with a status of 404" not in text:
            self.complaints.append(text)


class Windows:
    """A window for each who opens pages and each language; each keeps its session."""

    def __init__(self, browser: Browser, place: Furnished) -> None:
        self._browser = browser
        self._place = place
        self._windows: dict[tuple[str, Lang], Window] = {}

    async def open(self, page: Pictured, variant: Variant) -> Window:
        """The page as it is in that variant, with all that it loads by itself."""
        window = await self._window(page, variant.lang)
        await window.resize(variant.size)
        await window.colour(variant.scheme)
        window.complaints.clear()
        await window.page.goto(self._place.url + page.url, wait_until="load")
        await window.page.wait_for_function(COMPLETE)
        return window

    async def close(self) -> None:
        for window in self._windows.values():
            await window.page.context.close()

    async def _window(self, page: Pictured, lang: Lang) -> Window:
        """Whose session nobody shares; pages that anybody opens share a window."""
        key = (page.who.account_id if page.who else "", lang)
        if key not in self._windows:
            context = await self._context(lang)
            if page.who is not None:
                await self._place.enter(context, page.who)
            opened = await context.new_page()
            self._windows[key] = Window(opened, await context.new_cdp_session(opened))
            self._windows[key].listen()
        return self._windows[key]

    async def _context(self, lang: Lang) -> BrowserContext:
        context = await self._browser.new_context(
            locale=lang, timezone_id="UTC", reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE_MS)
        await context.clock.set_fixed_time(self._place.service.clock.now_ms())
        return context


@asynccontextmanager
async def windows_of(browser: Browser, place: Furnished) -> AsyncIterator[Windows]:
    windows = Windows(browser, place)
    try:
        yield windows
    finally:
        await windows.close()


async def take(page: Pictured, window: Page) -> Image.Image:
    """The page from its top."""
    await window.evaluate(SETTLED)
    await window.evaluate(MASK)
    if page.name in ANY_ORDER:
        await window.evaluate(HIDE, ANY_ORDER[page.name])
    height = await window.evaluate("() => document.documentElement.scrollHeight")
    shot = await (_top(window) if height > TALLEST else _whole(window))
    return await asyncio.to_thread(_opened, shot)


async def take_probe(browser: Browser) -> Image.Image:
    """How this machine draws `PROBE`."""
    context = await browser.new_context(viewport={"width": 600, "height": 400})
    try:
        window = await context.new_page()
        await window.set_content(PROBE)
        await window.evaluate(SETTLED)
        return await asyncio.to_thread(_opened, await _whole(window))
    finally:
        await context.close()


async def _whole(window: Page) -> bytes:
    return await window.screenshot(full_page=True, animations="disabled")


async def _top(window: Page) -> bytes:
    """A reference of hundreds of screens is pictured from its top: Chromium would draw all of it."""
    given = window.viewport_size
    assert given is not None
    await window.set_viewport_size({"width": given["width"], "height": TOP})
    shot = await window.screenshot(animations="disabled")
    await window.set_viewport_size(given)
    return shot


def _opened(shot: bytes) -> Image.Image:
    return Image.open(io.BytesIO(shot)).convert("RGB")
