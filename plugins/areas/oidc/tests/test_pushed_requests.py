"""Pushed authorization requests (RFC 9126), over HTTP."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, CHALLENGE, answer_of

URN = "urn:ietf:params:oauth:request_uri:"


async def push(visitor, client, **changed):
    """Pushes a request as the client."""
    fields = {
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "state": "pushed-state",
        "nonce": "pushed-nonce",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        **changed,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return await post(visitor, client, given)


async def post(visitor, client, form):
    auth = None
    if client.get("client_secret"):
        auth = (client["client_id"], client["client_secret"])
    else:
        form = {**form, "client_id": client["client_id"]}
    return await visitor.http.post(f"{visitor.issuer}/par", data=form, auth=auth)


async def use(visitor, client, request_uri, **more):
    query = {"client_id": client["client_id"], "request_uri": request_uri, **more}
    return await visitor.http.get(f"{visitor.issuer}/authorize", params=query)


async def test_a_pushed_request_signs_in_with_what_was_pushed_alone(ann, register):
    client = await register(require_pushed=True, first_party=True)
    pushed = await push(ann, client)
    request_uri = pushed.json()["request_uri"]

    page = await use(ann, client, request_uri, state="of the browser", scope="openid profile")
    answer = answer_of(await ann.press_yes())
    tokens = (await ann.exchange(client, answer["code"])).json()

    assert pushed.status_code == 201
    assert pushed.headers["Cache-Control"] == "no-store"
    assert request_uri.startswith(URN)
    assert pushed.json()["expires_in"] == 90
    assert page.status_code == 303
    assert answer["state"] == "pushed-state"
    assert tokens["scope"] == "openid"


@pytest.mark.both_databases
async def test_a_request_uri_works_once_however_many_browsers_use_it(ann, register):
    client = await register(first_party=True)
    request_uri = (await push(ann, client)).json()["request_uri"]

    answers = await asyncio.gather(*(use(ann, client, request_uri) for _ in range(20)))

    assert sorted(answer.status_code for answer in answers) == [303] + [400] * 19
    refused = next(answer for answer in answers if answer.status_code == 400)
    assert "invalid_request_uri" in refused.text


async def test_a_request_uri_is_bound_to_its_client(ann, register):
    owner, other = await register(first_party=True), await register(first_party=True)
    request_uri = (await push(ann, owner)).json()["request_uri"]

    stolen = await use(ann, other, request_uri)
    own = await use(ann, owner, request_uri)

    assert (stolen.status_code, own.status_code) == (400, 303)


async def test_a_request_uri_expires(ann, register, clock):
    client = await register()
    request_uri = (await push(ann, client)).json()["request_uri"]
    clock.advance(91)

    page = await use(ann, client, request_uri)

    assert page.status_code == 400


async def test_an_unusable_request_uri_goes_back_where_the_browser_names_a_redirect_uri(
    ann, register
):
    client = await register()

    own = await use(ann, client, URN + "made-up", redirect_uri=CALLBACK, state="s")
    foreign = await use(ann, client, URN + "made-up", redirect_uri="https://evil.example/")

    assert (answer_of(own)["error"], answer_of(own)["state"]) == ("invalid_request_uri", "s")
    assert foreign.status_code == 400


async def test_a_request_uri_that_is_a_url_is_not_fetched(ann, register):
    client = await register()

    page = await ann.authorize(client, request_uri="https://app.example/request.jwt")

    assert answer_of(page)["error"] == "request_uri_not_supported"


async def test_a_client_that_must_push_is_refused_otherwise(ann, register):
    client = await register(require_pushed=True)

    answer = answer_of(await ann.authorize(client))

    assert answer["error"] == "invalid_request"
    assert "must push" in answer["error_description"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"request_uri": URN + "x"}, "invalid_request"),
        ({"request": "e30.e30."}, "request_not_supported"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
    ],
)
async def test_the_whole_request_is_checked_at_once(ann, register, changed, error):
    client = await register()
    refused = await push(ann, client, **changed)

    assert (refused.status_code, refused.json()["error"]) == (400, error)
    assert await ann.outcomes(client) == [("code", error)]


async def test_a_client_with_a_wrong_secret_can_push_nothing(ann, register):
    client = await register()

    refused = await push(ann, {**client, "client_secret": "mos_wrong"})

    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


async def test_a_public_client_pushes_with_its_id_alone(ann, register):
    client = await register(token_endpoint_auth_method="none", first_party=True)

    pushed = await push(ann, client)
    page = await use(ann, client, pushed.json()["request_uri"])

    assert pushed.status_code == 201
    assert page.status_code == 303
    assert parse_qs(urlsplit(page.headers["Location"]).query).get("error") is None
