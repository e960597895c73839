"""Signing in on the hosted page by an address that is typed there, in a browser without scripts."""

import re
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.channels import Button, Capabilities
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled

from .hosted import Browser, browsing

pytestmark = pytest.mark.usefixtures("link")


@pytest.fixture(autouse=True)
def mail(service: Service) -> RecordingChannel:
    """`messenger_b` is email, `messenger_a` a messenger."""
    return make_mail(service)


def make_mail(service: Service) -> RecordingChannel:
    channel = service.channels["messenger_b"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(
        addresses=True, identity="mailbox", buttons="pages", edit=False
    )
    return channel


async def type_address(browser: Browser, service: Service, address: str) -> httpx2.Response:
    """From the sign-in page to the form, and on."""
    await browser.open(browser.find(r'data-address="messenger_b" href="([^"]+)"'))
    path = browser.find(r'<form method="post" action="([^"]+)"')
    browser.shown = await browser.http.post(path, data={"address": address})
    await settled(service)
    if browser.shown.status_code == 303:
        return await browser.open(browser.shown.headers["Location"])
    return browser.shown


async def press(client: httpx2.AsyncClient, service: Service, button: Button) -> None:
    path = "/b/" + (button.url or "").partition("/b/")[2]
    attempt = re.search(r'name="attempt" value="([0-9a-f]+)"', (await client.get(path)).text)
    assert attempt is not None
    await client.post(path, data={"attempt": attempt[1]})
    await settled(service)


def buttons_of(mail: RecordingChannel) -> dict[str, Button]:
    return {button.text: button for row in mail.sent[-1].message.buttons for button in row}


@pytest.mark.both_databases
async def test_a_person_signs_in_by_the_address_that_they_type(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    async with browsing(service) as browser:
        await browser.open("/login/shop?state=s1")
        await type_address(browser, service, " Ann@Example.com")
        number = browser.find(r'<p class="number">(\d\d)</p>')
        waiting = browser.shown.text
        await press(client, service, buttons_of(mail)[number])
        back = await browser.reload()
    code = re.findall(r"code=([A-Za-z0-9]+)", back.headers["Location"])[0]
    verified = (await client.post("/v1/auth/verify", json={"code": code})).json()

    assert "A message is being sent" in waiting
    assert mail.sent[0].chat_id == "ann@example.com"
    assert (verified["username"], verified["proves"]) == ("ann@example.com", "mailbox")
    assert verified["state"] == "s1"


async def test_programs_that_open_the_links_of_an_email_sign_nobody_in(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    async with browsing(service) as browser:
        await browser.open()
        await type_address(browser, service, "ann@example.com")
        for button in buttons_of(mail).values():
            await client.get("/b/" + (button.url or "").partition("/b/")[2])
        still = await browser.reload()

    assert (still.status_code, 'class="number"' in still.text) == (200, True)
    assert len(buttons_of(mail)) == 4, "three numbers and Cancel; Yes is not enough"


async def test_known_and_unknown_addresses_look_the_same(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    await client.post(
        "/v1/subscribers", json={"channel": "messenger_b", "address": "ann@example.com"}
    )
    pages = []
    for address in ("ann@example.com", "nobody@example.com"):
        async with browsing(service) as browser:
            await browser.open()
            shown = await type_address(browser, service, address)
            # Number, links of the bot, QR codes and ids of the sign-in differ between any two.
            pages.append(re.findall(r"<h1>.*?</p>", shown.text, re.DOTALL)[0])

    assert pages[0] == pages[1]
    assert [sent.chat_id for sent in mail.sent] == ["ann@example.com", "nobody@example.com"]


@pytest.mark.both_databases
async def test_a_blocked_address_is_sent_nothing_and_looks_like_any_other(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    body = {"channel": "messenger_b", "address": "gone@example.com"}
    await client.post("/v1/subscribers", json=body)
    async with service.db.transaction() as tx:
        await service.subscribers.block(
            tx, "messenger_b", "gone@example.com", reason="user_blocked_bot"
        )
    pages = []
    for address in ("gone@example.com", "nobody@example.com"):
        async with browsing(service) as browser:
            await browser.open()
            shown = await type_address(browser, service, address)
            pages.append(re.findall(r"<h1>.*?</p>", shown.text, re.DOTALL)[0])
    asked = await client.post("/v1/auth/session", json=body)
    await settled(service)

    assert pages[0] == pages[1]
    assert (asked.status_code, asked.json()["links"]) == (201, {})
    assert [sent.chat_id for sent in mail.sent] == ["nobody@example.com"]


async def test_questions_to_a_blocked_address_are_counted(
    make_service: Callable[..., Any], make_tenant: Callable[..., Any]
) -> None:
    limits = {"sessions_per_hour_per_recipient": 1}
    service = await make_service(extra_plugins=[("auth", plugin)], auth=limits)
    mail = make_mail(service)
    shop = await make_tenant(service, "Shop")
    body = {"channel": "messenger_b", "address": "gone@example.com"}
    await shop.client.post("/v1/subscribers", json=body)
    async with service.db.transaction() as tx:
        await service.subscribers.block(
            tx, "messenger_b", "gone@example.com", reason="user_blocked_bot"
        )
    answers = [await shop.client.post("/v1/auth/session", json=body) for _ in range(2)]
    await settled(service)

    assert [answer.status_code for answer in answers] == [201, 429]
    assert mail.sent == []


@pytest.mark.parametrize(("typed", "said"), [("ann", "check it"), (" ", "enter an address")])
async def test_what_is_no_address_is_said_beside_it(
    service: Service, mail: RecordingChannel, typed: str, said: str
) -> None:
    async with browsing(service) as browser:
        await browser.open()
        shown = await type_address(browser, service, typed)

    assert shown.status_code == 400
    assert said in shown.text
    assert mail.sent == []


async def test_one_mailbox_and_one_browser_get_so_many(
    make_service: Callable[..., Any], make_tenant: Callable[..., Any]
) -> None:
    limits = {"sessions_per_hour_per_recipient": 1, "sessions_per_hour_per_address": 2}
    service = await make_service(extra_plugins=[("auth", plugin)], auth=limits)
    mail = make_mail(service)
    shop = await make_tenant(service, "Shop")
    body = {"slug": "books", "name": "Books", "callback_url": "https://shop.example/back"}
    await shop.client.post("/v1/auth/links", json=body)
    statuses = []
    async with browsing(service) as browser:
        for address in ("ann@example.com", "ann@example.com", "b@example.com", "c@example.com"):
            await browser.open("/login/books")
            statuses.append((await type_address(browser, service, address)).status_code)

    assert statuses == [200, 429, 200, 429]
    assert len(mail.sent) == 2


async def test_a_form_of_another_site_asks_nobody(service: Service, mail: RecordingChannel) -> None:
    """It comes without the cookie."""
    async with browsing(service) as browser:
        answer = await browser.http.post(
            "/login/shop/address/messenger_b", data={"address": "ann@example.com"}
        )
    await settled(service)

    assert (answer.status_code, mail.sent) == (303, [])


async def test_channels_without_addresses_have_no_form(service: Service) -> None:
    async with browsing(service) as browser:
        await browser.open()
        answer = await browser.open("/login/shop/address/messenger_a")

    assert answer.status_code == 404


async def test_a_page_may_have_nothing_but_addresses(
    client: httpx2.AsyncClient,
    service: Service,
    mail: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A channel that receives nothing has no link."""
    await client.patch("/v1/auth/links/shop", json={"must_prove": ["mailbox"]})
    monkeypatch.setattr(mail, "link", lambda _payload: None)
    async with browsing(service, lang="ru") as browser:
        shown = await browser.open()

    assert shown.status_code == 200
    assert 'data-address="messenger_b"' in shown.text
    assert 'class="qr"' not in shown.text
    assert "Пароль не нужен" in shown.text
