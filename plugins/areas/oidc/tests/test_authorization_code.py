"""The authorization code flow, from the client's redirect to `userinfo`."""

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from plugins.areas.oidc.tests.conftest import CALLBACK, answer_of


async def test_a_sign_in_gives_the_client_tokens_that_tell_who_it_was(ann, register, clock):
    client = await register(scopes=["openid", "profile"])

    answer = answer_of(await ann.sign_in(client, scope="openid profile"))
    tokens = (await ann.exchange(client, answer["code"])).json()
    keys = (await ann.http.get(f"{ann.issuer}/jwks")).json()
    claims = jwt.decode(
        tokens["id_token"], KeySet.import_key_set(keys), algorithms=["ES256"]
    ).claims
    person = (await ann.userinfo(tokens["access_token"])).json()

    assert (answer["state"], answer["iss"]) == ("state-1", f"http://msgsvc.test{ann.issuer}")
    assert tokens["token_type"] == "Bearer"
    assert "refresh_token" not in tokens
    assert claims["iss"] == f"http://msgsvc.test{ann.issuer}"
    assert (claims["aud"], claims["nonce"]) == (client["client_id"], "nonce-1")
    assert claims["sub"] == person["sub"] == ann.subscriber.subscriber_id
    assert (claims["acr"], claims["amr"]) == ("urn:msgsvc:acr:button", ["mca"])
    assert claims["auth_time"] == clock.now_ms() // 1000
    assert (person["name"], person["preferred_username"], person["locale"]) == (
        "Ann",
        "ann_k",
        "en",
    )


@pytest.mark.both_databases
async def test_a_code_works_once_and_its_replay_revokes_the_tokens(ann, register):
    client = await register()
    code = await ann.code(client)
    first = (await ann.exchange(client, code)).json()

    second = await ann.exchange(client, code)
    person = await ann.userinfo(first["access_token"])

    assert (second.status_code, second.json()["error"]) == (400, "invalid_grant")
    assert (person.status_code, person.json()["error"]) == (401, "invalid_token")


async def test_the_browser_forgets_a_request_that_has_ended(ann, register):
    client = await register()
    page = await ann.authorize(client)
    asked = [name for name in ann.http.cookies if "-request-" in name]
    page = await ann.press_yes()
    waiting = [name for name in ann.http.cookies if "-request-" in name]
    await ann.answer_consent(page, "allow")

    assert len(asked) == 1
    assert waiting == asked
    assert [name for name in ann.http.cookies if "-request-" in name] == []


async def test_another_client_signs_the_same_browser_in_without_a_question(ann, register):
    first, second = await register(first_party=True), await register(first_party=True)
    await ann.code(first)

    answer = answer_of(await ann.authorize(second))

    assert len(ann.sign_ins.started) == 1
    assert (await ann.exchange(second, answer["code"])).status_code == 200


async def test_an_unknown_redirect_uri_is_shown_and_not_followed(ann, register):
    page = await ann.authorize(await register(), redirect_uri=f"{CALLBACK}/other")

    assert page.status_code == 400
    assert "redirect_uri is not one that is registered" in page.text


@pytest.mark.both_databases
async def test_a_refresh_token_is_rotated_and_reuse_ends_the_family(ann, register, clock):
    client = await register(scopes=["openid", "offline_access"])
    tokens = await ann.tokens(client, scope="openid offline_access")

    second = (await ann.refresh(client, tokens["refresh_token"])).json()
    repeated = (await ann.refresh(client, tokens["refresh_token"])).json()
    clock.advance(11)
    replayed = await ann.refresh(client, tokens["refresh_token"])
    after = await ann.refresh(client, second["refresh_token"])

    assert second["refresh_token"] != tokens["refresh_token"]
    assert repeated["refresh_token"] == second["refresh_token"]
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert (after.status_code, after.json()["error"]) == (400, "invalid_grant")


async def test_cancel_in_the_bot_goes_back_with_access_denied(ann, register):
    await ann.authorize(await register())
    state = ann.sign_ins.latest.request.state

    back = await ann.http.get(
        f"{ann.issuer}/return", params={"error": "access_denied", "state": state}
    )

    assert answer_of(back)["error"] == "access_denied"
    assert answer_of(back)["state"] == "state-1"


async def test_a_refused_consent_goes_back_with_access_denied(ann, register):
    await ann.authorize(await register())

    answer = answer_of(await ann.answer_consent(await ann.press_yes(), "deny"))

    assert answer["error"] == "access_denied"


async def test_pages_are_in_the_language_that_the_client_asks_for(ann, register):
    await ann.authorize(await register(), ui_locales="de ru en")
    asked = ann.sign_ins.latest.request

    consent = await ann.press_yes()
    page = await ann.http.get(consent.headers["Location"])

    assert asked.lang == "ru"
    assert '<html lang="ru">' in page.text


async def test_an_app_with_a_scheme_of_its_own_is_asked_about_each_time(ann, register):
    callback = "com.example.app:/callback"
    app = await register(token_endpoint_auth_method="none", redirect_uris=[callback])
    await ann.sign_in(app, redirect_uri=callback)

    again = await ann.authorize(app, redirect_uri=callback)
    silent = await ann.authorize(app, redirect_uri=callback, prompt="none")

    assert "/consent/" in again.headers["Location"]
    assert "error=consent_required" in silent.headers["Location"]
