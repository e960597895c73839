"""Windows of a browser, and a furnished service that its pages are of."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.e2e.furnished import Furnished, furnished
from tests.e2e.windows import NewWindow, windows


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Furnished]:
    async with furnished(tmp_path_factory.mktemp("furnished")) as made:
        yield made
