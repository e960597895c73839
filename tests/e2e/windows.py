"""Windows of real browsers, with pictures of what they show, and the checks of accessibility."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, BrowserContext, Page, expect

from msgsvc_devkit import machine, until
from msgsvc_devkit.work import PATIENCE_S

#: Milliseconds: five seconds by default, which a busy machine may take.
PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)

ROOT = Path(__file__).parents[2]

#: Set it to have pictures of what is shown left in SCREENS, for people to look at.
SCREENS_VARIABLE = "MSGSVC_TEST_SCREENS"
SCREENS = ROOT / "build" / "screens"

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

#: What axe-core calls these keeps people out.
SERIOUS = ("serious", "critical")

Scheme = Literal["light", "dark"]
NewWindow = Callable[..., Awaitable[Page]]


@asynccontextmanager
async def windows(browser: Browser) -> AsyncIterator[NewWindow]:
    """Windows of people who share nothing; an error on a page, or a refusal by its policy, fails the
    test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    async def open_window(
        width: int = 1280,
        height: int = 900,
        *,
        lang: str = "en",
        scheme: Scheme = "light",
        scripts: bool = True,
        bypass_csp: bool = False,
    ) -> Page:
        context = await browser.new_context(
            viewport={"width": width, "height": height},
            locale=lang,
            color_scheme=scheme,
            device_scale_factor=2 if pictures_asked() else 1,
            java_script_enabled=scripts,
            bypass_csp=bypass_csp,
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: _note_refusal(errors, said.text))
        return page

    yield open_window
    for context in contexts:
        await context.close()
    assert not errors


def _note_refusal(errors: list[str], text: str) -> None:
    if "Content Security Policy" in text:
        errors.append(text)


def pictures_asked() -> bool:
    return bool(os.environ.get(SCREENS_VARIABLE))


async def picture(page: Page, name: str) -> None:
    """Leaves a picture of the whole page, where `MSGSVC_TEST_SCREENS` asks for pictures."""
    if not pictures_asked():
        return
    SCREENS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


async def read_qr(page: Page, folder: Path) -> str:
    """The link in the QR code that the screen shows, read as a camera would."""
    shot = folder / "screen.png"

    async def read() -> str:
        await page.screenshot(path=shot)
        process = await asyncio.create_subprocess_exec(
            "zbarimg", "--quiet", "--raw", str(shot), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.decode().strip()

    # The picture comes in its own time.
    return await until(read)


async def open_on_phone(phone: Page, link: str, name: str) -> None:
    """Opens a bot's link on a phone whose owner is new to the messenger."""
    await phone.goto(link)
    await someone_new(phone, name)


async def someone_new(phone: Page, name: str) -> None:
    """Says who opens the link. The form is folded where the messenger knows people already."""
    await phone.locator(".someone-new").evaluate("details => { details.open = true; }")
    form = phone.locator(".someone-new form")
    await form.locator("input[name=name]").fill(name)
    await form.locator("button[type=submit]").click()


async def faults(page: Page, rules: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What axe-core finds on the page that keeps people out, by all its rules or by some.

    Skips the test where it is missing.
    """
    if not AXE.exists():
        reason = "axe-core is missing: npm ci --prefix tests/e2e --ignore-scripts"
        machine.missing("npm", reason)
    if not await page.evaluate("'axe' in window"):
        # Not as an element, which the policy of our pages would refuse.
        await page.evaluate(f"{AXE.read_text('utf-8')}; null")
    # Rules that pass are only counted: to describe each element that passes takes most of the time.
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = await page.evaluate(
        "(options) => axe.run(options)", {"resultTypes": ["violations"], **only}
    )
    assert found["passes"] or rules, "it has looked at nothing"
    return [
        {"id": one["id"], "help": one["help"], "nodes": [node["html"] for node in one["nodes"]]}
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]
