"""Tokens in the wrong place: of another project, of another kind, of another client, changed, or guessed (RFC
6749, section 10; RFC 6750, section 5; RFC 7009, section 2.1; RFC 7662, sections 2.1 and 4; RFC 9700, section
4).

A token opens what it is for, in its project, for its client, and its response is kept by no cache.
"""

import asyncio
import base64
import json

import pytest

from plugins.areas.oidc.tests.conftest import answer_of

OFFLINE = "openid offline_access"


@pytest.fixture
async def grafana(register):
    return await register(scopes=["openid", "profile", "offline_access"])


async def as_client(visitor, client, path, **fields):
    auth = (client["client_id"], client["client_secret"])
    return await visitor.http.post(f"{visitor.issuer}{path}", data=fields, auth=auth)


async def is_active(visitor, client, token):
    return (await as_client(visitor, client, "/introspect", token=token)).json()["active"]


async def test_a_token_of_another_project_opens_nothing_here(ann, grafana, elsewhere):
    tokens = await ann.tokens(grafana, scope=OFFLINE)
    theirs, there = await elsewhere.register(), elsewhere.visitor
    assert (await there.userinfo(tokens["access_token"])).status_code == 401
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert not await is_active(there, theirs, token)
        assert (await as_client(there, theirs, "/revoke", token=token)).status_code == 200
    assert (await there.refresh(theirs, tokens["refresh_token"])).status_code == 400

    # And nothing of it was touched.
    assert (await ann.userinfo(tokens["access_token"])).status_code == 200
    assert (await ann.refresh(grafana, tokens["refresh_token"])).status_code == 200


async def test_a_token_of_another_client_is_not_introspected_nor_revoked(ann, grafana, register):
    tokens, other = await ann.tokens(grafana, scope=OFFLINE), await register()
    for token in (tokens["access_token"], tokens["refresh_token"]):
        shown = await as_client(ann, other, "/introspect", token=token)
        assert shown.json() == {"active": False}
        assert (await as_client(ann, other, "/revoke", token=token)).status_code == 200

    assert (await ann.userinfo(tokens["access_token"])).status_code == 200
    assert await is_active(ann, grafana, tokens["refresh_token"])


async def test_only_clients_that_authenticate_introspect(ann, register):
    app = await register(token_endpoint_auth_method="none")
    tokens = await ann.tokens(app)
    form = {"client_id": app["client_id"], "token": tokens["access_token"]}
    response = await ann.http.post(f"{ann.issuer}/introspect", data=form)

    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")


async def test_a_token_of_one_kind_is_none_of_another(ann, grafana, service):
    code = await ann.code(grafana, scope=OFFLINE)
    tokens = (await ann.exchange(grafana, code)).json()
    # Of a request that waits for a sign-in.
    await ann.authorize(grafana, prompt="login")
    browser = [cookie.value for cookie in ann.http.cookies.jar]
    wrong_access = [code, tokens["refresh_token"], tokens["id_token"], *browser]
    wrong_refresh = [code, tokens["access_token"], tokens["id_token"], *browser]
    wrong_code = [tokens["access_token"], tokens["refresh_token"], tokens["id_token"], *browser]

    assert len(browser) == 2
    for text in wrong_access:
        assert (await ann.userinfo(text)).status_code == 401
    for text in wrong_refresh:
        assert (await ann.refresh(grafana, text)).json()["error"] == "invalid_grant"
    for text in wrong_code:
        assert (await ann.exchange(grafana, text)).json()["error"] == "invalid_grant"
    for text in (code, tokens["id_token"], *browser):
        assert not await is_active(ann, grafana, text)
    assert (await ann.refresh(grafana, tokens["refresh_token"])).status_code == 200


async def test_a_token_is_no_cookie(ann, grafana, eve):
    tokens = await ann.tokens(grafana, scope=OFFLINE)
    [name] = [cookie.name for cookie in ann.http.cookies.jar if "-sid-" in cookie.name]
    for text in (tokens["access_token"], tokens["refresh_token"], tokens["id_token"]):
        eve.http.cookies.set(name, text)
        page = await eve.authorize(grafana, prompt="none")
        assert answer_of(page)["error"] == "login_required"


async def test_the_sid_of_an_id_token_is_no_session(ann, grafana, eve):
    token = (await ann.tokens(grafana))["id_token"].split(".")[1]
    sid = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["sid"]
    [name] = [cookie.name for cookie in ann.http.cookies.jar if "-sid-" in cookie.name]
    for text in (sid, f"{sid}.{'0' * 22}"):
        eve.http.cookies.set(name, text)
        page = await eve.authorize(grafana, prompt="none")
        assert answer_of(page)["error"] == "login_required"


async def test_the_scopes_and_the_time_of_a_token_cannot_be_changed(ann, grafana):
    token = (await ann.tokens(grafana))["access_token"]
    grant, expires_at_s, letters, rest = token.split(".", 3)
    for changed in (
        f"{grant}.{expires_at_s}.{letters}t.{rest}",
        f"{grant}.{int(expires_at_s) + 1}.{letters}.{rest}",
        f"{grant}.0{expires_at_s}.{letters}.{rest}",
        f"{grant}..{expires_at_s}{letters}.{rest}",
        f"{grant}.{expires_at_s}.{letters}..{rest}",
        f"{grant}.{expires_at_s}.{letters}.{rest.partition('.')[2]}",
        f"{token} {token}",
        token.upper(),
    ):
        assert (await ann.userinfo(changed)).status_code == 401


async def test_an_access_token_in_the_query_is_not_read(ann, grafana):
    token = (await ann.tokens(grafana))["access_token"]
    response = await ann.http.get(f"{ann.issuer}/userinfo", params={"access_token": token})

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_an_access_token_may_come_in_one_way_only(ann, grafana):
    token = (await ann.tokens(grafana))["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    response = await ann.http.post(
        f"{ann.issuer}/userinfo", data={"access_token": token}, headers=headers
    )

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_a_revoked_token_is_dead_with_its_family(ann, grafana):
    tokens = await ann.tokens(grafana, scope=OFFLINE)
    await as_client(ann, grafana, "/revoke", token=tokens["access_token"])

    assert (await ann.userinfo(tokens["access_token"])).status_code == 401
    assert (await ann.refresh(grafana, tokens["refresh_token"])).status_code == 400
    assert not await is_active(ann, grafana, tokens["refresh_token"])


async def test_a_stolen_refresh_token_ends_when_its_owner_refreshes(ann, grafana, clock):
    stolen = (await ann.tokens(grafana, scope=OFFLINE))["refresh_token"]
    by_thief = (await ann.refresh(grafana, stolen)).json()
    clock.advance(11)

    by_owner = await ann.refresh(grafana, stolen)

    assert (by_owner.status_code, by_owner.json()["error"]) == (400, "invalid_grant")
    assert (await ann.refresh(grafana, by_thief["refresh_token"])).status_code == 400
    assert (await ann.userinfo(by_thief["access_token"])).status_code == 401


async def test_a_deleted_client_has_no_valid_tokens(ann, grafana, client):
    tokens = await ann.tokens(grafana, scope=OFFLINE)
    await client.delete(f"/v1/oidc/clients/{grafana['client_id']}")

    assert (await ann.userinfo(tokens["access_token"])).status_code == 401
    assert (await ann.refresh(grafana, tokens["refresh_token"])).status_code == 401


async def test_responses_with_tokens_are_kept_by_no_cache(ann, grafana):
    code = await ann.code(grafana, scope=OFFLINE)
    exchanged = await ann.exchange(grafana, code)
    tokens = exchanged.json()
    for response in (
        exchanged,
        await ann.exchange(grafana, code),
        await ann.userinfo(tokens["access_token"]),
        await as_client(ann, grafana, "/introspect", token=tokens["access_token"]),
        await as_client(ann, grafana, "/revoke", token=tokens["access_token"]),
        await ann.http.post(f"{ann.issuer}/token"),
    ):
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Pragma"] == "no-cache"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "set-cookie" not in response.headers


async def test_pages_with_codes_leak_no_referrer_and_are_kept_by_no_cache(ann, grafana):
    to_sign_in = await ann.authorize(grafana)
    to_consent = await ann.press_yes()
    to_client = await ann.answer_consent(to_consent, "allow")
    by_form = await ann.authorize(grafana, response_mode="form_post")
    broken = await ann.authorize(grafana, redirect_uri="https://evil.example/")

    assert "code" in answer_of(to_client)
    assert 'name="code"' in by_form.text
    for page in (to_sign_in, to_consent, to_client, by_form, broken):
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert page.headers["Cache-Control"] == "no-store"
        assert "access-control-allow-origin" not in page.headers


async def test_endpoints_for_scripts_of_other_origins_take_no_cookies(ann, grafana):
    tokens = await ann.tokens(grafana)
    origin = {"Origin": "https://evil.example"}
    ann.http.headers.update(origin)
    for response in (
        await ann.exchange(grafana, "x"),
        await ann.userinfo(tokens["access_token"]),
        await ann.http.get(f"{ann.issuer}/jwks"),
        await ann.http.options(f"{ann.issuer}/token", headers=origin),
    ):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers


@pytest.fixture
def oidc_settings(oidc_settings):
    return {
        **oidc_settings,
        "failures_per_minute_per_client": 5,
        "ciba_requests_per_minute_per_client": 3,
    }


async def test_guesses_of_a_secret_are_limited(ann, eve, grafana, clock):
    wrong = {**grafana, "client_secret": "mos_wrong"}
    found = [(await eve.exchange(wrong, "x")).status_code for _ in range(8)]
    last = await eve.exchange(wrong, "x")

    assert found == [401] * 5 + [429] * 3
    assert 0 < int(last.headers["Retry-After"]) <= 60
    # The client itself goes on: guesses of others don't lock it out.
    assert (await ann.exchange(grafana, "x")).json()["error"] == "invalid_grant"
    clock.advance(61)
    assert (await eve.exchange(wrong, "x")).status_code == 401


async def test_guesses_of_a_secret_are_limited_at_every_endpoint_together(ann, grafana):
    wrong = {**grafana, "client_secret": "mos_wrong"}
    paths = ("/token", "/revoke", "/introspect", "/par", "/token", "/revoke")
    answers = [await as_client(ann, wrong, path, token="x") for path in paths]

    assert [answer.status_code for answer in answers] == [401] * 5 + [429]


@pytest.mark.parametrize("length", [1, 16, 43, 46, 47])
async def test_a_part_of_a_secret_is_as_wrong_as_any(ann, grafana, length):
    cut = {**grafana, "client_secret": grafana["client_secret"][:length]}
    response = await ann.exchange(cut, "x")

    assert len(grafana["client_secret"]) == 47
    expected = (400, "invalid_grant") if length == 47 else (401, "invalid_client")
    assert (response.status_code, response.json()["error"]) == expected


@pytest.mark.database_file
async def test_concurrent_replays_of_a_code_leave_no_valid_token(ann, grafana):
    code = await ann.code(grafana, scope=OFFLINE)
    answers = await asyncio.gather(*(ann.exchange(grafana, code) for _ in range(10)))
    [won] = [answer.json() for answer in answers if answer.status_code == 200]

    assert (await ann.userinfo(won["access_token"])).status_code == 401
    assert (await ann.refresh(grafana, won["refresh_token"])).status_code == 400


async def test_a_storm_of_key_requests_asks_the_database_for_nothing(
    ann, grafana, service, monkeypatch
):
    await ann.tokens(grafana)
    await ann.http.get(f"{ann.issuer}/jwks")
    monkeypatch.setattr(service.db, "read", None)
    answers = await asyncio.gather(*(ann.http.get(f"{ann.issuer}/jwks") for _ in range(50)))

    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["Cache-Control"] for answer in answers} == {"public, max-age=3600"}
    assert len({answer.text for answer in answers}) == 1
    for key in answers[0].json()["keys"]:
        assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & key.keys()


async def test_backchannel_requests_of_a_client_are_limited(ann, register, clock):
    """Each may have another person asked, so the limit of questions to one person is not enough."""
    client = await register(grant_types=["urn:openid:params:grant-type:ciba"], redirect_uris=[])
    ask = {"scope": "openid", "login_hint": "nobody"}
    answers = [await as_client(ann, client, "/bc-authorize", **ask) for _ in range(4)]
    other = await register(grant_types=["urn:openid:params:grant-type:ciba"], redirect_uris=[])
    of_another = await as_client(ann, other, "/bc-authorize", **ask)
    clock.advance(61)
    later = await as_client(ann, client, "/bc-authorize", **ask)

    assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert [of_another.status_code, later.status_code] == [400, 400]
