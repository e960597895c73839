"""Attacks through people's browsers: clickjacking, cross-site requests, sessions of others, fixation (RFC
9700, sections 4.7 and 4.16; OpenID Connect Core 1.0, section 3.1.2.6; RFC 6265bis, section 5.6.7).

A request belongs to the browser that started it, and consent to the session that it was asked of. A page of
another site can neither show ours in a frame nor send a form in a person's name.
"""

from urllib.parse import urlsplit

import pytest

from msgsvc_core.plugins.sign_ins import PageSignIn
from plugins.areas.oidc.tests.conftest import answer_of


def path_of(page):
    assert page.status_code == 303, page.text
    return urlsplit(page.headers["Location"]).path


def refused(page):
    assert page.status_code == 400, page.text
    assert "Location" not in page.headers
    assert "set-cookie" not in page.headers


async def test_no_page_may_be_shown_in_a_frame(ann, register):
    client = await register()
    await ann.authorize(client)
    consent = await ann.http.get(path_of(await ann.press_yes()))
    by_form = await ann.authorize(client, response_mode="form_post", prompt="none")
    broken = await ann.authorize(client, redirect_uri="https://evil.example/")

    assert "<form" in consent.text
    for page in (consent, by_form, broken):
        assert page.headers["X-Frame-Options"] == "DENY"
        policy = page.headers["Content-Security-Policy"].split("; ")
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy
        assert "base-uri 'none'" in policy


async def test_a_form_of_another_site_gives_no_consent(ann, register, eve):
    client = await register()
    await ann.authorize(client)
    path = path_of(await ann.press_yes())
    # Browsers send a cookie that is `lax` with no form of another site; the session's is sent.
    [own] = [cookie for cookie in ann.http.cookies.jar if "-request-" in cookie.name]
    assert own._rest["SameSite"] == "lax"
    ann.http.cookies.jar.clear(own.domain, own.path, own.name)

    refused(await ann.http.post(path, data={"answer": "allow"}))
    refused(await ann.http.get(path))


async def test_consent_is_not_given_by_another_browser(ann, eve, register):
    client = await register()
    await ann.authorize(client)
    path = path_of(await ann.press_yes())
    await eve.sign_in(client)

    refused(await eve.http.get(path))
    refused(await eve.http.post(path, data={"answer": "allow"}))
    refused(await eve.http.post(path, data={"answer": "deny"}))
    page = await ann.http.post(path, data={"answer": "allow"})
    assert "code" in answer_of(page)


async def test_consent_is_not_given_by_the_next_session_of_the_browser(ann, eve, register):
    client = await register()
    await ann.authorize(client)
    path = path_of(await ann.press_yes())
    # The same browser, in which somebody else signs in meanwhile.
    ann.subscriber = eve.subscriber
    await ann.authorize(client, prompt="login")
    await ann.press_yes()

    refused(await ann.http.post(path, data={"answer": "allow"}))


async def test_consent_without_a_session_is_refused(ann, register):
    client = await register()
    await ann.authorize(client)
    path = path_of(await ann.press_yes())
    for cookie in list(ann.http.cookies.jar):
        if "-sid-" in cookie.name:
            ann.http.cookies.jar.clear(cookie.domain, cookie.path, cookie.name)

    refused(await ann.http.post(path, data={"answer": "allow"}))


async def test_consent_is_given_once(ann, register):
    await ann.authorize(await register())
    path = path_of(await ann.press_yes())
    await ann.http.post(path, data={"answer": "allow"})

    refused(await ann.http.post(path, data={"answer": "allow"}))
    refused(await ann.http.post(path, data={"answer": "deny"}))


@pytest.mark.parametrize("answer", [{}, {"answer": ""}, {"answer": "yes"}, {"answer": "ALLOW"}])
async def test_only_the_button_allows(ann, register, answer):
    await ann.authorize(await register())
    path = path_of(await ann.press_yes())
    page = await ann.http.post(path, data={"x": "1", **answer})

    assert answer_of(page)["error"] == "access_denied"


async def test_a_link_does_not_consent(ann, register):
    await ann.authorize(await register())
    path = path_of(await ann.press_yes())

    page = await ann.http.get(f"{path}?answer=allow")

    assert page.status_code == 200
    assert "Location" not in page.headers


async def test_a_request_that_was_signed_in_to_elsewhere_does_not_sign_a_victim_in(
    ann, eve, register
):
    await eve.authorize(await register(first_party=True))
    started = eve.sign_ins.latest
    code = eve.sign_ins.confirm(started.session_id, eve.subscriber, "button")
    link = {"code": code, "state": started.request.state}

    # Eve sends Ann the link by which her own sign-in ends.
    refused(await ann.http.get(f"{ann.issuer}/return", params=link))
    assert not list(ann.http.cookies.jar)


async def test_a_victims_answer_brings_the_attackers_browser_nothing(ann, eve, register):
    client = await register(first_party=True)
    await eve.authorize(client)
    started = eve.sign_ins.latest
    # Ann finishes the page that Eve opened; the code goes to Ann's browser, which then goes there.
    code = ann.sign_ins.confirm(started.session_id, ann.subscriber, "button")
    link = {"code": code, "state": started.request.state}
    refused(await ann.http.get(f"{ann.issuer}/return", params=link))

    page = await eve.http.get(f"{eve.issuer}/return", params={**link, "code": "guessed"})
    refused(page)
    assert answer_of(await eve.authorize(client, prompt="none"))["error"] == "login_required"
    assert answer_of(await ann.authorize(client, prompt="none"))["error"] == "login_required"


async def test_a_code_of_the_sign_in_page_serves_the_request_that_it_was_made_for(
    ann, eve, register
):
    client = await register(first_party=True)
    await ann.authorize(client)
    stolen = ann.sign_ins.confirm(ann.sign_ins.latest.session_id, ann.subscriber, "button")
    await eve.authorize(client)
    own = eve.sign_ins.latest.request
    assert isinstance(own, PageSignIn)

    refused(await eve.http.get(f"{eve.issuer}/return", params={"code": stolen, "state": own.state}))


async def test_a_code_of_the_sign_in_page_works_once(ann, register):
    await ann.authorize(await register(first_party=True))
    started = ann.sign_ins.latest
    code = ann.sign_ins.confirm(started.session_id, ann.subscriber, "button")
    link = {"code": code, "state": started.request.state}
    first = await ann.http.get(f"{ann.issuer}/return", params=link)

    assert "code" in answer_of(first)
    refused(await ann.http.get(f"{ann.issuer}/return", params=link))


async def test_a_session_cookie_that_was_set_before_is_not_raised_by_a_sign_in(ann, eve, register):
    client = await register(first_party=True)
    await eve.sign_in(client)
    [fixed] = [cookie for cookie in eve.http.cookies.jar if "-sid-" in cookie.name]
    # Eve's session in Ann's browser; then Ann signs in.
    ann.http.cookies.set(fixed.name, fixed.value, domain=fixed.domain, path=fixed.path)
    await ann.authorize(client, prompt="login")
    await ann.press_yes()
    values = {cookie.value for cookie in ann.http.cookies.jar if "-sid-" in cookie.name}

    assert fixed.value not in values
    # It is not hers either: of two people in one browser the first one is signed out.
    assert answer_of(await eve.authorize(client, prompt="none"))["error"] == "login_required"


async def test_a_session_of_another_project_is_none_here(ann, register, elsewhere):
    theirs = await elsewhere.register(first_party=True)
    await elsewhere.visitor.sign_in(theirs)
    [held] = [c for c in elsewhere.visitor.http.cookies.jar if "-sid-" in c.name]
    client = await register(first_party=True)
    await ann.authorize(client)
    await ann.press_yes()
    [own] = [cookie for cookie in ann.http.cookies.jar if "-sid-" in cookie.name]
    ann.http.cookies.set(own.name, held.value, domain=own.domain, path=own.path)

    assert own.name != held.name
    assert answer_of(await ann.authorize(client, prompt="none"))["error"] == "login_required"


async def test_a_silent_request_says_the_same_of_everybody_who_is_not_signed_in(
    ann, eve, register, clock
):
    client = await register()
    await ann.sign_in(client)
    clock.advance(13 * 3600)

    expired = answer_of(await ann.authorize(client, prompt="none"))
    unknown = answer_of(await eve.authorize(client, prompt="none"))
    hinted = answer_of(
        await eve.authorize(client, prompt="none", login_hint=ann.subscriber.subscriber_id)
    )

    assert expired == unknown == hinted
    assert expired["error"] == "login_required"


async def test_a_silent_request_learns_nothing_of_who_has_not_agreed(ann, register):
    first, second = await register(), await register()
    await ann.sign_in(first)

    answer = answer_of(await ann.authorize(second, prompt="none"))

    assert answer["error"] == "consent_required"
    assert ann.subscriber.subscriber_id not in str(answer)
    assert "Ann" not in str(answer)


async def test_consent_for_more_is_asked_again(ann, register):
    client = await register(scopes=["openid", "profile", "phone", "notify"])
    await ann.sign_in(client, scope="openid profile")

    same = answer_of(await ann.authorize(client, scope="openid", prompt="none"))
    more = answer_of(await ann.authorize(client, scope="openid phone", prompt="none"))

    assert "code" in same
    assert more["error"] == "consent_required"


async def test_a_request_ends_with_its_time(ann, register, clock):
    await ann.authorize(await register())
    clock.advance(901)

    refused(await ann.press_yes())
