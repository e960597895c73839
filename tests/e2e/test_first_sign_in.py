"""From `msgsvc init` on a terminal to somebody who has signed in by Telegram: no file is edited by hand."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from playwright.async_api import expect

from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.web_servers import stop
from tests.e2e.windows import NewWindow, picture
from tests.ports import free_ports
from tests.process import MSGSVC, start_server
from tests.terminal import on_a_terminal

testing = pytest.importorskip("msgsvc_devkit.platforms.telegram")

#: Seconds from `msgsvc init` to the first sign-in that a newcomer's patience has.
PATIENCE_S = patient(120)

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@asynccontextmanager
async def serving(folder: Path, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """`msgsvc serve`, with the file that `init` wrote."""
    command = [MSGSVC, "serve"]
    server = await asyncio.to_thread(start_server, command, folder / "serve.log", environment)
    try:
        yield
    finally:
        await asyncio.to_thread(server.end)


@asynccontextmanager
async def site(codes: "asyncio.Queue[str]") -> AsyncIterator[str]:
    """The address of a site's callback, which tells who comes back with a code."""

    async def come_back(request: web.Request) -> web.Response:
        await codes.put(request.query["code"])
        return web.Response(text="Welcome back")

    app = web.Application()
    app.router.add_get("/callback", come_back)
    runner = web.AppRunner(app)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/callback"
    finally:
        await stop(runner)


async def msgsvc(environment: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    """What a command answers with `--json`."""
    command = [MSGSVC, *arguments, "--json"]
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


async def test_a_newcomer_gets_to_the_first_sign_in_and_edits_no_file(
    new_window: NewWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = free_ports()
    address = f"http://127.0.0.1:{port}"
    codes: asyncio.Queue[str] = asyncio.Queue()
    async with testing.FakeTelegram() as telegram, site(codes) as callback:
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("MSGSVC_")},
            # Where this Telegram is, and a port that nobody else has; a newcomer needs neither.
            "MSGSVC_CHANNELS__TELEGRAM__BASE_URL": telegram.url,
            "MSGSVC_SERVER__PORT": str(port),
        }
        began = time.monotonic()
        typed = ["telegram", telegram.bot.token, address, "", "ann@shop.example"]
        status, shown = await asyncio.to_thread(
            on_a_terminal, ["init"], tmp_path, typed, environment
        )
        assert status == 0, shown
        written = (tmp_path / "msgsvc.toml").read_bytes()

        async with serving(tmp_path, environment):
            project = await msgsvc(environment, "project", "create", "Corner Shop")
            key = await msgsvc(environment, "key", "create", project["project_id"])
            headers = {"Authorization": f"Bearer {key['key']}"}
            async with aiohttp.ClientSession(address, headers=headers) as api:
                link = {"slug": "shop", "name": "Corner Shop", "callback_url": callback}
                async with api.post("/v1/auth/links", json=link) as made:
                    assert made.status == 201, await made.text()
                window = await new_window()
                await window.goto(f"{address}/login/shop?state=a-state")
                button = window.locator("a.button[data-channel=telegram]")
                await expect(button).to_contain_text("Open Telegram")
                await picture(window, "first-sign-in")

                bot = await button.get_attribute("href")
                boris = telegram.person("Boris")
                await boris.open(bot)
                question = await boris.wait_for(button="Yes")
                await boris.press("Yes", question)
                await expect(window.locator("body")).to_have_text("Welcome back")
                took_s = time.monotonic() - began
                async with api.post("/v1/auth/verify", json={"code": await codes.get()}) as said:
                    who = await said.json()

            dashboard = await new_window()
            await dashboard.goto(shown.partition("sign in within an hour: ")[2].split()[0])
            await expect(dashboard.locator("body")).to_contain_text("Welcome, ann")

    print(f"from `msgsvc init` to the first sign-in: {took_s:.1f} s")  # noqa: T201 - the figure itself
    assert took_s < PATIENCE_S
    assert who["first_name"] == "Boris"
    assert (tmp_path / "msgsvc.toml").read_bytes() == written
