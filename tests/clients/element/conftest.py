"""The element's example site beside an ephemeral service, and windows of one browser."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc
from tests.clients.element.site import Site, running_site
from tests.e2e.windows import NewWindow, browsing, windows


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as launched:
        yield launched


@pytest_asyncio.fixture(loop_scope="module")
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


@pytest_asyncio.fixture(loop_scope="module")
async def site(msgsvc_async: AsyncMsgsvc) -> AsyncIterator[Site]:
    async with running_site(msgsvc_async) as running:
        yield running
