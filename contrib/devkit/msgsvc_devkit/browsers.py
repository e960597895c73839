"""Pytest plugin: `browser`, one Chromium for all tests of a process.

Starting a browser takes longer than most tests of a page. Tests share nothing in it as long as each opens
a context of its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest_asyncio

from msgsvc_devkit.machine import chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser

#: Without these Chromium calls its maker repeatedly, which a closed network refuses.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@asynccontextmanager
async def browsing(*flags: str) -> "AsyncIterator[Browser]":
    """The machine's Chromium, with further flags."""
    # Here, as most runs of tests open no browser.
    from playwright.async_api import async_playwright  # noqa: PLC0415

    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, *flags]
        )
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running_browser() -> "AsyncIterator[Callable[[], Awaitable[Browser]]]":
    """Returns the browser at each call: the same, or a new one where that has crashed."""
    launched: Browser | None = None

    async with AsyncExitStack() as all_launched:

        async def running() -> "Browser":
            nonlocal launched
            if launched is None or not launched.is_connected():
                launched = await all_launched.enter_async_context(browsing())
            return launched

        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def browser(running_browser: "Callable[[], Awaitable[Browser]]") -> "Browser":
    """Chromium, in which each test opens contexts of its own."""
    return await running_browser()
