"""The hosted sign-in page by HTTP: what it shows, to whom it hands the code, what it sends along."""

import asyncio
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from msgsvc_auth import plugin
from msgsvc_core.channels import ChannelKind
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import RecordingChannel
from plugins.areas.auth.tests.hosted import browsing

STATE = "x y&ё=#\n\"<'"


@pytest.fixture
async def browser(service, link):
    async with browsing(service) as opened:
        yield opened


@pytest.fixture
async def stranger(service, link):
    async with browsing(service, address="198.51.100.9") as opened:
        yield opened


async def sessions(service):
    """How many were opened."""
    async with service.db.read() as tx:
        return await tx.fetch_val("SELECT COUNT(*) FROM auth_sessions")


async def test_page_offers_every_messenger_by_name_with_link_and_code(browser):
    page = await browser.open()

    assert page.status_code == 200
    assert browser.heading == "Sign in to Shop"
    for channel, name in {"messenger_a": "Messenger A", "messenger_b": "Messenger B"}.items():
        assert browser.link(channel).startswith(f"https://{channel}.example/bot?start=auth_s_")
        assert f"Open {name}" in page.text
        assert f'aria-label="QR code that opens the question in {name}"' in page.text
    assert page.text.count("<path") >= 4
    assert "You will return to shop.example." in page.text


async def test_channel_offers_one_messenger_alone(browser):
    page = await browser.open("/login/shop?channel=messenger_b")

    assert browser.link("messenger_b")
    assert "messenger_a" not in page.text


async def test_yes_leads_a_browser_without_scripts_to_the_callback_with_code_and_state(
    browser, client, ann
):
    await browser.open("/login/shop", params={"state": STATE})
    await ann.press(await ann.open(browser.link()), "Yes")

    sent_on = await browser.reload()
    query = parse_qs(urlsplit(sent_on.headers["Location"]).query)
    verified = await client.post("/v1/auth/verify", json={"code": query["code"][0]})

    assert sent_on.status_code == 303
    assert sent_on.headers["Location"].startswith("https://shop.example/back?from=bot&code=")
    assert query["state"] == [STATE]
    assert (verified.json()["first_name"], verified.json()["state"]) == ("Ann", STATE)


async def test_yes_is_told_to_the_waiting_script(browser, client, ann):
    await browser.open("/login/shop?state=abc")
    question = await ann.open(browser.link())
    before = await browser.status()

    waiting = asyncio.create_task(browser.status(wait=25))
    await ann.press(question, "Yes")
    answer = (await waiting).json()
    query = parse_qs(urlsplit(answer["redirect"]).query)

    assert before.json() == {"status": "pending", "expires_in": 600}
    assert answer["status"] == "confirmed"
    assert query["state"] == ["abc"]
    assert (await client.post("/v1/auth/verify", json={"code": query["code"][0]})).is_success


async def test_bots_question_is_of_the_browser_that_asks(browser, service):
    await browser.open("/login/shop?lang=ru")

    async with service.db.read() as tx:
        row = await tx.fetch_one("SELECT client_ip, client_agent, lang FROM auth_sessions")

    assert (row["client_ip"], row["client_agent"], row["lang"]) == (
        "203.0.113.7",
        "Firefox on a test",
        "ru",
    )


async def test_reload_goes_on_with_the_same_sign_in(browser, service):
    await browser.open("/login/shop?state=abc")
    link = browser.link()

    await browser.open("/login/shop?state=abc")
    same = browser.link()
    await browser.reload()

    assert link == same == browser.link()
    assert await sessions(service) == 1


async def test_another_state_is_another_sign_in_and_both_go_on(browser, ann, service):
    await browser.open("/login/shop?state=first")
    first, question = browser.poll(), await ann.open(browser.link())
    await browser.open("/login/shop?state=second")

    await ann.press(question, "Yes")
    path = "/login/shop/status"
    told = [
        (await browser.http.get(path, params=polled)).json() for polled in (first, browser.poll())
    ]

    assert [answer["status"] for answer in told] == ["confirmed", "pending"]
    assert "state=first" in told[0]["redirect"]
    assert await sessions(service) == 2


async def test_who_saw_the_code_gets_nothing(browser, stranger, ann):
    await browser.open("/login/shop?state=abc")
    polled, link = browser.poll(), browser.link()
    await ann.press(await ann.open(link), "Yes")

    asked = await stranger.http.get("/login/shop/status", params=polled)
    opened = await stranger.open("/login/shop?state=abc")

    assert asked.status_code == 404
    assert opened.status_code == 200
    assert stranger.link() != link
    assert (await browser.status()).json()["status"] == "confirmed"


async def test_a_cookie_with_another_secret_or_another_token_opens_nothing(browser, stranger):
    await browser.open()
    await stranger.open()
    name = next(iter(browser.http.cookies))
    mine, theirs = browser.http.cookies[name], stranger.http.cookies[name]
    polled = browser.poll()

    for forged in (
        f"{theirs.partition('.')[0]}.{mine.partition('.')[2]}",
        f"{mine.partition('.')[0]}.{theirs.partition('.')[2]}",
        "",
        "x" * 66,
    ):
        stranger.http.cookies.clear()
        answer = await stranger.http.get(
            "/login/shop/status", params=polled, headers={"Cookie": f"{name}={forged}"}
        )
        assert answer.status_code == 404


async def test_a_cookie_of_one_site_opens_nothing_at_another(browser, client):
    body = {"slug": "other", "name": "Other", "callback_url": "https://other.example/"}
    await client.post("/v1/auth/links", json=body)
    await browser.open()
    name = next(iter(browser.http.cookies))

    answer = await browser.http.get(
        "/login/other/status",
        params=browser.poll(),
        headers={"Cookie": f"{name}={browser.http.cookies[name]}"},
    )

    assert answer.status_code == 404


async def test_database_knows_the_browsers_secret_only_by_its_digest(browser, service):
    await browser.open()
    secret, token = next(iter(browser.http.cookies.values())).split(".")

    async with service.db.read() as tx:
        row = await tx.fetch_one("SELECT * FROM auth_sessions")
    stored = " ".join(str(row[column]) for column in row.keys())

    assert secret not in stored
    assert token not in stored
    assert len(secret) == 43


async def test_cancel_is_told_and_try_again_begins_anew(browser, ann, service):
    await browser.open("/login/shop?state=abc")
    link = browser.link()
    await ann.press(await ann.open(link), "Cancel")
    assert (await browser.status()).json() == {"status": "denied", "expires_in": 0}

    await browser.reload()
    told = browser.heading
    await browser.try_again()

    assert told == "Sign-in was cancelled"
    assert browser.heading == "Sign in to Shop"
    assert browser.link() != link
    assert await sessions(service) == 2


async def test_time_over_is_told_and_who_comes_anew_begins_anew(browser, clock):
    await browser.open()
    link = browser.link()
    clock.advance(600)
    assert (await browser.status()).json()["status"] == "expired"

    await browser.reload()
    told = browser.heading
    await browser.open()

    assert told == "Time is up"
    assert browser.link() != link


async def test_a_code_that_nobody_fetched_in_time_has_run_out(browser, ann, clock):
    await browser.open()
    await ann.press(await ann.open(browser.link()), "Yes")
    clock.advance(301)

    assert (await browser.status()).json()["status"] == "expired"
    await browser.reload()
    assert browser.heading == "Time is up"


async def test_back_after_the_sign_in_does_not_lead_to_the_site_again(browser, client, ann):
    await browser.open("/login/shop?state=abc")
    await ann.press(await ann.open(browser.link()), "Yes")
    location = (await browser.reload()).headers["Location"]

    unused = await browser.open("/login/shop?state=abc")
    assert (unused.status_code, browser.heading) == (200, "You are signed in")
    assert browser.find(r'class="button main" href="([^"]+)"') == location
    code = parse_qs(urlsplit(location).query)["code"][0]
    assert (await client.post("/v1/auth/verify", json={"code": code})).is_success
    used = await browser.open("/login/shop?state=abc")

    assert (used.status_code, browser.heading) == (200, "You are signed in")
    assert browser.find(r'class="button main" href="([^"]+)"') == "https://shop.example/"
    assert code not in used.text
    await browser.try_again()
    assert browser.heading == "Sign in to Shop"


async def test_a_second_tab_is_not_sent_on_with_a_code_that_was_handed_over(browser, ann):
    await browser.open()
    await ann.press(await ann.open(browser.link()), "Yes")

    first, second = [(await browser.status()).json() for _ in range(2)]

    assert first["status"] == "confirmed"
    assert second == {"status": "done"}


async def test_a_page_whose_sign_in_was_replaced_is_told(browser):
    await browser.open()

    answer = await browser.status(page="0" * 16)

    assert answer.json() == {"status": "changed"}


async def test_reload_without_a_cookie_begins_nothing(browser, service):
    await browser.open()
    browser.http.cookies.clear()

    await browser.reload()

    assert browser.heading == "Sign-in not found"
    assert await sessions(service) == 1
    await browser.try_again()
    assert browser.heading == "Sign in to Shop"


async def test_try_again_from_another_site_begins_nothing(browser, stranger, ann, service):
    await browser.open("/login/shop")
    await ann.press(await ann.open(browser.link()), "Cancel")

    # A form of another site brings no cookie: it is SameSite=Lax.
    answer = await stranger.http.post("/login/shop")

    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers
    assert await sessions(service) == 1


async def test_pressing_try_again_on_an_old_page_goes_on_with_what_waits(browser, service):
    await browser.open()
    link = browser.link()

    answer = await browser.http.post("/login/shop")
    await browser.open(answer.headers["Location"])

    assert browser.link() == link


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_callback_that_was_changed_meanwhile_gets_the_code(browser, client, ann):
    await browser.open()
    await ann.press(await ann.open(browser.link()), "Yes")
    await client.patch("/v1/auth/links/shop", json={"callback_url": "https://new.example/in"})

    answer = await browser.reload()

    assert answer.headers["Location"].startswith("https://new.example/in?code=")


async def test_number_to_match_is_shown(browser, service):
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE auth_links SET number_matching = TRUE")

    await browser.open()
    number = browser.find(r'<p class="number">(\d\d)</p>')
    await browser.reload()

    assert 10 <= int(number) <= 99
    assert browser.find(r'<p class="number">(\d\d)</p>') == number


async def test_a_wrong_number_is_not_told_as_cancel_alone(browser, ann, client):
    await client.patch("/v1/auth/links/shop", json={"number_matching": True})
    await browser.open()
    number = browser.find(r'<p class="number">(\d\d)</p>')
    question = await ann.open(browser.link())
    picks = [button.text for button in question.message.buttons[0]]
    await ann.press(question, next(text for text in picks if text != number))

    page = await browser.reload()

    assert "Cancel or another number was pressed in the messenger" in page.text
    assert "You pressed Cancel" not in page.text


@pytest.mark.parametrize(
    ("query", "header", "lang"),
    [
        ("", "ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("", "de, en;q=0.4, ru;q=0.6", "ru"),
        ("", "de", "en"),
        ("", "ru;q=0, en;q=x, *", "en"),
        ("?lang=ru", "en", "ru"),
        ("?lang=de", "ru", "ru"),
    ],
)
async def test_page_speaks_the_language_that_is_asked_for(service, link, query, header, lang):
    async with browsing(service, lang=header) as browser:
        page = await browser.open(f"/login/shop{query}")

    assert f'<html lang="{lang}">' in page.text
    assert ("Вход в Shop" in page.text) == (lang == "ru")


@pytest.mark.both_databases
async def test_switching_the_language_keeps_the_sign_in_and_turns_the_bots_question(
    browser, bob, ann
):
    await browser.open("/login/shop?state=abc")
    link = browser.link()

    await browser.open(browser.find(r'<a href="([^"]+)" hreflang="ru"'))
    question = await ann.open(browser.link())

    assert browser.heading == "Вход в Shop"
    assert browser.link() == link
    assert [button.text for button in question.message.buttons[0]] == ["Да", "Отмена"]


class _Dove:
    """A kind of messenger that people know by a name."""

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        return [ChannelKind("dove", Section, _dove, title="Dove Post")]


def _dove(_context, identity, _settings):
    return RecordingChannel(identity)


@pytest.mark.parametrize(
    ("channels", "names"),
    [
        ({"messenger_a": "dove"}, ["Dove Post"]),
        ({"messenger_a": "dove", "messenger_b": "recording"}, ["Dove Post", "Messenger B"]),
        ({"dove": "dove", "support": "dove"}, ["Dove Post (Dove)", "Dove Post (Support)"]),
    ],
    ids=["its own name", "one without", "two of a kind"],
)
async def test_a_messenger_is_called_as_people_know_it_whatever_its_channel_is_called(
    make_service, make_tenant, channels, names
):
    service = await make_service(
        extra_plugins=[("auth", plugin), ("dove", _Dove())],
        channels={name: {"plugin": kind} for name, kind in channels.items()},
    )
    tenant = await make_tenant(service)
    body = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/"}
    await tenant.client.post("/v1/auth/links", json=body)
    async with browsing(service) as browser:
        page = await browser.open()

    assert re.findall(r"<span>Open ([^<]+)</span>", page.text) == names


async def test_channel_names_are_as_the_operator_writes_them(make_service, make_tenant):
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        channels={"max": {"plugin": "recording"}, "tg_shop": {"plugin": "recording"}},
        auth={"messenger_names": {"tg_shop": "Telegram"}},
    )
    tenant = await make_tenant(service)
    body = {"slug": "shop", "name": "Shop", "callback_url": "https://shop.example/"}
    await tenant.client.post("/v1/auth/links", json=body)
    async with browsing(service) as browser:
        page = await browser.open()

    assert re.findall(r"<span>Open ([^<]+)</span>", page.text) == ["MAX", "Telegram"]
