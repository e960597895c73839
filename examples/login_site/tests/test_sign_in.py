"""Signing in by the button, on the service's own page and by a static link, and who is kept out."""

import pytest

from examples.login_site.tests.browser import Browser, new_http


def session_cookie(browser: Browser) -> str:
    return next(cookie.value for cookie in browser.http.cookie_jar if cookie.key == "session")


async def test_the_button_is_told_what_to_show_and_nothing_more(browser: Browser) -> None:
    shown = await browser.begin()

    session = browser.service.sessions[browser.session_id]
    assert shown == {
        "status_url": f"/signin/{browser.session_id}",
        "names": {"messenger_a": "Messenger A", "messenger_b": "Messenger B"},
        "links": {
            channel: f"https://chat.test/{browser.session_id}/{channel}"
            for channel in ("messenger_a", "messenger_b")
        },
        "start_messages": None,
        "match_number": 47,
        "expires_in": 600,
    }
    assert session["number_matching"] is True
    assert "callback_url" not in session


async def test_who_began_is_signed_in_and_greeted_by_first_name(browser: Browser) -> None:
    await browser.begin()
    before = await browser.json(browser.status_url)
    browser.service.press_yes(browser.session_id, "Boris")

    after = await browser.json(browser.status_url)
    _, page = await browser.get(after["redirect"])

    assert before["status"] == "pending"
    assert after == {"status": "confirmed", "redirect": f"{browser.status_url}/finish"}
    assert "Hello, Boris!" in page
    assert (await browser.json("/session.json"))["subscriber_id"] == "sub_Boris"


async def test_another_browser_can_neither_ask_nor_finish(browser: Browser, site_url: str) -> None:
    await browser.begin()
    code = browser.service.press_yes(browser.session_id, "Gleb")

    async with new_http(site_url) as http:
        stranger = Browser(http, browser.service)
        asked, _ = await stranger.get(browser.status_url)
        finished, page = await stranger.get(f"{browser.status_url}/finish")

    assert (asked, finished) == (404, 400)
    assert "not started in this browser" in page
    assert code in browser.service.codes


async def test_signing_in_forgets_the_sign_in_and_other_tabs_go_on(browser: Browser) -> None:
    await browser.begin()
    browser.service.press_yes(browser.session_id, "Faina")
    before = session_cookie(browser)

    await browser.get(f"{browser.status_url}/finish")

    assert session_cookie(browser) != before
    assert await browser.json(browser.status_url) == {"status": "confirmed", "redirect": "/"}
    status, page = await browser.get(f"{browser.status_url}/finish")
    assert (status, "Hello, Faina!" in page) == (200, True)


async def test_each_tab_has_a_sign_in_of_its_own(browser: Browser) -> None:
    await browser.begin()
    first, first_session = browser.status_url, browser.session_id
    await browser.begin()
    browser.service.press_yes(first_session, "Ida")

    waiting = await browser.json(browser.status_url)
    _, page = await browser.get(f"{first}/finish")

    assert waiting["status"] == "pending"
    assert "Hello, Ida!" in page


async def test_another_site_cannot_begin_a_sign_in(browser: Browser) -> None:
    before = len(browser.service.sessions)

    async with browser.http.post("/signin", headers={"Sec-Fetch-Site": "cross-site"}) as response:
        assert response.status == 403

    assert len(browser.service.sessions) == before


@pytest.mark.parametrize("status", ["denied", "expired"])
async def test_a_sign_in_that_ended_is_told_and_lets_nobody_in(
    browser: Browser, status: str
) -> None:
    await browser.begin()
    browser.service.sessions[browser.session_id]["status"] = status

    answer = await browser.json(browser.status_url)
    finished, _ = await browser.get(f"{browser.status_url}/finish")

    assert answer["status"] == status
    assert finished == 400
    assert (await browser.json("/session.json")) == {"signed_in": False}


async def test_a_static_link_signs_in_and_greets_by_first_name(browser: Browser) -> None:
    code = browser.service.code_for("Ann", "ses_static")

    status, page = await browser.get(f"/callback?code={code}")

    assert status == 200
    assert "Hello, Ann!" in page


async def test_hosted_page_is_opened_with_a_state_that_comes_back(browser: Browser) -> None:
    state = await browser.begin_hosted()
    code = browser.service.code_for("Zoe", "ses_hosted", state=state)

    again = await browser.begin_hosted()
    _, page = await browser.get("/callback", params={"code": code, "state": state})

    assert again == state
    assert "Hello, Zoe!" in page


async def test_another_browsers_state_is_refused(browser: Browser, site_url: str) -> None:
    state = await browser.begin_hosted()
    code = browser.service.code_for("Mallory", "ses_hosted", state=state)

    async with new_http(site_url) as http:
        victim = Browser(http, browser.service)
        await victim.begin_hosted()
        status, _ = await victim.get("/callback", params={"code": code, "state": state})

        assert status == 400
        assert (await victim.json("/session.json")) == {"signed_in": False}


async def test_a_wrong_state_is_refused_and_leaves_the_code_alone(browser: Browser) -> None:
    state = await browser.begin_hosted()
    code = browser.service.code_for("Cleo", "ses_hosted", state=state)

    status, page = await browser.get("/callback", params={"code": code, "state": "guessed"})

    assert status == 400
    assert "not started in this browser" in page
    assert code in browser.service.codes


async def test_a_code_of_another_session_beside_our_state_is_refused(browser: Browser) -> None:
    state = await browser.begin_hosted()
    foreign = browser.service.code_for("Mallory", "ses_other", state="of-another-browser")

    status, _ = await browser.get("/callback", params={"code": foreign, "state": state})

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
