"""The three ways to sign in, on every messenger: the question, each answer to it, the way back."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.channels.conftest import knows_bot
from tests.channels.phones import MESSENGERS, Messenger, Phone, Seen, seen

#: The name is what somebody typed; it must reach the chat letter by letter.
PROJECT = "*Shop* <b>&"

CALLBACK = "https://shop.example/back?from=bot"

CLIENT = {
    "ip": "203.0.113.7",
    "user_agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
}

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "question": f"Sign in to {PROJECT}?",
        "circumstances": (
            "Site: shop.example\nBrowser: Firefox on Linux\nAddress: 203.0.113.7\nAsked: just now"
        ),
        "yes": "Yes",
        "cancel": "Cancel",
        "pick": "Press the number that the page shows.",
        "done": f"You are signed in to {PROJECT}.",
        "go back": "Go back to the page where you started.",
        "return": "Return to the site",
        "denied": f"Cancelled. You are not signed in to {PROJECT}.",
        "wrong": f"That is not the number on the page. You are not signed in to {PROJECT}.",
        "late": "This sign-in request is no longer valid. Please start again on the site.",
    },
    "ru": {
        "question": f"Войти в {PROJECT}?",
        "circumstances": (
            "Сайт: shop.example\nБраузер: Firefox, Linux\nАдрес: 203.0.113.7\nЗапрос: только что"
        ),
        "yes": "Да",
        "cancel": "Отмена",
        "pick": "Нажмите число, которое видите на странице.",
        "done": f"Вы вошли в {PROJECT}.",
        "go back": "Вернитесь на страницу, с которой начали.",
        "return": "Вернуться на сайт",
        "denied": f"Отменено. Вы не вошли в {PROJECT}.",
        "wrong": f"На странице другое число. Вы не вошли в {PROJECT}.",
        "late": "Этот запрос на вход больше не действует. Начните заново на сайте.",
    },
}

#: What a language says does not depend on the database, so each has one of its own.
pytestmark = [
    pytest.mark.parametrize("kind", MESSENGERS),
    pytest.mark.parametrize(
        ("backend", "lang"), [("sqlite", "en"), ("postgresql", "ru")], indirect=["backend"]
    ),
]


@pytest.fixture
async def messenger(kind: str) -> AsyncIterator[Messenger]:
    async with MESSENGERS[kind]() as messenger:
        yield messenger


@pytest.fixture
async def service(make_service: ServiceFactory, messenger: Messenger) -> Service:
    service = await make_service(
        extra_plugins=[(messenger.name, messenger.plugin), ("auth", auth)],
        channels={"messenger_a": {"plugin": messenger.name, **messenger.settings}},
        use_clock=SystemClock(),
    )
    if messenger.settings:
        # The sandbox has no platform that would have to be asked for the bot's name.
        await knows_bot(service, "messenger_a")
    return service


@pytest.fixture
async def tenant(service: Service, make_tenant: Any) -> Tenant:
    tenant: Tenant = await make_tenant(service, PROJECT)
    return tenant


@pytest.fixture
async def phone(service: Service, messenger: Messenger, lang: str) -> Phone:
    return await messenger.phone(service, lang)


@pytest.fixture
def words(lang: str) -> dict[str, str]:
    return WORDS[lang]


@pytest.fixture
async def link(client: httpx2.AsyncClient) -> dict[str, Any]:
    body = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    return await post(client, "/v1/auth/links", body)


async def post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def status_of(
    client: httpx2.AsyncClient, session: dict[str, Any], wait: int = 0
) -> dict[str, Any]:
    path = f"/v1/auth/session/{session['session_id']}/status?wait={wait}"
    found: dict[str, Any] = (await client.get(path)).json()
    return found


async def asked(phone: Phone, links: dict[str, Any], words: dict[str, str]) -> Seen:
    """The question, after the link was opened."""
    await phone.open(links["links"]["messenger_a"])
    return await seen(phone, words["question"])


async def test_a_static_link_leads_back_with_a_code(
    client: httpx2.AsyncClient, link: dict[str, Any], phone: Phone, words: dict[str, str]
) -> None:
    question = await asked(phone, link, words)
    await phone.press(words["yes"])

    done = await seen(phone, words["done"])
    [[(label, url)]] = done.buttons
    query = parse_qs(urlsplit(url or "").query)
    verified = await post(client, "/v1/auth/verify", {"code": query["code"][0]})
    assert (done.ref, done.text) == (question.ref, words["done"])
    assert label == words["return"]
    assert query.keys() == {"from", "code"}
    assert (verified["first_name"], verified["username"]) == ("Ann", "ann_k")
    assert (verified["state"], verified["channel"]) == ("", "messenger_a")


async def test_a_session_asks_with_all_that_is_known_and_returns_its_state(
    client: httpx2.AsyncClient,
    link: dict[str, Any],
    phone: Phone,
    words: dict[str, str],
    lang: str,
) -> None:
    body = {"state": "a b&c=ё", "callback_url": CALLBACK, "lang": lang, "client": CLIENT}
    session = await post(client, "/v1/auth/session", body)

    question = await asked(phone, session, words)
    notice = await phone.press(words["yes"])
    [[(_, url)]] = (await seen(phone, words["done"])).buttons
    query = parse_qs(urlsplit(url or "").query)
    verified = await post(client, "/v1/auth/verify", {"code": query["code"][0]})

    assert question.text.split("\n\n")[:2] == [words["question"], words["circumstances"]]
    assert not question.marked_up
    assert question.labels == [[words["yes"], words["cancel"]]]
    assert notice == ""
    assert (query["state"], verified["state"]) == (["a b&c=ё"], "a b&c=ё")
    assert verified["session_id"] == session["session_id"]


async def test_a_qr_code_signs_in_the_browser_that_polls(
    client: httpx2.AsyncClient, phone: Phone, words: dict[str, str]
) -> None:
    session = await post(client, "/v1/auth/session", {"state": "xyz"})
    picture = await client.get(urlsplit(session["qr"]["messenger_a"]).path)

    question = await asked(phone, session, words)
    before = await status_of(client, session)
    await phone.press(words["yes"])
    after = await status_of(client, session, wait=25)
    done = await seen(phone, words["done"])
    verified = await post(client, "/v1/auth/verify", {"code": after["code"]})

    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert (before["status"], after["status"]) == ("pending", "confirmed")
    assert (done.ref, done.text) == (question.ref, f"{words['done']} {words['go back']}")
    assert done.buttons == ()
    assert verified["state"] == "xyz"
    assert (await status_of(client, session))["status"] == "consumed"


async def test_cancel_denies(
    client: httpx2.AsyncClient, phone: Phone, words: dict[str, str]
) -> None:
    session = await post(client, "/v1/auth/session", {"state": "xyz"})

    question = await asked(phone, session, words)
    await phone.press(words["cancel"])
    denied = await seen(phone, words["denied"])

    assert (denied.ref, denied.text, denied.buttons) == (question.ref, words["denied"], ())
    assert (await status_of(client, session))["status"] == "denied"


async def test_the_right_number_signs_in(
    client: httpx2.AsyncClient, phone: Phone, words: dict[str, str]
) -> None:
    session = await post(client, "/v1/auth/session", {"number_matching": True})

    question = await asked(phone, session, words)
    await phone.press(str(session["match_number"]))
    done = await seen(phone, words["done"])

    numbers, cancel = question.labels
    assert words["pick"] in question.text
    assert (len(set(numbers)), cancel) == (3, [words["cancel"]])
    assert done.ref == question.ref
    assert (await status_of(client, session, wait=25))["status"] == "confirmed"


async def test_a_wrong_number_denies(
    client: httpx2.AsyncClient, phone: Phone, words: dict[str, str]
) -> None:
    session = await post(client, "/v1/auth/session", {"number_matching": True})

    question = await asked(phone, session, words)
    wrong = next(each for each in question.labels[0] if each != str(session["match_number"]))
    notice = await phone.press(wrong)
    denied = await seen(phone, words["wrong"])

    assert (denied.ref, denied.text, denied.buttons) == (question.ref, words["wrong"], ())
    assert notice == words["wrong"]
    assert (await status_of(client, session))["status"] == "denied"


async def test_yes_to_an_older_copy_of_a_cancelled_question_only_tells(
    client: httpx2.AsyncClient, phone: Phone, words: dict[str, str]
) -> None:
    session = await post(client, "/v1/auth/session", {"state": "xyz"})
    older = await asked(phone, session, words)
    await phone.open(session["links"]["messenger_a"])
    await until(lambda: newer_than(phone, older))
    await phone.press(words["cancel"])
    await seen(phone, words["denied"])

    notice = await phone.press(words["yes"])

    assert notice == words["late"]
    assert (await seen(phone, words["late"])).ref == older.ref
    assert (await status_of(client, session))["status"] == "denied"


async def newer_than(phone: Phone, older: Seen) -> bool:
    """Whether the bot has written again."""
    return (await phone.messages())[-1].ref != older.ref
