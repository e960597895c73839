"""Parameters that come twice, forms without end, and text that breaks out of its place (RFC 6749, sections
3.1 and 5.2; RFC 9700, section 4.16).

Two parsers that read a repeated parameter differently let a check pass on one value and the effect follow the
other. Nothing that a request says ends a header, opens a tag, or reaches the database as what it can't hold.
"""

import asyncio
import base64
import html
import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx2
import pytest

from msgsvc_oidc.protocol.clients import DEVICE_CODE
from msgsvc_oidc.protocol.parameters import MAX_FORM_BYTES, MAX_PARAMETERS
from plugins.areas.oidc.tests.conftest import (
    CALLBACK,
    CHALLENGE,
    VERIFIER,
    Registry,
    Visitor,
    answer_of,
)

FORM = {"Content-Type": "application/x-www-form-urlencoded"}

#: What tries to get out of a header, an attribute, a script or a text.
HOSTILE = "\r\nSet-Cookie: a=b\r\n\r\n\"><script>alert(1)</script>'{{7*7}}\u2028\u202e"

#: What an error description may hold (RFC 6749, section 5.2).
DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")


def request_of(client):
    return {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "state": "state-1",
        "nonce": "nonce-1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "prompt": "login",
        "max_age": "60",
        "login_hint": "ann",
        "ui_locales": "en",
        "acr_values": "1",
        "display": "page",
        "claims_locales": "en",
    }


async def authorize(visitor, pairs):
    return await visitor.http.get(f"{visitor.issuer}/authorize?{urlencode(pairs)}")


async def post(visitor, path, body, headers=FORM):
    return await visitor.http.post(f"{visitor.issuer}{path}", content=body, headers=headers)


def code_form(client, code):
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
    }


@pytest.mark.parametrize("second", ["same", "another", "empty"])
async def test_no_parameter_of_an_authorization_request_may_come_twice(ann, register, second):
    request = request_of(await register())
    accepted = []
    for name, value in request.items():
        again = {"same": value, "another": f"{value}x", "empty": ""}[second]
        page = await authorize(ann, [*request.items(), (name, again)])
        if name in {"client_id", "redirect_uri"}:
            refused = page.status_code == 400 and "Location" not in page.headers
        else:
            refused = page.status_code == 303 and answer_of(page)["error"] == "invalid_request"
        if not refused:
            accepted.append(name)

    assert not accepted
    assert not ann.sign_ins.started


async def test_of_two_states_none_is_sent_back(ann, register):
    request = request_of(await register())

    page = await authorize(ann, [*request.items(), ("state", "attacker's")])

    assert answer_of(page)["error"] == "invalid_request"
    assert "state" not in answer_of(page)


@pytest.mark.parametrize("second", ["same", "another", "empty"])
async def test_no_parameter_of_a_token_request_may_come_twice(ann, register, second):
    client = await register(token_endpoint_auth_method="client_secret_post")
    form = code_form(client, await ann.code(client))
    accepted = []
    for name, value in form.items():
        again = {"same": value, "another": f"{value}x", "empty": ""}[second]
        response = await post(ann, "/token", urlencode([*form.items(), (name, again)]))
        if (response.status_code, response.json()["error"]) != (400, "invalid_request"):
            accepted.append(name)

    assert not accepted
    assert (await post(ann, "/token", urlencode(form))).status_code == 200


@pytest.mark.parametrize("path", ["/revoke", "/introspect", "/userinfo", "/par"])
async def test_no_parameter_of_the_other_endpoints_may_come_twice(ann, register, path):
    client = await register(token_endpoint_auth_method="client_secret_post")
    access_token = (await ann.tokens(client))["access_token"]
    form = [
        ("client_id", client["client_id"]),
        ("client_secret", client["client_secret"]),
        *[("token", access_token), ("access_token", access_token)] * 2,
    ]

    response = await post(ann, path, urlencode(form))

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_a_client_may_not_authenticate_in_two_ways(ann, register):
    client = await register()
    form = code_form(client, await ann.code(client))
    auth = (client["client_id"], client["client_secret"])

    both = await ann.http.post(f"{ann.issuer}/token", data=form, auth=auth)
    form.pop("client_secret")
    another = await ann.http.post(
        f"{ann.issuer}/token", data={**form, "client_id": "app_other"}, auth=auth
    )
    one = await ann.http.post(f"{ann.issuer}/token", data=form, auth=auth)

    assert (both.status_code, both.json()["error"]) == (400, "invalid_request")
    assert (another.status_code, another.json()["error"]) == (400, "invalid_request")
    assert one.status_code == 200


BODIES = {
    "too large": b"grant_type=" + b"a" * MAX_FORM_BYTES,
    "too many parameters": b"&".join(b"a%d=1" % number for number in range(MAX_PARAMETERS + 1)),
    "no UTF-8": b"grant_type=%ff%fe",
    "raw bytes": b"grant_type=\xff",
    "half a character": b"grant_type=%ed%a0%80",
    "a NUL": b"grant_type=authorization_code&code=%00",
    "a NUL in a name": b"grant%00type=a",
    "nothing": b"",
    "only separators": b"&&&===&;;",
    "half an encoding": b"grant_type=%4",
}

ENDPOINTS = ("/token", "/revoke", "/introspect", "/par")


async def test_a_malformed_form_is_an_error_of_the_protocol_at_every_endpoint(ann):
    odd = []
    for path in ENDPOINTS:
        for name, body in BODIES.items():
            response = await post(ann, path, body)
            found = response.json()
            described = DESCRIPTION.fullmatch(found.get("error_description", ""))
            if response.status_code not in {400, 401} or not described:
                odd.append((path, name, response.status_code, found))

    assert not odd


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data; boundary=a", "text/plain", None]
)
async def test_a_form_of_another_type_is_refused(ann, register, kind):
    client = await register(token_endpoint_auth_method="client_secret_post")
    body = urlencode(code_form(client, await ann.code(client)))
    headers = {} if kind is None else {"Content-Type": kind}

    response = await post(ann, "/token", body.encode(), headers)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


async def test_a_malformed_request_of_a_browser_is_a_page(ann):
    odd = []
    for name, body in BODIES.items():
        by_post = await post(ann, "/authorize", body)
        if by_post.status_code != 400 or "text/html" not in by_post.headers["Content-Type"]:
            odd.append((name, by_post.status_code))
        if name in {"too large", "raw bytes", "a NUL", "a NUL in a name"}:
            # Of URLs, the service refuses these before.
            continue
        for path in ("/authorize", "/return"):
            by_get = await ann.http.get(f"{ann.issuer}{path}?{body.decode()}")
            if by_get.status_code != 400 or "text/html" not in by_get.headers["Content-Type"]:
                odd.append((path, name, by_get.status_code))

    assert not odd


async def test_a_body_without_end_is_read_to_the_limit_and_no_further(ann):
    read = 0

    async def endless():
        nonlocal read
        while True:
            read += 1024
            yield b"a" * 1024

    response = await ann.http.post(f"{ann.issuer}/token", content=endless(), headers=FORM)

    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert read <= MAX_FORM_BYTES + 2 * 1024


@pytest.mark.parametrize(
    "secret",
    [
        "app%00:x",
        "app:%00",
        "%ff:%ff",
        "app%ed%a0%80:x",
        ":",
        "app",
        "\0:\0",
        "app:" + "a" * 60_000,
    ],
)
async def test_odd_bytes_in_the_header_are_a_failed_authentication(ann, secret):
    encoded = base64.b64encode(secret.encode()).decode()
    response = await post(
        ann,
        "/token",
        "grant_type=authorization_code",
        {**FORM, "Authorization": f"Basic {encoded}"},
    )

    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    assert response.headers["WWW-Authenticate"].startswith("Basic ")


async def test_a_name_that_comes_twice_is_described_without_what_it_could_break(ann):
    name = quote('<b>"\\\r\nü')
    response = await post(ann, "/token", f"{name}=1&{name}=2")

    assert DESCRIPTION.fullmatch(response.json()["error_description"])


async def test_a_hostile_state_comes_back_in_the_query_and_splits_nothing(ann, register):
    client = await register()
    page = await ann.authorize(client, state=HOSTILE, prompt="none")

    assert set(page.headers.get_list("set-cookie")) == set()
    assert dict(parse_qsl(urlsplit(page.headers["Location"]).query))["state"] == HOSTILE
    assert re.fullmatch(r"[!-~]+", page.headers["Location"])


async def test_a_hostile_state_is_a_value_of_the_form_that_is_posted(ann, register):
    client = await register()
    page = await ann.authorize(client, state=HOSTILE, prompt="none", response_mode="form_post")

    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert html.escape('"><script>') in page.text.replace("&#34;", "&quot;")
    found = re.findall(r"<input [^>]*>", page.text)
    assert len(found) == len(re.findall("<input", page.text)) == 4


@pytest.mark.parametrize("name", ["login_hint", "ui_locales", "acr_values", "prompt", "scope"])
async def test_hostile_values_are_in_no_page_and_no_error(ann, register, name):
    client = await register()
    page = await ann.authorize(client, **{name: HOSTILE, "response_mode": "form_post"})

    assert "<script>alert" not in page.text
    assert "alert(1)" not in page.headers.get("Location", "")


async def test_a_hostile_name_of_a_client_is_text_on_the_consent_page(ann, register):
    client = await register(name="<script>alert(1)</script>\"'{{7*7}}")
    await ann.authorize(client)
    page = await ann.press_yes()
    shown = await ann.http.get(urlsplit(page.headers["Location"]).path)

    assert "<script>alert" not in shown.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown.text
    assert "{{7*7}}" in shown.text


async def test_a_hostile_name_of_a_person_is_text_on_the_consent_page(new_visitor, register):
    mallory = await new_visitor("<img src=x onerror=alert(1)>", "7777")
    await mallory.authorize(await register())
    page = await mallory.press_yes()
    shown = await mallory.http.get(urlsplit(page.headers["Location"]).path)

    assert "<img" not in shown.text
    assert "&lt;img" in shown.text


@pytest.mark.parametrize("name", ["Gra\u202efana", "Gra\nfana", "\u200b", "Gra\0fana"])
async def test_a_client_cannot_hide_letters_in_its_name(client: httpx2.AsyncClient, name):
    response = await client.post(
        "/v1/oidc/clients", json={"name": name, "redirect_uris": [CALLBACK]}
    )

    assert response.status_code == 400


async def test_a_reason_shown_to_the_developer_is_text(ann):
    page = await ann.http.get(
        f"{ann.issuer}/authorize", params={"client_id": HOSTILE, "redirect_uri": HOSTILE}
    )

    assert page.status_code == 400
    assert "<script>alert" not in page.text


async def test_an_error_of_the_sign_in_page_is_not_repeated(ann, register):
    await ann.authorize(await register())
    state = ann.sign_ins.latest.request.state
    page = await ann.http.get(
        f"{ann.issuer}/return",
        params={"error": HOSTILE, "error_description": HOSTILE, "state": state},
    )

    assert answer_of(page)["error"] == "access_denied"
    assert "alert" not in page.headers["Location"]


async def test_requests_of_one_address_are_limited(ann, register, clock):
    client = await register()
    pages = await asyncio.gather(*(ann.authorize(client, prompt="none") for _ in range(130)))
    clock.advance(61)

    refused = [page for page in pages if page.status_code == 429]
    assert len(refused) == 10
    assert int(refused[0].headers["Retry-After"]) <= 60
    assert (await ann.authorize(client, prompt="none")).status_code == 303


@pytest.mark.parametrize("name", ["state", "nonce", "login_hint", "ui_locales", "acr_values"])
async def test_what_a_request_keeps_is_bounded(ann: Visitor, register: Registry, name: str) -> None:
    client = await register()
    # Software keeps all that it needs to know again in `state`.
    most = 8192 if name == "state" else 2048
    fits = await ann.authorize(client, **{name: "x" * most})
    refused = await ann.authorize(client, **{name: "x" * (most + 1)})

    assert "/login/" in fits.headers["Location"]
    assert answer_of(refused)["error_description"] == f"{name} is too long"


async def test_a_device_keeps_the_values_of_acr_that_exist(
    ann: Visitor, register: Registry
) -> None:
    client = await register(grant_types=[DEVICE_CODE])
    number = "urn:msgsvc:acr:number"
    started = await ann.post(
        client, "/device_authorization", scope="openid", acr_values=f"x {number}"
    )
    async with ann.service.db.read() as tx:
        kept = await tx.fetch_val("SELECT acr_values FROM oidc_device_requests")

    assert started.status_code == 200
    assert kept == number
