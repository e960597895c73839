"""The example site, started as its reader starts it, against a fake of the service's API."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

APP = Path(__file__).parents[1] / "app.py"
API_KEY = "msk_test"
SECRET = "whsec_dGVzdA=="
CHANNELS = ("messenger_a", "messenger_b")
JSON = {"Accept": "application/json"}

#: Starting the site takes most of a second, so all tests share one, each with a browser of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")


class FakeService:
    """The five calls the site makes, and what the messenger would do to a session."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, Any]] = {}
        self.sent: list[dict[str, Any]] = []
        self.app = web.Application(middlewares=[self._authenticated])
        self.app.add_routes(
            [
                web.get("/v1/auth/links/demo", self._links),
                web.post("/v1/auth/session", self._open),
                web.get("/v1/auth/session/{id}/status", self._status),
                web.post("/v1/auth/verify", self._verify),
                web.post("/v1/send", self._send),
            ]
        )

    def press_yes(self, session_id: str, first_name: str) -> str:
        """Confirm a session in the messenger; returns the code."""
        session = self.sessions[session_id]
        session["status"] = "confirmed"
        session["code"] = self.code_for(first_name, session_id, session["state"])
        return str(session["code"])

    def press_cancel(self, session_id: str) -> None:
        self.sessions[session_id]["status"] = "denied"

    def code_for(self, first_name: str, session_id: str, state: str | None = None) -> str:
        """A code as a confirmation makes it; without a state it is a static link's."""
        code = secrets.token_urlsafe(32)
        self.codes[code] = {
            "subscriber_id": f"sub_{first_name}",
            "channel": "messenger_a",
            "first_name": first_name,
            "username": first_name.lower(),
            "lang": "en",
            "tags": [],
            "state": state,
            "session_id": session_id,
            "auth_time": "2026-11-05T10:00:00Z",
        }
        return code

    @web.middleware
    async def _authenticated(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {API_KEY}":
            return refusal(401, "invalid_api_key", "the API key is wrong")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _links(self, request: web.Request) -> web.Response:
        links = {channel: f"https://chat.test/{channel}?start=auth_demo" for channel in CHANNELS}
        return web.json_response({"slug": "demo", "links": links})

    async def _open(self, request: web.Request) -> web.Response:
        session_id = f"ses_{secrets.token_hex(8)}"
        self.sessions[session_id] = {"status": "pending", **await request.json()}
        base = f"https://chat.test/{session_id}"
        answer = {
            "session_id": session_id,
            "status": "pending",
            "links": {channel: f"{base}/{channel}" for channel in CHANNELS},
            "qr": {channel: f"{base}/{channel}.svg" for channel in CHANNELS},
            "expires_in": 600,
            "interval": 2,
        }
        return web.json_response(answer, status=201)

    async def _status(self, request: web.Request) -> web.Response:
        session_id = request.match_info["id"]
        session = self.sessions[session_id]
        known = {key: session[key] for key in ("status", "state", "code") if key in session}
        return web.json_response({"session_id": session_id, "expires_in": 500, **known})

    async def _verify(self, request: web.Request) -> web.Response:
        person = self.codes.pop((await request.json())["code"], None)
        if person is None:
            return refusal(400, "auth_code_invalid", "code: no such <code>")
        return web.json_response(person)

    async def _send(self, request: web.Request) -> web.Response:
        key = request.headers["Idempotency-Key"]
        self.sent.append({"key": key, **await request.json()})
        return web.json_response({"message_id": "msg_1", "status": "queued"}, status=202)


def refusal(status: int, code: str, message: str) -> web.Response:
    envelope = {"error": message, "code": code, "retryable": False, "docs_url": f"/errors#{code}"}
    return web.json_response(envelope, status=status)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[tuple[FakeService, str]]:
    fake = FakeService()
    runner = web.AppRunner(fake.app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield fake, f"http://{host}:{port}"
    await runner.cleanup()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site_url(service: tuple[FakeService, str]) -> AsyncIterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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
    async with aiohttp.ClientSession() as http, asyncio.timeout(20):
        while process.returncode is None:
            try:
                async with http.get(f"{url}/session.json"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)
    raise AssertionError("the site ended while starting; its output is above")


@dataclass
class Browser:
    """Somebody's browser on the site, and the messenger service behind it."""

    http: aiohttp.ClientSession
    service: FakeService
    session_id: str = ""

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.http.get(path, **options) as response:
            return response.status, await response.text()

    async def post(self, path: str, **fields: str) -> tuple[int, str]:
        async with self.http.post(path, data=fields) as response:
            return response.status, await response.text()

    async def json(self, path: str) -> Any:
        async with self.http.get(path) as response:
            return await response.json()

    async def begin(self, kind: str) -> dict[str, Any]:
        """Press the button of variant 2 (`link`) or 3 (`qr`)."""
        async with self.http.post("/login/session", data={"kind": kind}, headers=JSON) as response:
            answer: dict[str, Any] = await response.json()
        self.session_id = answer["session_id"]
        return answer

    @property
    def state(self) -> str:
        """The state the site sent to the service; a browser never sees it before the callback."""
        return str(self.service.sessions[self.session_id]["state"])


@pytest_asyncio.fixture(loop_scope="module")
async def browser(site_url: str, service: tuple[FakeService, str]) -> AsyncIterator[Browser]:
    async with new_http(site_url) as http:
        yield Browser(http, service[0])


def new_http(site_url: str) -> aiohttp.ClientSession:
    # unsafe: aiohttp drops the cookies of a bare address like 127.0.0.1 otherwise.
    return aiohttp.ClientSession(site_url, cookie_jar=aiohttp.CookieJar(unsafe=True))


async def test_the_home_page_links_to_the_bot_of_every_messenger(browser: Browser) -> None:
    status, page = await browser.get("/")

    assert status == 200
    for channel in CHANNELS:
        assert f'href="https://chat.test/{channel}?start=auth_demo"' in page


async def test_a_static_link_signs_in_and_greets_by_first_name(browser: Browser) -> None:
    code = browser.service.code_for("Ann", "ses_static")

    status, page = await browser.get(f"/callback?code={code}")

    assert status == 200
    assert "Hello, Ann!" in page


async def test_a_session_comes_back_with_its_state_and_signs_in(browser: Browser) -> None:
    await browser.begin("link")
    code = browser.service.press_yes(browser.session_id, "Boris")

    _, page = await browser.get("/callback", params={"code": code, "state": browser.state})

    assert "Hello, Boris!" in page
    assert (await browser.json("/session.json"))["subscriber_id"] == "sub_Boris"


async def test_only_the_link_session_names_a_callback(browser: Browser) -> None:
    await browser.begin("qr")
    qr = browser.service.sessions[browser.session_id]
    await browser.begin("link")
    link = browser.service.sessions[browser.session_id]

    assert "callback_url" not in qr
    assert link["callback_url"].endswith("/callback")


async def test_a_wrong_state_is_refused_and_leaves_the_code_alone(browser: Browser) -> None:
    await browser.begin("link")
    code = browser.service.press_yes(browser.session_id, "Cleo")

    status, page = await browser.get("/callback", params={"code": code, "state": "guessed"})

    assert status == 400
    assert "not started in this browser" in page
    assert code in browser.service.codes


async def test_another_browsers_state_is_refused(browser: Browser, site_url: str) -> None:
    await browser.begin("link")
    code = browser.service.press_yes(browser.session_id, "Mallory")

    async with new_http(site_url) as http:
        victim = Browser(http, browser.service)
        await victim.begin("link")
        status, _ = await victim.get("/callback", params={"code": code, "state": browser.state})

        assert status == 400
        assert (await victim.json("/session.json")) == {"signed_in": False}


async def test_a_code_of_another_session_beside_our_state_is_refused(browser: Browser) -> None:
    await browser.begin("link")
    foreign = browser.service.code_for("Mallory", "ses_other", state="of-another-browser")

    status, _ = await browser.get("/callback", params={"code": foreign, "state": browser.state})

    assert status == 400
    assert (await browser.json("/session.json")) == {"signed_in": False}


async def test_a_session_code_with_its_state_stripped_is_refused(browser: Browser) -> None:
    stripped = browser.service.code_for("Mallory", "ses_other", state="of-another-browser")

    status, _ = await browser.get(f"/callback?code={stripped}")

    assert status == 400
    assert (await browser.json("/session.json")) == {"signed_in": False}


async def test_a_refused_code_shows_the_services_error_escaped(browser: Browser) -> None:
    status, page = await browser.get("/callback?code=used-or-made-up")

    assert status == 400
    assert "auth_code_invalid" in page
    assert "code: no such &lt;code&gt;" in page


async def test_head_of_the_callback_does_not_spend_the_code(browser: Browser) -> None:
    code = browser.service.code_for("Dora", "ses_static")

    async with browser.http.head(f"/callback?code={code}") as response:
        assert response.status == 200

    assert code in browser.service.codes


async def test_polling_a_confirmed_qr_session_signs_in(browser: Browser) -> None:
    status_url = (await browser.begin("qr"))["status_url"]
    before = await browser.json(status_url)
    browser.service.press_yes(browser.session_id, "Egor")

    after = await browser.json(status_url)

    assert (before["status"], after["status"]) == ("pending", "signed_in")
    assert "Hello, Egor!" in (await browser.get("/"))[1]


async def test_signing_in_changes_the_cookie(browser: Browser) -> None:
    status_url = (await browser.begin("qr"))["status_url"]
    before = {cookie.value for cookie in browser.http.cookie_jar}
    browser.service.press_yes(browser.session_id, "Faina")

    await browser.json(status_url)

    assert before.isdisjoint({cookie.value for cookie in browser.http.cookie_jar})


async def test_polling_from_another_browser_lets_nobody_in(browser: Browser, site_url: str) -> None:
    status_url = (await browser.begin("qr"))["status_url"]
    code = browser.service.press_yes(browser.session_id, "Gleb")

    async with new_http(site_url) as http:
        status, _ = await Browser(http, browser.service).get(status_url)

    assert status == 404
    assert code in browser.service.codes


@pytest.mark.parametrize("kind", ["link", "qr"])
async def test_a_cancelled_sign_in_is_told(browser: Browser, kind: str) -> None:
    status_url = (await browser.begin(kind))["status_url"]
    browser.service.press_cancel(browser.session_id)

    answer = await browser.json(status_url)

    assert answer == {
        "status": "denied",
        "message": "Sign-in was cancelled in the messenger.",
    }


async def test_an_expired_sign_in_is_told_and_the_next_one_is_new(browser: Browser) -> None:
    first = await browser.begin("qr")
    browser.service.sessions[first["session_id"]]["status"] = "expired"

    answer = await browser.json(first["status_url"])
    second = await browser.begin("qr")

    assert answer["status"] == "expired"
    assert second["session_id"] != first["session_id"]


async def test_pressing_again_goes_on_with_the_open_session(browser: Browser) -> None:
    first = await browser.begin("qr")
    second = await browser.begin("qr")

    assert second == first


async def test_the_page_allows_the_qr_image_and_no_other_host(browser: Browser) -> None:
    await browser.begin("qr")

    async with browser.http.get("/") as response:
        policy = response.headers["Content-Security-Policy"]

    assert "default-src 'self'; img-src 'self' https://chat.test; " in policy


async def test_the_page_speaks_russian_when_asked(browser: Browser) -> None:
    _, by_header = await browser.get("/", headers={"Accept-Language": "ru-RU,ru;q=0.9,en;q=0.8"})
    _, by_query = await browser.get("/?lang=ru")
    _, kept_by_cookie = await browser.get("/")

    for page in (by_header, by_query, kept_by_cookie):
        assert '<html lang="ru">' in page


async def test_a_notification_goes_to_the_signed_in_person_alone(browser: Browser) -> None:
    await browser.get(f"/callback?code={browser.service.code_for('Hedda', 'ses_static')}")

    _, page = await browser.post(
        "/notify", idempotency_key="made-with-the-page", subscriber_id="sub_somebody_else"
    )

    assert "On its way to your messenger (msg_1)." in page
    assert browser.service.sent[-1] == {
        "key": "made-with-the-page",
        "subscriber_id": "sub_Hedda",
        "text": "Hello, Hedda! This is a notification from Pinewood Library.",
    }


async def test_a_signed_out_browser_sends_nothing(browser: Browser) -> None:
    before = len(browser.service.sent)

    await browser.post("/notify", idempotency_key="made-with-the-page")

    assert len(browser.service.sent) == before


async def test_logging_out_ends_the_session(browser: Browser) -> None:
    await browser.get(f"/callback?code={browser.service.code_for('Ivan', 'ses_static')}")

    _, page = await browser.post("/logout")

    assert "You are signed out" in page
    assert (await browser.json("/session.json")) == {"signed_in": False}


def signed(body: bytes, delivery_id: str, *secrets_: str) -> dict[str, str]:
    """The headers of a delivery signed with each of the secrets."""
    now = str(int(time.time()))
    digests = [
        hmac.new(secret.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
        for secret in secrets_
    ]
    signature = ",".join([f"t={now}", *(f"v1={digest}" for digest in digests)])
    return {"X-Service-Signature": signature, "X-Service-Delivery-Id": delivery_id}


async def deliver(browser: Browser, body: bytes, headers: dict[str, str]) -> int:
    async with browser.http.post("/webhooks", data=body, headers=headers) as response:
        return response.status


async def listed(browser: Browser, delivery_id: str) -> list[dict[str, Any]]:
    received = await browser.json("/events.json")
    return [one for one in received if one["delivery_id"] == delivery_id]


def event_body(first_name: str) -> bytes:
    # Spaces and Cyrillic as no serialiser would write them again: the raw bytes are what counts.
    data = json.dumps({"first_name": first_name}, ensure_ascii=False)
    return f'{{ "event":"auth.completed",  "data": {data} }}'.encode()


async def test_a_signed_delivery_is_listed_as_valid(browser: Browser) -> None:
    body = event_body("Анна")

    status = await deliver(browser, body, signed(body, "whd_valid", SECRET))

    [event] = await listed(browser, "whd_valid")
    assert status == 204
    assert event.pop("received_at").endswith("Z")
    assert event == {
        "delivery_id": "whd_valid",
        "event": "auth.completed",
        "data": {"first_name": "Анна"},
        "signature_valid": True,
        "tries": 1,
    }


async def test_one_matching_signature_of_two_is_enough(browser: Browser) -> None:
    body = event_body("Jan")

    status = await deliver(browser, body, signed(body, "whd_rotated", "whsec_old", SECRET))

    assert status == 204


@pytest.mark.parametrize(
    "signature", ["", "t=1", "t=1,v1=00", "t=1,v1=", "v1=ключ", "garbage", "t=1,v1=" + "0" * 64]
)
async def test_a_bad_signature_is_refused_and_its_content_not_kept(
    browser: Browser, signature: str
) -> None:
    delivery_id = f"whd_{secrets.token_hex(4)}"
    headers = {"X-Service-Signature": signature, "X-Service-Delivery-Id": delivery_id}

    status = await deliver(browser, event_body("Mallory"), headers)

    [event] = await listed(browser, delivery_id)
    assert status == 400
    assert (event["signature_valid"], event["data"]) == (False, None)


async def test_a_changed_body_is_refused(browser: Browser) -> None:
    headers = signed(event_body("Kim"), "whd_changed", SECRET)

    assert await deliver(browser, event_body("Kim "), headers) == 400


async def test_a_repeated_delivery_is_counted_and_listed_once(browser: Browser) -> None:
    body = event_body("Lena")

    first = await deliver(browser, body, signed(body, "whd_twice", SECRET))
    second = await deliver(browser, body, signed(body, "whd_twice", SECRET))

    [event] = await listed(browser, "whd_twice")
    assert (first, second) == (204, 204)
    assert event["tries"] == 2


async def test_a_forged_delivery_does_not_take_the_id_of_a_real_one(browser: Browser) -> None:
    body = event_body("Mira")

    await deliver(browser, body, signed(body, "whd_raced", "whsec_wrong"))
    await deliver(browser, body, signed(body, "whd_raced", SECRET))

    marks = [event["signature_valid"] for event in await listed(browser, "whd_raced")]
    assert sorted(marks) == [False, True]


async def test_a_body_beyond_the_limit_is_refused(browser: Browser) -> None:
    body = b" " * (1_048_576 + 1)
    headers = signed(body, "whd_large", SECRET)

    async with browser.http.post("/webhooks", data=io.BytesIO(body), headers=headers) as response:
        assert response.status == 413


async def test_a_missing_setting_is_named() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(APP), env={}, stderr=asyncio.subprocess.PIPE
    )
    _, stderr = await process.communicate()

    assert process.returncode == 1
    assert b"LOGIN_SITE_SERVICE_URL, LOGIN_SITE_API_KEY" in stderr
