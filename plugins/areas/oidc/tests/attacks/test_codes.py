"""Attacks with codes: injection, substitution, mix-up, and PKCE downgrade (RFC 9700, sections 2.1.1, 4.4, 4.5
and 4.8; RFC 7636; RFC 9207).

A code is bound to its client, its redirect URI, its challenge and its nonce, and is used once. Whatever is
wrong, the true owner's own request still works.
"""

import base64
import hashlib

import pytest

from msgsvc_core.kernel.json import read_json
from plugins.areas.oidc.tests.conftest import CALLBACK, CHALLENGE, VERIFIER, answer_of

#: Another verifier, and its challenge.
OTHER = "w" * 43
OTHER_CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(OTHER.encode()).digest()).rstrip(b"=").decode()
)


def claims_of(token):
    payload = token.split(".")[1]
    return read_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def refused(response, error="invalid_grant", status=400):
    assert (response.status_code, response.json()["error"]) == (status, error), response.text


async def test_a_code_put_into_another_browsers_flow_fails_by_its_challenge(ann, eve, register):
    client = await register()
    stolen = await ann.code(client)
    await eve.authorize(client, code_challenge=OTHER_CHALLENGE)

    # The client exchanges what came to Eve's callback with the verifier of Eve's browser.
    refused(await eve.exchange(client, stolen, code_verifier=OTHER))
    assert (await ann.exchange(client, stolen)).status_code == 200


async def test_a_code_of_another_flow_has_the_nonce_of_that_flow(ann, register):
    client = await register()
    pkce = {"code_challenge": None, "code_challenge_method": None}
    stolen = await ann.code(client, nonce="ann's browser", **pkce)
    response = await ann.exchange(client, stolen, code_verifier=None)

    # The victim's client compares it with the nonce of its own browser.
    assert claims_of(response.json()["id_token"])["nonce"] == "ann's browser"


@pytest.mark.both_databases
async def test_a_code_of_another_client_is_refused_and_stays_usable(ann, register):
    mine, theirs = await register(), await register()
    code = await ann.code(mine)

    refused(await ann.exchange(theirs, code))
    assert (await ann.exchange(mine, code)).status_code == 200


async def test_a_used_code_of_another_client_revokes_nothing(ann, register):
    mine, theirs = await register(), await register()
    code = await ann.code(mine)
    tokens = (await ann.exchange(mine, code)).json()

    refused(await ann.exchange(theirs, code))
    assert (await ann.userinfo(tokens["access_token"])).status_code == 200


async def test_a_code_of_another_project_is_refused(ann, register, elsewhere):
    mine, theirs = await register(), await elsewhere.register()
    code = await ann.code(mine)

    refused(await elsewhere.visitor.exchange(theirs, code))
    assert (await ann.exchange(mine, code)).status_code == 200


async def test_a_client_of_another_project_cannot_authenticate_here(ann, elsewhere):
    theirs = await elsewhere.register()

    refused(await ann.exchange(theirs, "code"), "invalid_client", 401)


async def test_a_public_clients_code_is_not_for_those_who_only_name_it(ann, register):
    app = await register(token_endpoint_auth_method="none")
    code = await ann.code(app)

    refused(await ann.exchange(app, code, code_verifier=None))
    refused(await ann.exchange(app, code, code_verifier=OTHER))
    assert (await ann.exchange(app, code)).status_code == 200


@pytest.mark.parametrize("changed", [{}, {"response_type": "token"}, {"prompt": "none"}])
async def test_every_answer_names_its_issuer_against_mix_up(ann, register, changed):
    client = await register()
    page = await (ann.authorize(client, **changed) if changed else ann.sign_in(client))

    assert answer_of(page)["iss"] == f"http://msgsvc.test{ann.issuer}"


async def test_discovery_says_that_answers_name_their_issuer(ann, elsewhere):
    mine = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()
    other = elsewhere.visitor
    theirs = (await other.http.get(f"{other.issuer}/.well-known/openid-configuration")).json()

    assert mine["authorization_response_iss_parameter_supported"] is True
    assert mine["issuer"] != theirs["issuer"]
    assert mine["token_endpoint"].startswith(f"{mine['issuer']}/")


async def test_a_verifier_without_a_challenge_is_a_downgrade(ann, register):
    client = await register()
    code = await ann.code(client, code_challenge=None, code_challenge_method=None)

    refused(await ann.exchange(client, code, code_verifier=VERIFIER))
    assert (await ann.exchange(client, code, code_verifier=None)).status_code == 200


async def test_a_challenge_without_a_verifier_is_refused(ann, register):
    client = await register()
    code = await ann.code(client)

    refused(await ann.exchange(client, code, code_verifier=None))
    refused(await ann.exchange(client, code, code_verifier=""))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"code_challenge_method": "plain", "code_challenge": VERIFIER}, id="plain"),
        pytest.param({"code_challenge_method": None}, id="no method, which means plain"),
        pytest.param({"code_challenge_method": ""}, id="empty method"),
        pytest.param({"code_challenge_method": "s256"}, id="another case"),
        pytest.param({"code_challenge_method": "none"}, id="unknown method"),
        pytest.param({"code_challenge": None}, id="method without challenge"),
        pytest.param({"code_challenge": "x" * 42}, id="short"),
        pytest.param({"code_challenge": f"{CHALLENGE}="}, id="padded"),
        pytest.param({"code_challenge": "x" * 44}, id="long"),
        pytest.param({"code_challenge": "+/" + "x" * 41}, id="other alphabet"),
    ],
)
async def test_only_s256_protects_a_code(ann, register, changed):
    client = await register()

    assert answer_of(await ann.authorize(client, **changed))["error"] == "invalid_request"


async def test_an_app_without_a_challenge_gets_no_code(ann, register):
    app = await register(token_endpoint_auth_method="none")

    page = await ann.authorize(app, code_challenge=None, code_challenge_method=None)

    assert answer_of(page)["error"] == "invalid_request"


@pytest.mark.parametrize("verifier", ["v" * 42, "v" * 129, "v" * 42 + "ü", "v" * 42 + "+", " "])
async def test_a_verifier_of_the_wrong_shape_is_refused(ann, register, verifier):
    client = await register()
    code = await ann.code(client)

    refused(await ann.exchange(client, code, code_verifier=verifier), "invalid_request")


async def test_the_challenge_is_no_verifier(ann, register):
    client = await register()
    code = await ann.code(client)

    refused(await ann.exchange(client, code, code_verifier=CHALLENGE))


async def test_an_expired_code_is_refused(ann, register, clock):
    client = await register()
    code = await ann.code(client)
    clock.advance(61)

    refused(await ann.exchange(client, code))


async def test_a_replayed_code_of_an_offline_grant_revokes_its_refresh_token(ann, register):
    client = await register(scopes=["openid", "offline_access"])
    code = await ann.code(client, scope="openid offline_access")
    tokens = (await ann.exchange(client, code)).json()

    refused(await ann.exchange(client, code))
    refused(await ann.refresh(client, tokens["refresh_token"]))
    assert (await ann.userinfo(tokens["access_token"])).status_code == 401


async def test_a_refresh_token_of_another_client_is_refused_and_stays_usable(ann, register):
    scopes = ["openid", "offline_access"]
    mine, theirs = await register(scopes=scopes), await register(scopes=scopes)
    token = (await ann.tokens(mine, scope="openid offline_access"))["refresh_token"]

    refused(await ann.refresh(theirs, token))
    assert (await ann.refresh(mine, token)).status_code == 200


async def test_a_refresh_opens_no_further_scope(ann, register):
    client = await register(scopes=["openid", "offline_access", "phone"])
    token = (await ann.tokens(client, scope="openid offline_access"))["refresh_token"]

    refused(await ann.refresh(client, token, scope="openid phone"), "invalid_scope")


async def test_the_callback_has_no_other_secret_than_the_code(ann, register):
    answer = answer_of(await ann.sign_in(await register()))

    assert set(answer) == {"code", "state", "iss"}
    assert CALLBACK not in answer["code"]
