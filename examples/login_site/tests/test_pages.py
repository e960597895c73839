"""What the pages show and do, and what the site says when it can't start."""

import asyncio
import sys

from examples.login_site.tests.browser import Browser
from examples.login_site.tests.conftest import APP


async def test_without_scripts_the_button_is_a_link_to_the_services_page(browser: Browser) -> None:
    status, page = await browser.get("/")

    assert status == 200
    assert 'href="/login">Sign in with a messenger</a></msgsvc-signin>' in page


async def test_the_pages_policy_is_strict_and_the_element_comes_from_the_site(
    browser: Browser,
) -> None:
    async with browser.http.get("/") as response:
        policy = response.headers["Content-Security-Policy"]
    async with browser.http.get("/static/msgsvc-signin.js") as response:
        element = await response.text()

    assert policy.startswith("default-src 'self'; script-src 'self'; style-src 'self';")
    assert "require-trusted-types-for 'script'" in policy
    assert (response.content_type, "msgsvc-signin" in element) == ("text/javascript", True)


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


async def test_a_missing_setting_is_named() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(APP), env={}, stderr=asyncio.subprocess.PIPE
    )
    _, stderr = await process.communicate()

    assert process.returncode == 1
    assert b"LOGIN_SITE_SERVICE_URL, LOGIN_SITE_API_KEY" in stderr
