"""Signing in by a static link, a link of the browser's own and a QR code, and who is kept out."""

import pytest

from examples.login_site.tests.browser import Browser, new_http

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


async def test_hosted_page_is_opened_with_a_state_that_comes_back(browser: Browser) -> None:
    state = await browser.begin_hosted()
    code = browser.service.code_for("Zoe", "ses_hosted", state=state)

    again = await browser.begin_hosted()
    _, page = await browser.get("/callback", params={"code": code, "state": state})

    assert again == state
    assert "Hello, Zoe!" in page


async def test_hosted_state_of_another_browser_is_refused(browser: Browser, site_url: str) -> None:
    state = await browser.begin_hosted()
    code = browser.service.code_for("Mallory", "ses_hosted", state=state)

    async with new_http(site_url) as http:
        victim = Browser(http, browser.service)
        await victim.begin_hosted()
        status, _ = await victim.get("/callback", params={"code": code, "state": state})

        assert status == 400
        assert (await victim.json("/session.json")) == {"signed_in": False}


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
