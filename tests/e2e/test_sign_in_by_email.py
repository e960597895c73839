"""Signing in by an email address that is typed on the hosted page: real Chromium, the email plugin, SMTP.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Page, expect

from msgsvc_devkit import until
from msgsvc_devkit.platforms.email import FakeMail, Mail, Person
from msgsvc_devkit.web_servers import stop
from tests.e2e.windows import NewWindow, Scheme, faults, picture
from tests.process import Deployment

pytestmark = pytest.mark.browser

#: The field, the button that sends, and what is said about a wrong address.
WORDS = {
    "en": ("Email address", "Send the message", "This address can't be used"),
    "ru": ("Адрес электронной почты", "Отправить сообщение", "Этот адрес не подходит"),
}


@dataclass(frozen=True)
class Shop:
    """A running service whose only channel is email, with a static link that leads back to `callback`."""

    url: str
    callback: str
    key: str
    mail: FakeMail

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(self.url, headers=headers) as api,
            api.request(method, path, json=body) as answer,
        ):
            assert answer.status < 300, await answer.text()
            return await answer.json()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def callback() -> AsyncIterator[str]:
    """The shop's page to which browsers come back."""

    async def greet(_request: web.Request) -> web.Response:
        return web.Response(text="Hello!")

    app = web.Application()
    app.router.add_get("/callback", greet)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/callback"
    await stop(runner)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop(tmp_path_factory: pytest.TempPathFactory, callback: str) -> AsyncIterator[Shop]:
    deployment = Deployment(tmp_path_factory.mktemp("by-email"))
    async with FakeMail() as mail:
        settings = "\n".join(
            f"{name} = {json.dumps(value)}" for name, value in mail.settings.items()
        )
        deployment.configure(f'plugins = ["email", "auth"]\n[channels.mail]\n{settings}')
        with deployment.serving() as server:
            shop = Shop(server.url, callback, deployment.create_key(), mail)
            link = {"slug": "shop", "name": "Shop", "callback_url": callback}
            await shop.call("POST", "/v1/auth/links", link)
            yield shop


async def form_of(window: Page, shop: Shop, lang: str) -> None:
    """From the sign-in page to the form, by keyboard."""
    await window.goto(f"{shop.url}/login/shop?state=of-this-browser&lang={lang}")
    link = window.locator("a[data-address=mail]")
    await link.focus()
    await window.keyboard.press("Enter")
    await expect(window.get_by_label(WORDS[lang][0])).to_be_focused()


async def received(person: Person) -> Mail:
    async def newest() -> Mail | None:
        return person.messages[-1] if person.messages else None

    return await until(newest)


def links_of(mail: Mail, shop: Shop) -> dict[str, str]:
    """Its buttons, at the port that the service happens to have."""
    return {text: shop.url + urlsplit(url).path for row in mail.rows for text, url in row}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
async def test_a_person_types_their_address_and_chooses_the_number_in_the_email(
    shop: Shop, new_window: NewWindow, *, scripts: bool
) -> None:
    desktop, phone = await new_window(scripts=scripts), await new_window(390, 844)
    person = shop.mail.person(f"Ann-{scripts}")
    await form_of(desktop, shop, "en")

    await desktop.keyboard.type(person.address)
    await desktop.keyboard.press("Enter")
    number = await desktop.locator("p.number").text_content()
    await picture(desktop, "address-number")
    links = links_of(await received(person), shop)
    async with aiohttp.ClientSession() as scanner:
        # Programs that look for dangerous links open all of them.
        for url in links.values():
            async with scanner.get(url) as answer:
                assert answer.status == 200
    await expect(desktop.locator("p.number")).to_be_visible()
    assert number
    await phone.goto(links[number])
    await picture(phone, "address-confirm")
    await phone.get_by_role("button").click()

    await desktop.wait_for_url(re.compile(re.escape(shop.callback)))
    code = re.findall(r"code=([A-Za-z0-9]+)", desktop.url)[0]
    verified = await shop.call("POST", "/v1/auth/verify", {"code": code})
    assert (verified["username"], verified["proves"]) == (person.address, "mailbox")
    assert "state=of-this-browser" in desktop.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_the_form_is_accessible_and_says_what_is_wrong(
    shop: Shop, new_window: NewWindow, lang: str, scheme: Scheme
) -> None:
    label, send, wrong = WORDS[lang]
    # Only we look at what was typed: the browser's own check would come first.
    window = await new_window(390, 844, lang=lang, scheme=scheme)
    await form_of(window, shop, lang)
    await picture(window, f"address-{lang}-{scheme}")
    at_first = await faults(window)
    await window.locator("form").evaluate("form => { form.noValidate = true; }")
    await window.keyboard.type("ann@")
    await window.get_by_role("button", name=send).click()
    field = window.get_by_label(label)

    await expect(window.get_by_role("alert")).to_contain_text(wrong)
    await expect(field).to_have_value("ann@")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await picture(window, f"address-wrong-{lang}-{scheme}")
    assert (at_first, await faults(window)) == ([], [])
