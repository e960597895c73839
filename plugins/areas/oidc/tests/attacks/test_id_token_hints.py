"""Forged ID tokens as hints (OpenID Connect Core 1.0, sections 3.1.2.1 and 3.1.2.2; RFC 8725, section 3.1).

A hint names the person whom the client expects. One that the provider did not sign, for this client, is
refused. It is never a credential.
"""

import base64
import json

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, import_key

from plugins.areas.oidc.tests.conftest import answer_of


def part(data):
    return base64.urlsafe_b64encode(json.dumps(data).encode()).rstrip(b"=").decode()


def parts_of(token):
    header, payload, _ = token.split(".")
    return (json.loads(base64.urlsafe_b64decode(each + "==")) for each in (header, payload))


@pytest.fixture
async def grafana(register):
    return await register()


async def silent(visitor, client, hint):
    return answer_of(await visitor.authorize(client, prompt="none", id_token_hint=hint))


async def test_a_true_hint_of_the_person_is_answered(ann, grafana, clock):
    token = (await ann.tokens(grafana))["id_token"]
    clock.advance(3600)

    # Also after the end of its validity: it is no credential.
    assert "code" in await silent(ann, grafana, token)


async def test_a_true_hint_signs_nobody_in(ann, eve, grafana):
    token = (await ann.tokens(grafana))["id_token"]

    assert (await silent(eve, grafana, token))["error"] == "login_required"
    page = await eve.authorize(grafana, id_token_hint=token)
    assert "/login/" in page.headers["Location"]


@pytest.mark.parametrize("alg", ["none", "None", "nOnE"])
async def test_a_hint_without_a_signature_is_refused(ann, grafana, alg):
    header, claims = parts_of((await ann.tokens(grafana))["id_token"])
    forged = f"{part({**header, 'alg': alg})}.{part(claims)}."

    assert (await silent(ann, grafana, forged))["error"] == "invalid_request"


@pytest.mark.parametrize("form", ["PEM", "JSON", "x"])
async def test_the_providers_public_key_is_no_shared_secret(ann, grafana, form):
    header, claims = parts_of((await ann.tokens(grafana))["id_token"])
    [public] = [
        key
        for key in (await ann.http.get(f"{ann.issuer}/jwks")).json()["keys"]
        if key["kid"] == header["kid"]
    ]
    secret = {
        "PEM": import_key(public).as_pem(private=False),
        "JSON": json.dumps(public).encode(),
        "x": public["x"].encode(),
    }[form]
    forged = jws.serialize_compact(
        {**header, "alg": "HS256"},
        json.dumps(claims).encode(),
        OctKey.import_key(base64.urlsafe_b64encode(secret).decode()),
        algorithms=["HS256"],
    )

    assert (await silent(ann, grafana, forged))["error"] == "invalid_request"


async def test_a_hint_by_a_key_of_the_attacker_is_refused(ann, grafana):
    header, claims = parts_of((await ann.tokens(grafana))["id_token"])
    own = ECKey.generate_key("P-256", {"kid": header["kid"]}, private=True)
    for changed in ({}, {"jwk": own.as_dict(private=False)}):
        forged = jws.serialize_compact(
            {"alg": "ES256", "kid": header["kid"], **changed}, json.dumps(claims).encode(), own
        )
        assert (await silent(ann, grafana, forged))["error"] == "invalid_request"


async def test_a_hint_of_another_project_is_refused(ann, grafana, elsewhere):
    theirs = await elsewhere.register()
    token = (await elsewhere.visitor.tokens(theirs))["id_token"]
    await ann.tokens(grafana)

    assert (await silent(ann, grafana, token))["error"] == "invalid_request"


@pytest.mark.parametrize("hint", ["x", ".", "..", "a.b.c.d.e", "null", "e30.e30.e30", "é"])
async def test_what_is_no_token_is_refused(ann, grafana, hint):
    await ann.tokens(grafana)

    assert (await silent(ann, grafana, hint))["error"] == "invalid_request"
    page = await ann.authorize(grafana, id_token_hint=hint)
    assert answer_of(page)["error"] == "invalid_request"
