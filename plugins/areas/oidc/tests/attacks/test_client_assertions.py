"""Forged and replayed client assertions (RFC 7523, section 3; RFC 8725, sections 2.1 and 3).

A client that authenticates by `private_key_jwt` signs with its own key, for this provider, for a short time,
and once. The algorithm comes from the provider's list and the key from what the client has registered, never
from the token.
"""

import asyncio
import base64
import json

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.protocol.client_authentication import ASSERTION_TYPE

RSA = RSAKey.generate_key(2048, {"kid": "rsa"}, private=True)
EC = ECKey.generate_key("P-256", {"kid": "ec"}, private=True)
#: A public key of 1024 bits.
SHORT = {**RSA.as_dict(private=False), "n": RSA.as_dict(private=False)["n"][:171]}

STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"}, private=True)


@pytest.fixture
async def robot(register):
    """A client with two keys."""
    keys = [key.as_dict(private=False) for key in (RSA, EC)]
    return await register(
        token_endpoint_auth_method="private_key_jwt",
        jwks={"keys": keys},
        scopes=["openid", "offline_access"],
    )


def claims_of(visitor, client, clock, **changed):
    now_s = clock.now_ms() // 1000
    claims = {
        "iss": client["client_id"],
        "sub": client["client_id"],
        "aud": f"http://msgsvc.test{visitor.issuer}",
        "iat": now_s,
        "exp": now_s + 60,
        "jti": new_id("jti"),
        **changed,
    }
    return {name: value for name, value in claims.items() if value is not None}


def signed(claims, key=RSA, header=None, alg="RS256"):
    return jwt.encode({"alg": alg, "kid": key.kid, **(header or {})}, claims, key, algorithms=[alg])


def raw(header, payload, signature=b""):
    parts = (json.dumps(header).encode(), json.dumps(payload).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


async def authenticate(visitor, assertion, **fields):
    """A token request: `invalid_grant` says that the client was authenticated."""
    form = {
        "grant_type": "authorization_code",
        "code": "x",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
        **fields,
    }
    return (await visitor.http.post(f"{visitor.issuer}/token", data=form)).json()["error"]


@pytest.mark.parametrize(("key", "alg"), [(RSA, "RS256"), (RSA, "PS256"), (EC, "ES256")])
async def test_an_assertion_by_a_key_of_the_client_authenticates_it(ann, robot, clock, key, alg):
    assertion = signed(claims_of(ann, robot, clock), key, alg=alg)

    assert await authenticate(ann, assertion) == "invalid_grant"


async def test_an_assertion_works_once(ann, robot, clock):
    assertion = signed(claims_of(ann, robot, clock))
    found = await asyncio.gather(*(authenticate(ann, assertion) for _ in range(10)))

    assert sorted(found) == ["invalid_client"] * 9 + ["invalid_grant"]
    clock.advance(59)
    assert await authenticate(ann, assertion) == "invalid_client"


async def test_the_same_id_in_another_assertion_is_a_replay(ann, robot, clock):
    claims = claims_of(ann, robot, clock, jti="one")

    assert await authenticate(ann, signed(claims)) == "invalid_grant"
    assert await authenticate(ann, signed({**claims, "iat": 1})) == "invalid_client"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"aud": "https://evil.example"}, id="for another provider"),
        pytest.param({"aud": None}, id="for nobody"),
        pytest.param({"aud": ["https://evil.example"]}, id="for others"),
        pytest.param({"aud": {"https://evil.example": 1}}, id="aud of another type"),
        pytest.param({"iss": "app_other"}, id="of another issuer"),
        pytest.param({"sub": "app_other"}, id="for another client"),
        pytest.param({"iss": None}, id="no iss"),
        pytest.param({"exp": 0}, id="expired"),
        pytest.param({"exp": 99_999_999_999}, id="valid for ever"),
        pytest.param({"exp": None}, id="no exp"),
        pytest.param({"exp": "99999999999"}, id="exp as text"),
        pytest.param({"exp": True}, id="exp as truth"),
        pytest.param({"exp": float("inf")}, id="exp without end"),
        pytest.param({"exp": float("nan")}, id="exp that is no number"),
        pytest.param({"nbf": 99_999_999_999}, id="not yet"),
        pytest.param({"nbf": "0"}, id="nbf as text"),
        pytest.param({"jti": None}, id="no jti"),
        pytest.param({"jti": ""}, id="empty jti"),
        pytest.param({"jti": 1}, id="jti as number"),
        pytest.param({"jti": "a" * 256}, id="long jti"),
        pytest.param({"jti": "a\0"}, id="jti with NUL"),
        pytest.param({"jti": "\ud800"}, id="jti with half a character"),
    ],
)
async def test_an_assertion_with_a_wrong_claim_is_refused(ann, robot, clock, changed):
    claims = claims_of(ann, robot, clock, **changed)
    # As bytes: a library that signs tokens for others checks some of it before.
    payload = json.dumps(claims).encode()
    assertion = jws.serialize_compact({"alg": "RS256", "kid": "rsa"}, payload, RSA)

    assert await authenticate(ann, assertion) == "invalid_client"


async def test_an_assertion_for_another_project_is_refused(ann, robot, clock, elsewhere):
    other = claims_of(elsewhere.visitor, robot, clock)

    assert await authenticate(ann, signed(other)) == "invalid_client"


async def test_an_assertion_of_another_key_is_refused(ann, robot, clock):
    assertion = signed(claims_of(ann, robot, clock), STRANGER)

    assert await authenticate(ann, assertion) == "invalid_client"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", ""])
@pytest.mark.parametrize("signature", [b"", b"x"])
async def test_an_assertion_without_a_signature_is_refused(ann, robot, clock, alg, signature):
    assertion = raw({"alg": alg, "kid": "rsa"}, claims_of(ann, robot, clock), signature)

    assert await authenticate(ann, assertion) == "invalid_client"


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("form", ["PEM", "DER", "JSON", "n"])
async def test_the_public_key_is_no_shared_secret(ann, robot, clock, alg, form):
    public = RSA.as_dict(private=False)
    secret = {
        "PEM": RSA.as_pem(private=False),
        "DER": RSA.as_der(private=False),
        "JSON": json.dumps(public).encode(),
        "n": public["n"].encode(),
    }[form]
    payload = json.dumps(claims_of(ann, robot, clock)).encode()
    key = OctKey.import_key(base64.urlsafe_b64encode(secret).decode())
    header = {"alg": alg, "kid": "rsa"}
    assertion = jws.serialize_compact(header, payload, key, algorithms=[alg])

    assert await authenticate(ann, assertion) == "invalid_client"


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"jwk": STRANGER.as_dict(private=False)}, id="a key of its own"),
        pytest.param({"jku": "https://evil.example/jwks"}, id="a URL of keys"),
        pytest.param({"x5u": "https://evil.example/pem"}, id="a URL of a certificate"),
        pytest.param({"x5c": ["MIIB"]}, id="a certificate"),
        pytest.param({"kid": "../../../dev/null"}, id="a path"),
        pytest.param({"kid": "' OR 1=1 --"}, id="a query"),
        pytest.param({"kid": "ec"}, id="the client's other key"),
        pytest.param({"kid": ""}, id="an empty name"),
        pytest.param({"crit": ["exp"], "exp": 1}, id="an extension that must be known"),
        pytest.param({"b64": False, "crit": ["b64"]}, id="an unencoded payload"),
    ],
)
async def test_a_token_does_not_choose_its_key(ann, robot, clock, header):
    payload = json.dumps(claims_of(ann, robot, clock)).encode()
    valid = jws.serialize_compact({"alg": "RS256", "kid": "rsa"}, payload, STRANGER)
    encoded = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", **header}).encode())
    start = encoded.rstrip(b"=").decode()
    # The signature does not fit any more either where the header is looked at after it.
    forged = f"{start}.{valid.partition('.')[2]}"

    assert await authenticate(ann, forged) == "invalid_client"
    if "crit" not in header:
        signed_by_stranger = jws.serialize_compact(
            {"alg": "RS256", **{name: value for name, value in header.items() if name == "kid"}},
            payload,
            STRANGER,
        )
        assert await authenticate(ann, signed_by_stranger) == "invalid_client"


@pytest.mark.parametrize(
    "assertion",
    [
        *("", ".", "..", "a.b.c", "a.b.c.d.e", "[].[].[]", "e30.e30.", "e30.e30.e30"),
        raw([], {"sub": "a"}),
        raw({"alg": "RS256"}, []),
        raw({"alg": "RS256"}, {"sub": "a\0"}),
        raw({"alg": ["RS256"]}, {"sub": 1}),
        raw({"alg": "RS256"}, {"sub": "\ud800"}),
    ],
)
async def test_what_is_no_token_is_refused(ann, robot, assertion):
    found = await authenticate(ann, assertion)
    named = await authenticate(ann, assertion, client_id=robot["client_id"])

    assert {found, named} <= {"invalid_client"}


async def test_the_client_that_is_named_is_the_one_that_signs(ann, robot, register, clock):
    other = await register(
        token_endpoint_auth_method="private_key_jwt",
        jwks={"keys": [STRANGER.as_dict(private=False)]},
    )
    theirs = signed(claims_of(ann, other, clock), STRANGER)

    assert await authenticate(ann, theirs, client_id=robot["client_id"]) == "invalid_client"
    assert await authenticate(ann, theirs) == "invalid_grant"


async def test_an_assertion_type_that_is_not_known_is_refused(ann, robot, clock):
    assertion = signed(claims_of(ann, robot, clock))

    found = await authenticate(ann, assertion, client_assertion_type="saml2-bearer")
    assert found == "invalid_request"


async def test_a_client_with_keys_has_no_secret_and_is_not_public(ann, robot):
    form = {"grant_type": "authorization_code", "code": "x"}
    named = {**form, "client_id": robot["client_id"]}

    for fields in (named, {**named, "client_secret": "x"}, {**named, "client_secret": "None"}):
        response = await ann.http.post(f"{ann.issuer}/token", data=fields)
        assert (response.status_code, response.json()["error"]) == (401, "invalid_client")


async def test_a_client_with_a_secret_does_not_authenticate_by_a_key(ann, register, clock):
    client = await register()
    assertion = signed(claims_of(ann, client, clock))
    by_secret = jws.serialize_compact(
        {"alg": "HS256"},
        json.dumps(claims_of(ann, client, clock)).encode(),
        OctKey.import_key(base64.urlsafe_b64encode(client["client_secret"].encode()).decode()),
    )

    assert await authenticate(ann, assertion) == "invalid_client"
    assert await authenticate(ann, by_secret) == "invalid_client"


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(RSA.as_dict(private=True), id="private RSA"),
        pytest.param(EC.as_dict(private=True), id="private EC"),
        pytest.param(OKPKey.generate_key("Ed25519").as_dict(private=True), id="private OKP"),
        pytest.param({"kty": "oct", "k": "c2VjcmV0"}, id="shared secret"),
        pytest.param({"kty": "RSA"}, id="no key"),
        pytest.param({"kty": "wrong"}, id="unknown type"),
        pytest.param({}, id="nothing"),
        pytest.param(SHORT, id="short RSA"),
    ],
)
async def test_only_good_public_keys_can_be_registered(client, key):
    body = {
        "name": "Robot",
        "redirect_uris": ["https://app.example/callback"],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": {"keys": [key]},
    }
    response = await client.post("/v1/oidc/clients", json=body)

    assert response.status_code == 400, response.text
