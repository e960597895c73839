"""Devices and backchannel requests, with the plugin that signs people in and a messenger's bot: from the
client's request to the button that the person presses."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_oidc import plugin as oidc
from plugins.areas.auth.tests.conftest import Person
from plugins.areas.auth.tests.hosted import Browser, browsing

CIBA = "urn:openid:params:grant-type:ciba"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"

Post = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
async def service(make_service: Callable[..., Awaitable[Service]]) -> Service:
    plugins = [("auth", auth), ("oidc", oidc)]
    return await make_service(
        extra_plugins=plugins, oidc={"signing_alg": "ES256"}, base_url="http://msgsvc.test"
    )


@pytest.fixture
def ann(service: Service) -> Person:
    return Person(service, "messenger_a", ChannelUser("1001", "Ann", "ann_k", "en"))


@pytest.fixture
async def browser(service: Service) -> AsyncIterator[Browser]:
    async with browsing(service) as opened:
        yield opened


@pytest.fixture
async def bank(client: httpx2.AsyncClient) -> dict[str, Any]:
    body = {
        "name": "Bank",
        "home_url": "https://bank.example/",
        "grant_types": [CIBA, DEVICE_CODE],
        "token_endpoint_auth_method": "client_secret_post",
    }
    response = await client.post("/v1/oidc/clients", json=body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.fixture
def post(browser: Browser, service: Service, bank: dict[str, Any]) -> Post:
    """A request of the client."""
    credentials = {name: bank[name] for name in ("client_id", "client_secret")}

    async def post(path: str, **fields: str) -> httpx2.Response:
        url = urlsplit(bank["issuer"]).path + path
        response = await browser.http.post(url, data={**credentials, **fields})
        await settled(service)
        return response

    return post


@pytest.fixture
async def subscriber_id(service: Service, tenant: Any, ann: Person) -> str:
    """Ann, who started the bot before."""
    async with service.db.transaction() as tx:
        known = await service.subscribers.ensure(
            tx, tenant.project.project_id, "messenger_a", ann.user, ann.chat_id, source="deep_link"
        )
    await settled(service)
    return known.subscriber_id


@pytest.mark.both_databases
async def test_a_back_end_has_ann_asked_and_she_presses_the_number(post, ann, subscriber_id):
    asked = await post(
        "/bc-authorize",
        scope="openid profile",
        login_hint=subscriber_id,
        binding_message="Pay 20 EUR",
        acr_values="urn:msgsvc:acr:number",
    )
    question = ann.shown
    auth_req_id = asked.json()["auth_req_id"]
    waiting = await post("/token", grant_type=CIBA, auth_req_id=auth_req_id)
    await ann.press(question, str(asked.json()["match_number"]))
    tokens = await post("/token", grant_type=CIBA, auth_req_id=auth_req_id)
    again = await post("/token", grant_type=CIBA, auth_req_id=auth_req_id)

    assert question.message.text == (
        "Bank asks you to confirm, with Shop:\n\nPay 20 EUR\n\n"
        "Bank may then:\n• Recognise you when you sign in again\n"
        "• See your name, user name and language\nSite: bank.example\n\n"
        "Press the number that Bank shows you. If you did not start this yourself, press Cancel."
    )
    assert waiting.json()["error"] == "authorization_pending"
    assert tokens.status_code == 200
    assert again.json()["error"] == "invalid_grant"
    assert ann.shown.message.text == "Confirmed for Bank."


async def test_cancel_in_the_bot_refuses_the_back_end(post, ann, subscriber_id):
    asked = await post("/bc-authorize", scope="openid", login_hint=subscriber_id)
    await ann.press(ann.shown, "Cancel")
    answer = await post("/token", grant_type=CIBA, auth_req_id=asked.json()["auth_req_id"])

    assert (answer.status_code, answer.json()["error"]) == (400, "access_denied")


async def test_more_questions_than_a_person_is_asked_at_once_have_to_wait(post, subscriber_id):
    asked = [
        await post("/bc-authorize", scope="openid", login_hint=subscriber_id) for _ in range(4)
    ]

    assert [response.status_code for response in asked] == [200, 200, 200, 429]
    assert asked[-1].json()["error"] == "temporarily_unavailable"
    assert 0 < int(asked[-1].headers["Retry-After"]) <= 300


async def test_who_has_blocked_the_bot_is_not_asked(post, service, ann, subscriber_id):
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", ann.user.user_id, reason="blocked")
    asked = await post("/bc-authorize", scope="openid", login_hint=subscriber_id)

    assert (asked.status_code, asked.json()["error"]) == (403, "access_denied")


@pytest.mark.both_databases
async def test_a_device_is_connected_by_code_number_and_consent(post, ann, browser, bank):
    codes = (await post("/device_authorization", scope="openid")).json()
    await browser.open(codes["verification_uri_complete"])
    page = await browser.http.post(
        urlsplit(codes["verification_uri"]).path, data={"user_code": codes["user_code"]}
    )
    await browser.open(page.headers["Location"])
    heading, number = browser.heading, browser.find(r'class="number"[^>]*>\s*(\d+)')
    question = await ann.open(browser.link())
    await ann.press(question, number)
    back = await browser.reload()
    consent = await browser.open((await browser.open(back.headers["Location"])).headers["Location"])
    answered = await browser.http.post(consent.url, data={"answer": "allow"})
    tokens = await post("/token", grant_type=DEVICE_CODE, device_code=codes["device_code"])

    assert heading == "Sign in to Bank"
    assert question.message.text.startswith("Sign in to Bank with Shop?")
    assert "Go back to your device." in answered.text
    assert tokens.status_code == 200


async def question_of_a_device(post, ann, browser) -> tuple[dict[str, Any], Any]:
    """The codes of a device, and the question that Ann is asked after she entered hers."""
    codes = (await post("/device_authorization", scope="openid")).json()
    await browser.open(codes["verification_uri_complete"])
    page = await browser.http.post(
        urlsplit(codes["verification_uri"]).path, data={"user_code": codes["user_code"]}
    )
    await browser.open(page.headers["Location"])
    return codes, await ann.open(browser.link())


@pytest.mark.both_databases
async def test_a_device_learns_of_cancel_in_the_messenger_at_once(post, ann, browser):
    codes, question = await question_of_a_device(post, ann, browser)
    waiting = await post("/token", grant_type=DEVICE_CODE, device_code=codes["device_code"])
    await ann.press(question, "Cancel")

    refused = await post("/token", grant_type=DEVICE_CODE, device_code=codes["device_code"])
    # The browser that still shows the page goes back, and sees the same.
    await browser.reload()
    ended = await browser.open(browser.find(r'href="([^"]*error=access_denied[^"]*)"'))

    assert waiting.json()["error"] == "authorization_pending"
    assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")
    assert "Not connected" in ended.text


async def test_a_device_learns_of_a_wrong_number_at_once(post, ann, browser):
    codes, question = await question_of_a_device(post, ann, browser)
    right = browser.find(r'class="number"[^>]*>\s*(\d+)')
    offered = [button.text for row in question.message.buttons for button in row]
    wrong = next(each for each in offered if each.isdigit() and each != right)
    await ann.press(question, wrong)

    refused = await post("/token", grant_type=DEVICE_CODE, device_code=codes["device_code"])

    assert refused.json()["error"] == "access_denied"
