"""The example site, started as its reader starts it, against a fake of the service's API.

Starting the site takes most of a second, so all tests of a module share one, each with a browser of
its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest_asyncio
from aiohttp import web

from examples.login_site.tests.browser import Browser, new_http
from examples.login_site.tests.fake_service import API_KEY, SECRET, FakeService
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.web_servers import stop
from tests.ports import free_ports

APP = Path(__file__).parents[1] / "app.py"


@pytest_asyncio.fixture(scope="module")
async def service() -> AsyncIterator[tuple[FakeService, str]]:
    fake = FakeService()
    runner = web.AppRunner(fake.app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield fake, f"http://{host}:{port}"
    await stop(runner)


@pytest_asyncio.fixture(scope="module")
async def site_url(service: tuple[FakeService, str]) -> AsyncIterator[str]:
    port = free_ports()
    settings = {
        "LOGIN_SITE_PORT": str(port),
        "LOGIN_SITE_SERVICE_URL": service[1],
        "LOGIN_SITE_API_KEY": API_KEY,
        "LOGIN_SITE_WEBHOOK_SECRET": SECRET,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(APP), env={**os.environ, **settings}
    )
    url = f"http://127.0.0.1:{port}"
    try:
        await until_it_answers(process, url)
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def until_it_answers(process: asyncio.subprocess.Process, url: str) -> None:
    async with aiohttp.ClientSession() as http, asyncio.timeout(patient(60)):
        while process.returncode is None:
            try:
                async with http.get(f"{url}/session.json"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)
    raise AssertionError("the site ended while starting; its output is above")


@pytest_asyncio.fixture
async def browser(site_url: str, service: tuple[FakeService, str]) -> AsyncIterator[Browser]:
    async with new_http(site_url) as http:
        yield Browser(http, service[0])
