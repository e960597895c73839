"""Windows of a browser, a furnished service that its pages are of, and the demo."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from msgsvc_devkit.demo.command import SITE
from msgsvc_devkit.demo.parts import Parts, running_parts
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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Parts]:
    """The service, two sandbox messengers and the example site; and a link whose page shows a number."""
    async with running_parts(tmp_path_factory.mktemp("demo"), SITE, 0, 0) as parts:
        link = {"slug": "numbers", "name": "Numbers", "callback_url": f"{parts.site_url}/callback"}
        headers = {"Authorization": f"Bearer {parts.api_key}"}
        async with (
            aiohttp.ClientSession(parts.service_url, headers=headers) as api,
            api.post("/v1/auth/links", json={**link, "number_matching": True}) as made,
        ):
            assert made.status == 201
        yield parts
