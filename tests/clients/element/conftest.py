"""The element's example site beside an ephemeral service, and windows."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc
from tests.clients.element.site import Site, running_site
from tests.e2e.windows import NewWindow, windows


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


@pytest.fixture
async def site(msgsvc_async: AsyncMsgsvc) -> AsyncIterator[Site]:
    async with running_site(msgsvc_async) as running:
        yield running
