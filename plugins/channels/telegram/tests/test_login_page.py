"""Sign-in on Telegram's page from the hosted page, end to end: browser, service and provider over HTTP."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2
import pytest

from msgsvc_core.subscribers.contacts import Contacts
from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_devkit.platforms.telegram.login import FakeTelegramLogin
from plugins.channels.telegram.tests.conftest import Site, SiteFactory

PHONE = "+12025550123"
CALLBACK = "https://shop.example/back"


class Browser:
    """A browser without scripts, which keeps cookies and is sent on only as a test says."""

    def __init__(self, site: Site) -> None:
        self.http = httpx2.AsyncClient(base_url=site.url, headers={"Accept-Language": "en"})
        self.text = ""
        #: Where the page led at once: the sign-in was confirmed before it opened.
        self.led_to: str | None = None

    async def open(self, path: str, **headers: str) -> httpx2.Response:
        response = await self.http.get(path, headers=headers)
        self.text = response.text
        self.led_to = response.headers.get("Location")
        return response

    async def start(self) -> None:
        await self.open("/login/shop?state=xyz")

    async def leave(self) -> str:
        """Follows the link to Telegram's page; returns the page's address."""
        left = await self.http.get(self.find(r'data-platform="messenger_a" href="([^"]+)"'))
        assert left.status_code == 303, left.text
        return left.headers["Location"]

    async def arrive(self, location: str) -> httpx2.Response:
        """Comes back from Telegram's page, and goes on to the sign-in page."""
        # As browsers do it after a visit to another site.
        back = await self.http.get(location, headers={"Sec-Fetch-Site": "cross-site"})
        if back.status_code == 303:
            await self.open(back.headers["Location"])
        else:
            self.text = back.text
        return back

    async def status(self) -> dict[str, Any]:
        """What the page's element asks for."""
        response = await self.http.get(self.find(r' status-url="([^"]+)"'))
        found: dict[str, Any] = response.json()
        return found

    async def confirmed(self) -> str:
        """The address of the site, with the code, as soon as the page or its element is told."""

        async def redirect() -> str | None:
            return self.led_to or (await self.status()).get("redirect")

        return await until(redirect, interval_s=0.02)

    async def failed(self) -> str:
        """What became of the visit, as soon as the page or its element is told; then it is loaded anew."""

        told = "data-visit="

        async def is_over() -> bool:
            return told in self.text or (await self.status())["status"] == "changed"

        await until(is_over, interval_s=0.02)
        if told not in self.text:
            await self.open(self.find(r'ended-url="([^"]+)"'))
        return self.find(r'data-visit="([a-z]+)"')

    def find(self, pattern: str) -> str:
        match = re.search(pattern, self.text)
        assert match, f"no {pattern}: {self.text}"
        return unescape(match[1])


@pytest.fixture
async def provider() -> AsyncIterator[FakeTelegramLogin]:
    async with FakeTelegramLogin() as provider:
        yield provider


@pytest.fixture
async def site(make_site: SiteFactory, provider: FakeTelegramLogin) -> Site:
    """A site with a link, whose bot has a client at the provider."""
    bot = {
        "login_client_id": provider.client_id,
        "login_client_secret": provider.client_secret,
        "login_url": provider.url,
    }
    site = await make_site("poll", bot=bot)
    # As its operator registers it with BotFather.
    provider.redirect_uris.append(f"{site.url}/login/_return/messenger_a")
    await site.post("/v1/auth/links", slug="shop", name="Shop", callback_url=CALLBACK)
    return site


NewBrowser = Callable[[], Awaitable[Browser]]


@pytest.fixture
async def new_browser(site: Site) -> AsyncIterator[NewBrowser]:
    made = []

    async def make() -> Browser:
        made.append(Browser(site))
        return made[-1]

    yield make
    for browser in made:
        await browser.http.aclose()


@pytest.fixture
async def browser(new_browser: NewBrowser) -> Browser:
    """A browser on the sign-in page."""
    browser = await new_browser()
    await browser.start()
    return browser


@pytest.fixture
def person(telegram: FakeTelegram) -> Person:
    """Somebody who has never talked to the bot."""
    return telegram.person("Anna", username="anna_k")


async def verified(site: Site, location: str) -> dict[str, Any]:
    """Whom the site's server gets for the code."""
    query = dict(parse_qsl(urlsplit(location).query))
    assert query["state"] == "xyz"
    return await site.post("/v1/auth/verify", code=query["code"])


async def contacts_of(site: Site, subscriber_id: str) -> Contacts:
    service, project_id = site.service, site.tenant.project.project_id
    async with service.db.read() as tx:
        return await service.contacts.find(tx, project_id, subscriber_id)


async def test_a_person_signs_in_without_a_chat_and_their_phone_is_verified(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    back = await provider.allow(await browser.leave(), person, phone=PHONE)
    await browser.arrive(back)
    location = await browser.confirmed()
    who = await verified(site, location)

    assert location.startswith(f"{CALLBACK}?code=")
    assert (who["first_name"], who["username"], who["channel"]) == ("Anna", "anna_k", "messenger_a")
    contacts = await contacts_of(site, who["subscriber_id"])
    assert contacts.phone == PHONE
    assert not person.chat.started
    completed = await site.event("auth.completed")
    assert completed["subscriber_id"] == who["subscriber_id"]
    assert PHONE not in str(completed)


async def test_without_a_phone_the_sign_in_is_the_same(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    await browser.arrive(await provider.allow(await browser.leave(), person))
    who = await verified(site, await browser.confirmed())

    assert await contacts_of(site, who["subscriber_id"]) == Contacts()


async def test_it_is_the_same_person_as_in_the_chat(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    subscriber_id = await site.subscribe(person)
    await browser.arrive(await provider.allow(await browser.leave(), person, phone=PHONE))

    assert (await verified(site, await browser.confirmed()))["subscriber_id"] == subscriber_id


async def test_whoever_cancels_there_is_told_and_can_try_again(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    await browser.arrive(await provider.decline(await browser.leave()))
    told = browser.find(r'data-visit="([a-z]+)"')
    await browser.arrive(await provider.allow(await browser.leave(), person))

    assert told == "cancelled"
    assert (await verified(site, await browser.confirmed()))["first_name"] == "Anna"


async def test_a_token_that_is_not_valid_is_told_and_can_be_tried_again(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    provider.claims = {"nonce": "another"}
    await browser.arrive(await provider.allow(await browser.leave(), person, phone=PHONE))
    told = await browser.failed()
    provider.claims = {}
    await browser.arrive(await provider.allow(await browser.leave(), person, phone=PHONE))

    assert told == "refused"
    assert (await verified(site, await browser.confirmed()))["first_name"] == "Anna"


async def test_a_short_outage_of_telegram_is_waited_for(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    provider.failures["/token"] = [503]
    await browser.arrive(await provider.allow(await browser.leave(), person))

    assert (await verified(site, await browser.confirmed()))["first_name"] == "Anna"
    assert provider.count("/token") == 2


async def test_an_answer_in_another_browser_signs_nobody_in(
    site: Site,
    browser: Browser,
    new_browser: NewBrowser,
    provider: FakeTelegramLogin,
    person: Person,
) -> None:
    """Login CSRF: somebody has another person's browser take their own answer (RFC 6749, section 10.12)."""
    back = await provider.allow(await browser.leave(), person)
    other = await new_browser()
    await other.start()
    await other.leave()
    refused = await other.arrive(back)

    assert refused.status_code == 403
    assert (provider.count("/token"), (await browser.status())["status"]) == (0, "pending")
    await browser.arrive(back)
    assert (await verified(site, await browser.confirmed()))["first_name"] == "Anna"


async def test_a_state_is_used_once(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    page = await browser.leave()
    back = await provider.allow(page, person)
    injected = _with(await provider.allow(page, person), code="another-code")
    await browser.arrive(back)
    location = await browser.confirmed()
    for again in (back, injected):
        answer = await browser.http.get(again)
        assert answer.status_code == 403

    assert provider.count("/token") == 1
    assert (await verified(site, location))["first_name"] == "Anna"


async def test_a_code_of_another_visit_is_refused_by_the_provider(
    site: Site,
    browser: Browser,
    new_browser: NewBrowser,
    provider: FakeTelegramLogin,
    telegram: FakeTelegram,
    person: Person,
) -> None:
    """Code injection: PKCE binds a code to the visit for which it was made."""
    other = await new_browser()
    await other.start()
    stolen = parse_qs(urlsplit(await provider.allow(await other.leave(), person)).query)["code"][0]
    mallory = telegram.person("Mallory")
    back = await provider.allow(await browser.leave(), mallory)
    await browser.arrive(_with(back, code=stolen))

    assert await browser.failed() == "refused"


async def test_an_answer_at_another_channels_address_has_no_effect(
    site: Site, browser: Browser, provider: FakeTelegramLogin, person: Person
) -> None:
    """A mix-up of two providers (RFC 9700, section 4.4)."""
    back = await provider.allow(await browser.leave(), person)
    await browser.arrive(back.replace("_return/messenger_a", "_return/messenger_b"))
    status, exchanged = (await browser.status())["status"], provider.count("/token")
    await browser.arrive(back)

    assert (status, exchanged) == ("pending", 0)
    assert (await verified(site, await browser.confirmed()))["first_name"] == "Anna"


async def test_another_sites_link_sends_nobody_to_telegram(
    browser: Browser,
) -> None:
    href = browser.find(r'data-platform="messenger_a" href="([^"]+)"')
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Purpose": "prefetch"}):
        answer = await browser.http.get(href, headers=headers)

        assert answer.headers["Location"].startswith("/login/shop?")
        assert "resume=1" in answer.headers["Location"]


async def test_no_secret_of_the_visit_is_stored_or_logged_in_the_clear(
    site: Site,
    browser: Browser,
    provider: FakeTelegramLogin,
    person: Person,
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = await browser.leave()
    query = dict(parse_qsl(urlsplit(page).query))
    code = "c0de-" * 9
    provider.failures["/token"] = [500]
    back = _with(await provider.allow(page, person, phone=PHONE), code=code)
    rows = await visits(site)
    await browser.arrive(back)
    assert await browser.failed() == "unavailable"
    rows += await visits(site)
    secrets = [query["state"], query["nonce"], code, provider.client_secret, PHONE]

    assert len(rows) == 2
    assert [each for each in secrets if each in str(rows) + caplog.text] == []


async def visits(site: Site) -> list[list[Any]]:
    """All that is stored of visits."""
    async with site.service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM auth_platform_visits")
    return [[row[column] for column in row.keys()] for row in rows]


def _with(address: str, **changed: str) -> str:
    parts = urlsplit(address)
    query = urlencode(dict(parse_qsl(parts.query)) | changed)
    return parts._replace(query=query).geturl()
