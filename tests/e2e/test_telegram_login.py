"""Sign-in on Telegram's own page in real Chromium: there, back, and on to the site.

The service is at `localhost` and the fake Telegram at 127.0.0.1: to a browser these are two sites, between
which cookies go as they do between yours and Telegram's.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect

from msgsvc_auth import plugin as auth
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import CreateStaticLinkBody
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.server import ConnectionLimits, Server, bind, check_open_files
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.platforms.telegram.login import FakeTelegramLogin
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_telegram import plugin as telegram_plugin
from tests.e2e.windows import NewWindow, Scheme, faults, picture

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Nobody listens there: where the browser goes is enough.
CALLBACK = "http://localhost:9/callback"


@dataclass(frozen=True, slots=True)
class Place:
    """The service with one bot, and both halves of Telegram."""

    service: Service
    url: str
    telegram: FakeTelegram
    login: FakeTelegramLogin


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    listener = bind("127.0.0.1", 0)
    url = f"http://localhost:{listener.getsockname()[1]}"
    redirects = [f"{url}/login/_return/telegram"]
    async with FakeTelegram() as telegram, FakeTelegramLogin(redirect_uris=redirects) as login:
        bot = {
            "plugin": "telegram",
            "token": telegram.bot.token,
            "base_url": telegram.url,
            "login_client_id": login.client_id,
            "login_client_secret": login.client_secret,
            "login_url": login.url,
        }
        settings = Settings.model_validate(
            {
                "plugins": (),
                "database_url": f"sqlite:///{tmp_path_factory.mktemp('login') / 'login.db'}",
                "secret_keys": (SECRET_KEY,),
                "base_url": url,
                "channels": {"telegram": bot},
            }
        )
        plugins = [("telegram", telegram_plugin), ("auth", auth)]
        async with Service(settings, clock=SystemClock(), extra_plugins=plugins) as service:
            allowed = check_open_files(settings.server)
            guard = ConnectionLimits(allowed, settings.errors_url, service.metrics)
            server = Server(service.app, guard, signals=False)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            await _add_link(service)
            yield Place(service, url, telegram, login)
            server.should_exit = True
            await serving
    listener.close()


async def _add_link(service: Service) -> None:
    """A project with the link "shop", as soon as it is known who the bot is."""

    async def ready() -> bool:
        return service.channels["telegram"].profile is not None

    await until(ready)
    project = await service.projects.create("Shop")
    body = CreateStaticLinkBody(slug="shop", name="Shop", callback_url=CALLBACK)
    async with service.db.transaction() as tx:
        await service.get(StaticLinks).create(tx, project.project_id, body)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_person_goes_to_telegram_and_comes_back_signed_in(
    place: Place, new_window: NewWindow, scripts: bool
) -> None:
    place.login.visitor = (place.telegram.person("Anna"), "+12025550123")
    window = await new_window(scripts=scripts)
    await window.goto(f"{place.url}/login/shop?state=xyz")
    await window.get_by_role("link", name="Sign in on Telegram's page").click()
    async with window.expect_request(re.compile(re.escape(CALLBACK))) as going:
        await window.get_by_role("button", name="Allow").click()
    query = parse_qs(urlsplit((await going.value).url).query)

    assert query["state"] == ["xyz"]
    assert len(query["code"][0]) == 43


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("lang", "link", "cancelled"),
    [
        ("en", "Sign in on Telegram's page", "You cancelled on the messenger's page"),
        ("ru", "Войти на странице Telegram", "Вы отменили вход на странице мессенджера"),
    ],
    ids=["en", "ru"],
)
async def test_cancel_there_is_told_and_the_page_keeps_nobody_out(
    place: Place, new_window: NewWindow, lang: str, link: str, cancelled: str, scheme: Scheme
) -> None:
    place.login.visitor = (place.telegram.person("Anna"), None)
    # What checks accessibility is a script in the page.
    window = await new_window(lang=lang, scheme=scheme, bypass_csp=True)
    await window.goto(f"{place.url}/login/shop?state=xyz")
    before = await faults(window)
    await window.get_by_role("link", name=link).click()
    await window.get_by_role("button", name="Cancel").click()

    await expect(window.get_by_role("alert")).to_contain_text(cancelled)
    await expect(window.get_by_role("link", name=link)).to_be_visible()
    await picture(window, f"telegram-login-cancelled-{lang}-{scheme}")
    assert (before, await faults(window)) == ([], [])


async def test_a_refusal_is_told_by_the_page_that_waits(
    place: Place, new_window: NewWindow
) -> None:
    place.login.visitor = (place.telegram.person("Anna"), None)
    place.login.claims = {"aud": "another"}
    window = await new_window()
    await window.goto(f"{place.url}/login/shop?state=xyz")
    await window.get_by_role("link", name="Sign in on Telegram's page").click()
    await window.get_by_role("button", name="Allow").click()

    await expect(window.get_by_role("alert")).to_contain_text("did not confirm who you are")
    place.login.claims = {}
