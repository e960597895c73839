"""The plan `oidcc-basic-certification-test-plan` of the OpenID Foundation's conformance suite: a test for
each of its modules, named after it, that asks by our own requests for what the module asks for.

The suite itself was not run: it is a server of its own that calls the provider from outside. What this shows
is that each behaviour is there, not that the suite says so.
"""

import base64
import json

import pytest

from msgsvc_oidc.protocol.keys import verified_claims
from plugins.areas.oidc.tests.conftest import CALLBACK, answer_of

ISSUER = "http://msgsvc.test"

#: Without PKCE, as the suite's basic requests are.
PLAIN = {"code_challenge": None, "code_challenge_method": None}


async def sign_in(visitor, client, **changed):
    """The answer at the callback."""
    return answer_of(await visitor.sign_in(client, **{**PLAIN, **changed}))


async def exchange(visitor, client, code, **changed):
    return await visitor.exchange(client, code, **{"code_verifier": None, **changed})


async def tokens_of(visitor, client, **changed):
    """The tokens of a sign-in, with what the suite checks of every one."""
    answer = await sign_in(visitor, client, **changed)
    response = await exchange(visitor, client, answer["code"])
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    tokens = response.json()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] > 0
    return tokens


async def claims_of(visitor, client, tokens, clock):
    """The claims of an ID token that is valid for the client."""
    found = (await visitor.http.get(f"{visitor.issuer}/jwks")).json()["keys"]
    claims = verified_claims(tokens["id_token"], found, ["RS256", "ES256", "EdDSA"])
    assert claims is not None
    assert header_of(tokens["id_token"])["kid"] in {key["kid"] for key in found}
    now_s = clock.now_ms() // 1000
    assert claims["iss"] == f"{ISSUER}{visitor.issuer}"
    assert claims["aud"] == client["client_id"]
    assert claims["iat"] <= now_s < claims["exp"]
    assert len(claims["sub"]) <= 255
    return claims


def header_of(token):
    return json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))


async def person_of(visitor, tokens):
    response = await visitor.userinfo(tokens["access_token"])
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == "application/json"
    return response.json()


class TestBasic:
    async def test_oidcc_server(self, ann, rp, clock):
        tokens = await tokens_of(ann, rp)
        claims = await claims_of(ann, rp, tokens, clock)

        assert claims["nonce"] == "nonce-1"
        assert (await person_of(ann, tokens))["sub"] == claims["sub"]

    async def test_oidcc_response_type_missing(self, ann, rp):
        answer = answer_of(await ann.authorize(rp, response_type=None))

        assert answer["error"] in {"invalid_request", "unsupported_response_type"}
        assert answer["state"] == "state-1"

    async def test_oidcc_idtoken_signature(self, ann, register, clock):
        for alg in ("RS256", "ES256", "EdDSA"):
            client = await register(id_token_signed_response_alg=alg)
            tokens = await tokens_of(ann, client)

            assert header_of(tokens["id_token"])["alg"] == alg
            assert await claims_of(ann, client, tokens, clock)

    async def test_oidcc_idtoken_unsigned(self, ann, client):
        body = {"name": "Client", "redirect_uris": [CALLBACK]}
        response = await client.post(
            "/v1/oidc/clients", json={**body, "id_token_signed_response_alg": "none"}
        )
        found = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()

        # The module is skipped for providers that do not offer `none`.
        assert response.status_code == 400
        assert "none" not in found["id_token_signing_alg_values_supported"]

    async def test_oidcc_userinfo_get(self, ann, rp):
        tokens = await tokens_of(ann, rp)

        assert (await person_of(ann, tokens))["sub"] == ann.subscriber.subscriber_id

    async def test_oidcc_userinfo_post_header(self, ann, rp):
        tokens = await tokens_of(ann, rp)
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        response = await ann.http.post(f"{ann.issuer}/userinfo", headers=headers)

        assert response.json()["sub"] == ann.subscriber.subscriber_id

    async def test_oidcc_userinfo_post_body(self, ann, rp):
        tokens = await tokens_of(ann, rp)
        form = {"access_token": tokens["access_token"]}
        response = await ann.http.post(f"{ann.issuer}/userinfo", data=form)

        assert response.json()["sub"] == ann.subscriber.subscriber_id

    async def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(self, ann, rp, clock):
        tokens = await tokens_of(ann, rp, nonce=None)

        assert "nonce" not in await claims_of(ann, rp, tokens, clock)

    @pytest.mark.parametrize(
        ("scope", "claims"),
        [
            ("profile", {"name", "given_name", "preferred_username", "locale", "updated_at"}),
            ("email", set()),
            ("phone", set()),
            # Not supported: ignored.
            ("address", set()),
            ("profile email address phone", {"name", "updated_at"}),
        ],
        ids=[
            *("oidcc-scope-profile", "oidcc-scope-email", "oidcc-scope-phone"),
            *("oidcc-scope-address", "oidcc-scope-all"),
        ],
    )
    async def test_oidcc_scope(self, ann, rp, clock, scope, claims):
        tokens = await tokens_of(ann, rp, scope=f"openid {scope}")
        person = await person_of(ann, tokens)

        # What the messenger has not verified is left out.
        assert claims <= person.keys()
        assert not {"email", "phone_number", "address"} & person.keys()
        assert "address" not in tokens["scope"]
        assert type(person.get("updated_at", 0)) is int
        assert person["sub"] == (await claims_of(ann, rp, tokens, clock))["sub"]

    async def test_oidcc_ensure_other_scope_order_succeeds(self, ann, rp):
        tokens = await tokens_of(ann, rp, scope="profile openid")

        assert set(tokens["scope"].split()) == {"openid", "profile"}

    @pytest.mark.parametrize("display", ["page", "popup"])
    async def test_oidcc_display(self, ann, rp, display):
        """`oidcc-display-page` and `oidcc-display-popup`."""
        assert "id_token" in await tokens_of(ann, rp, display=display)

    async def test_oidcc_prompt_login(self, ann, rp, clock):
        first = await claims_of(ann, rp, await tokens_of(ann, rp), clock)
        clock.advance(2)
        second = await claims_of(ann, rp, await tokens_of(ann, rp, prompt="login"), clock)

        assert len(ann.sign_ins.started) == 2
        assert second["auth_time"] > first["auth_time"]
        assert second["sub"] == first["sub"]

    async def test_oidcc_prompt_none_not_logged_in(self, ann, rp):
        answer = answer_of(await ann.authorize(rp, prompt="none"))

        assert answer["error"] in {"login_required", "interaction_required"}
        assert answer["state"] == "state-1"
        assert not ann.sign_ins.started

    async def test_oidcc_prompt_none_logged_in(self, ann, rp, clock):
        first = await claims_of(ann, rp, await tokens_of(ann, rp), clock)
        clock.advance(2)
        code = answer_of(await ann.authorize(rp, prompt="none", **PLAIN))["code"]
        second = await claims_of(ann, rp, (await exchange(ann, rp, code)).json(), clock)

        assert (second["sub"], second["auth_time"]) == (first["sub"], first["auth_time"])

    async def test_oidcc_max_age_1(self, ann, rp, clock):
        first = await claims_of(ann, rp, await tokens_of(ann, rp), clock)
        clock.advance(2)
        second = await claims_of(ann, rp, await tokens_of(ann, rp, max_age="1"), clock)

        assert len(ann.sign_ins.started) == 2
        assert second["auth_time"] - first["auth_time"] == 2

    async def test_oidcc_max_age_10000(self, ann, rp, clock):
        first = await claims_of(ann, rp, await tokens_of(ann, rp), clock)
        clock.advance(2)
        second = await claims_of(ann, rp, await tokens_of(ann, rp, max_age="10000"), clock)

        assert len(ann.sign_ins.started) == 1
        assert second["auth_time"] == first["auth_time"]

    async def test_max_age_0_is_prompt_login(self, ann, rp):
        """OpenID Connect Core 1.0, section 3.1.2.1; of no module."""
        await tokens_of(ann, rp)
        await tokens_of(ann, rp, max_age="0")

        assert len(ann.sign_ins.started) == 2

    async def test_oidcc_ensure_request_with_unknown_parameter_succeeds(self, ann, rp):
        assert "id_token" in await tokens_of(ann, rp, extra="foobar")

    async def test_oidcc_id_token_hint(self, ann, rp, clock):
        first = await tokens_of(ann, rp)
        answer = answer_of(
            await ann.authorize(rp, prompt="none", id_token_hint=first["id_token"], **PLAIN)
        )
        second = (await exchange(ann, rp, answer["code"])).json()

        assert (await claims_of(ann, rp, second, clock))["sub"] == (
            await claims_of(ann, rp, first, clock)
        )["sub"]

    async def test_a_hint_of_another_person_is_not_answered_with_this_one(
        self, ann, new_visitor, rp
    ):
        """OpenID Connect Core 1.0, section 3.1.2.2; of no module."""
        eve = await new_visitor("Eve", "6666")
        hint = (await tokens_of(eve, rp))["id_token"]
        await tokens_of(ann, rp)
        silent = answer_of(await ann.authorize(rp, prompt="none", id_token_hint=hint))
        page = await ann.authorize(rp, id_token_hint=hint)
        assert "/login/" in page.headers["Location"]
        by_ann = answer_of(await ann.press_yes())
        await ann.authorize(rp, id_token_hint=hint)
        ann.subscriber = eve.subscriber
        by_eve = answer_of(await ann.press_yes())

        assert silent["error"] == by_ann["error"] == "login_required"
        assert "code" in by_eve

    async def test_oidcc_login_hint(self, ann, rp):
        assert "id_token" in await tokens_of(ann, rp, login_hint="bob@example.com")

    async def test_oidcc_ui_locales(self, ann, rp):
        assert "id_token" in await tokens_of(ann, rp, ui_locales="se")
        assert "id_token" in await tokens_of(ann, rp, ui_locales="ru en", prompt="login")
        assert ann.sign_ins.latest.request.lang == "ru"

    async def test_oidcc_claims_locales(self, ann, rp):
        assert "id_token" in await tokens_of(ann, rp, claims_locales="se")

    async def test_oidcc_ensure_request_with_acr_values_succeeds(self, ann, rp, clock):
        tokens = await tokens_of(ann, rp, acr_values="1 2")

        assert (await claims_of(ann, rp, tokens, clock))["acr"] == "urn:msgsvc:acr:button"

    async def test_oidcc_codereuse(self, ann, rp):
        code = (await sign_in(ann, rp))["code"]
        assert (await exchange(ann, rp, code)).status_code == 200
        again = await exchange(ann, rp, code)

        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")

    async def test_oidcc_codereuse_30seconds(self, ann, rp, clock):
        code = (await sign_in(ann, rp))["code"]
        tokens = (await exchange(ann, rp, code)).json()
        clock.advance(30)
        again = await exchange(ann, rp, code)
        person = await ann.userinfo(tokens["access_token"])

        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
        assert person.status_code == 401

    async def test_oidcc_ensure_registered_redirect_uri(self, ann, rp):
        page = await ann.authorize(rp, redirect_uri=f"{CALLBACK}/unregistered")

        assert page.status_code == 400
        assert "redirect_uri" in page.text

    async def test_oidcc_ensure_post_request_succeeds(self, ann, rp):
        form = {
            "response_type": "code",
            "client_id": rp["client_id"],
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "state": "state-1",
        }
        page = await ann.http.post(f"{ann.issuer}/authorize", data=form)
        assert page.status_code == 303
        answer = answer_of(await ann.answer_consent(await ann.press_yes(), "allow"))

        assert answer["state"] == "state-1"
        assert (await exchange(ann, rp, answer["code"])).status_code == 200

    async def test_oidcc_server_client_secret_post(self, ann, second_rp, clock):
        tokens = await tokens_of(ann, second_rp)

        assert await claims_of(ann, second_rp, tokens, clock)

    async def test_oidcc_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(
        self, ann, rp
    ):
        unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode() + ".e30."
        answer = answer_of(await ann.authorize(rp, request=unsigned))

        assert answer["error"] == "request_not_supported"
        assert answer["state"] == "state-1"

    async def test_oidcc_ensure_request_object_with_redirect_uri(self, ann, rp):
        claims = json.dumps({"redirect_uri": "https://evil.example/"}).encode()
        inner = base64.urlsafe_b64encode(claims).rstrip(b"=").decode()
        answer = answer_of(await ann.authorize(rp, request=f"eyJhbGciOiJub25lIn0.{inner}."))

        assert answer["error"] == "request_not_supported"

    async def test_oidcc_claims_essential(self, ann, rp):
        claims = json.dumps({"userinfo": {"name": {"essential": True}}})
        tokens = await tokens_of(ann, rp, claims=claims)
        found = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()

        # Not supported, said so, and no error.
        assert found["claims_parameter_supported"] is False
        assert "id_token" in tokens

    async def test_oidcc_ensure_request_with_valid_pkce_succeeds(self, ann, rp):
        tokens = await ann.tokens(rp)

        assert "id_token" in tokens

    async def test_oidcc_refresh_token(self, ann, rp, second_rp, clock):
        first = await tokens_of(ann, rp, scope="openid offline_access", prompt="consent")
        clock.advance(1)
        response = await ann.refresh(rp, first["refresh_token"])
        second = response.json()
        before = await claims_of(ann, rp, first, clock)
        after = await claims_of(ann, rp, second, clock)
        stolen = await ann.refresh(second_rp, second["refresh_token"])

        assert response.status_code == 200
        assert second["access_token"] != first["access_token"]
        for claim in ("iss", "sub", "aud", "auth_time"):
            assert after[claim] == before[claim]
        assert after["iat"] > before["iat"]
        assert after.get("nonce", before["nonce"]) == before["nonce"]
        assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
        assert (await person_of(ann, second))["sub"] == before["sub"]
