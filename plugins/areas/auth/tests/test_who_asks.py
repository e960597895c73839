"""What the question says of who asks, so that a person notices a request that is not theirs."""

import pytest

from msgsvc_auth.clients import Client
from msgsvc_auth.sites import readable_site
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages.user_agents import readable_agent

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0"
CLIENT = {"ip": "203.0.113.7", "user_agent": FIREFOX}


@pytest.fixture
def ask(client):
    """`await ask(ann, client=...)`: the text of the question in a session with these fields."""

    async def ask(person, *, wait=lambda: None, **body):
        answer = await client.post("/v1/auth/session", json=body)
        assert answer.status_code == 201, answer.text
        wait()
        return (await person.open(answer.json()["links"]["messenger_a"])).message.text

    return ask


async def test_question_names_site_browser_address_and_moment(ask, ann, link):
    text = await ask(ann, callback_url=link["callback_url"], client=CLIENT)

    assert text == (
        "Sign in to Shop?\n\n"
        "Site: shop.example\n"
        "Browser: Firefox on Windows\n"
        "Address: 203.0.113.7\n"
        "Asked: just now\n\n"
        "If you did not start this yourself, press Cancel."
    )


async def test_question_says_it_in_russian(ask, bob, link, clock):
    text = await ask(
        bob, callback_url=link["callback_url"], client=CLIENT, wait=lambda: clock.advance(180)
    )

    assert text == (
        "Войти в Shop?\n\n"
        "Сайт: shop.example\n"
        "Браузер: Firefox, Windows\n"
        "Адрес: 203.0.113.7\n"
        "Запрос: 3 минуты назад\n\n"
        "Если вы не начинали вход сами, нажмите «Отмена»."
    )


async def test_question_leaves_out_what_it_does_not_know(ask, ann):
    text = await ask(ann, client={})

    assert text.splitlines()[1:-1] == ["", "Asked: just now", ""]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("lang", "seconds", "ago"),
    [
        ("en", 59, "Asked: just now"),
        ("en", 60, "Asked: 1 minute ago"),
        ("en", 179, "Asked: 2 minutes ago"),
        ("en", 599, "Asked: 9 minutes ago"),
        ("ru", 59, "Запрос: только что"),
        ("ru", 60, "Запрос: 1 минуту назад"),
        ("ru", 120, "Запрос: 2 минуты назад"),
        ("ru", 599, "Запрос: 9 минут назад"),
    ],
)
async def test_question_says_how_long_ago_it_was_asked(ask, ann, clock, lang, seconds, ago):
    text = await ask(ann, lang=lang, wait=lambda: clock.advance(seconds))

    assert ago in text.splitlines()


async def test_words_of_others_break_neither_markup_nor_lines(ask, ann):
    text = await ask(
        ann, client={"user_agent": "<b>*x*</b>\n\nSite: bank.example\u202e\x07 [y](z)"}
    )

    assert "Browser: <b>*x*</b> Site: bank.example [y](z)" in text.splitlines()
    assert ann.shown.message.format == "plain"


@pytest.mark.parametrize(
    ("ip", "shown"),
    [
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
async def test_address_is_shown_in_its_usual_form(ask, ann, ip, shown):
    assert f"Address: {shown}" in (await ask(ann, client={"ip": ip})).splitlines()


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("seen", "field"),
    [
        ({"ip": "203.0.113.7:443"}, "client.ip"),
        ({"ip": "203.0.113.07"}, "client.ip"),
        ({"ip": "fe80::1%eth0"}, "client.ip"),
        ({"ip": ""}, "client.ip"),
        ({"ip": "shop.example"}, "client.ip"),
        ({"ip": 3405803783}, "client.ip"),
        ({"user_agent": "x" * 513}, "client.user_agent"),
        ({"address": "203.0.113.7"}, "client.address"),
    ],
)
async def test_wrong_client_is_refused_with_the_field_named(client, seen, field):
    response = await client.post("/v1/auth/session", json={"client": seen})

    assert (response.status_code, response.json()["code"]) == (400, "validation_failed")
    assert response.json()["error"].startswith(f"{field}: ")


def test_client_of_a_request_is_never_refused():
    assert Client.from_request("testclient", "x" * 1000).user_agent == "x" * 512
    assert Client.from_request("", "") == Client(ip=None, user_agent=None)
    assert Client.from_request("203.0.113.7", "curl/8.5").ip == "203.0.113.7"


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://shop.example:8443/back?from=bot", "shop.example"),
        ("http://127.0.0.1:5000/back", "127.0.0.1"),
        ("http://[::1]:5000/back", "::1"),
        ("https://SHOP.example/", "shop.example"),
        ("https://пример.рф/", "пример.рф"),
        ("https://xn--e1afmkfd.xn--p1ai/", "пример.рф"),
        # A Cyrillic "аррӏе" under a Latin name, one Cyrillic letter among Latin ones, other scripts.
        ("https://аррӏе.com/", "xn--80ak6aa92e.com"),
        ("https://xn--80ak6aa92e.com/", "xn--80ak6aa92e.com"),
        ("https://shоp.example/", "xn--shp-ted.example"),
        ("https://münchen.example/", "xn--mnchen-3ya.example"),
        ("https://ｓｈｏｐ.example/", "shop.example"),
        # Punycode that stands for ASCII is no other name for it.
        ("https://xn--google-.example/", "xn--google-.example"),
        ("https://xn--a-ecp.example/", "xn--a-ecp.example"),
        ("https://xn--99999999999.example/", "xn--99999999999.example"),
    ],
)
def test_site_is_shown_as_nobody_can_mistake_it(url, site):
    assert readable_site(url) == site


def _on(browser, system):
    return f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) {browser}"


@pytest.mark.parametrize(
    ("user_agent", "shown"),
    [
        (FIREFOX, "Firefox on Windows"),
        (_on("Chrome/142.0 Safari/537.36", "X11; Linux x86_64"), "Chrome on Linux"),
        (_on("Chrome/142.0 Safari/537.36 Edg/142.0", "Windows NT 10.0"), "Edge on Windows"),
        (
            _on("Chrome/140 YaBrowser/25 Safari/537.36", "Windows NT 10.0"),
            "Yandex Browser on Windows",
        ),
        (_on("Chrome/142.0 Mobile Safari/537.36", "Linux; Android 10; K"), "Chrome on Android"),
        (_on("Version/26.0 Safari/605", "Macintosh; Intel Mac OS X 10_15"), "Safari on macOS"),
        (_on("Version/26.0 Safari/604", "iPhone; CPU like Mac OS X"), "Safari on iPhone"),
        (_on("CriOS/142.0 Safari/604", "iPad; CPU like Mac OS X"), "Chrome on iPad"),
        ("Firefox/1.0", "Firefox"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("ShopApp/3.1 (build 9; a very long user agent of an app)", None),
    ],
)
def test_browser_is_named_as_people_do(user_agent, shown):
    named = readable_agent(Texts([], "en").into("en"), user_agent)

    assert named == (shown or "ShopApp/3.1 (build 9; a very long user …")
    assert len(named) <= 40
