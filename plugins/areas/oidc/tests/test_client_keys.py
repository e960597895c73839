"""Clients' keys at their `jwks_uri`, fetched over real HTTP."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

from msgsvc_core.kernel.ids import new_id
from msgsvc_devkit.web_servers import stop
from msgsvc_devkit.work import settled
from plugins.areas.oidc.tests.conftest import CALLBACK, FAST_KEYS

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass
class KeyServer:
    """Publishes keys; `fetches` counts the requests."""

    url: str = ""
    keys: list[ECKey] = field(default_factory=list)
    fetches: int = 0
    answer: web.Response | None = None

    async def handle(self, _request: web.Request) -> web.Response:
        self.fetches += 1
        if self.answer is not None:
            return self.answer
        published = [key.as_dict(private=False) for key in self.keys]
        return web.Response(text=json.dumps({"keys": published}))


def new_key(key_id: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": key_id, "alg": "ES256"})


@pytest.fixture
def oidc_settings() -> dict[str, Any]:
    return {
        **FAST_KEYS,
        "allow_http_logout": True,
        "allow_cidrs": ["127.0.0.0/8"],
        "failures_per_minute_per_client": 100_000,
        "registration": True,
    }


@pytest.fixture
async def server() -> AsyncIterator[KeyServer]:
    found = KeyServer()
    application = web.Application()
    application.router.add_get("/jwks", found.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}/jwks"
    yield found
    await stop(runner)


@pytest.fixture
def register_with_keys(register, server, service):
    """Registers a client whose key the server publishes."""

    async def make(key):
        server.keys = [key]
        client = await register(token_endpoint_auth_method="private_key_jwt", jwks_uri=server.url)
        await settled(service)
        return client

    return make


async def authenticate(visitor, client, key, clock, **header):
    """A request that only an authenticated client gets an answer to."""
    issuer = f"http://msgsvc.test{visitor.issuer}"
    client_id = client["client_id"]
    now_s = clock.now_ms() // 1000
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "exp": now_s + 60,
        "jti": new_id("jti"),
    }
    assertion = jwt.encode({"alg": "ES256", "kid": key.kid, **header}, claims, key)
    form = {
        "token": "x",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
    }
    response = await visitor.http.post(f"{visitor.issuer}/introspect", data=form)
    return response.status_code


async def test_keys_are_fetched_when_the_client_is_registered(
    ann, register_with_keys, server, clock, client
):
    key = new_key("one")
    app = await register_with_keys(key)

    status = await authenticate(ann, app, key, clock)
    shown = (await client.get(f"/v1/oidc/clients/{app['client_id']}")).json()

    assert status == 200
    assert server.fetches == 1
    assert (shown["jwks"], shown["jwks_uri"]) == (None, server.url)


async def test_a_new_key_is_found_by_the_request_after_the_one_that_needs_it(
    ann, register_with_keys, server, service, clock
):
    old, new = new_key("one"), new_key("two")
    app = await register_with_keys(old)
    server.keys = [new]
    clock.advance(61)

    first = await authenticate(ann, app, new, clock)
    await settled(service)
    second = await authenticate(ann, app, new, clock)
    with_old = await authenticate(ann, app, old, clock)

    assert (first, second, with_old) == (401, 200, 401)
    assert server.fetches == 2


@pytest.mark.both_databases
async def test_unknown_keys_can_not_cause_a_storm_of_fetches(
    ann, register_with_keys, server, service, clock
):
    app = await register_with_keys(new_key("one"))
    fetched = []
    for minute in range(3):
        clock.advance(20)
        keys = [new_key(f"made-up {minute} {number}") for number in range(20)]
        await asyncio.gather(*(authenticate(ann, app, key, clock) for key in keys))
        await settled(service)
        clock.advance(41)
        await asyncio.gather(*(authenticate(ann, app, key, clock) for key in keys))
        await settled(service)
        fetched.append(server.fetches)

    # One at the registration, then one a minute, of 120 requests.
    assert fetched == [2, 3, 4]


async def test_a_known_key_that_signed_nothing_causes_no_fetch(
    ann, register_with_keys, server, service, clock
):
    app = await register_with_keys(new_key("one"))
    clock.advance(61)

    status = await authenticate(ann, app, new_key("one"), clock)
    await settled(service)

    assert (status, server.fetches) == (401, 1)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 500},
        {"text": "<html>"},
        {"text": "[]"},
        {"text": '{"keys": []}'},
        {"text": '{"keys": [1, {"kty": "oct", "k": "c2VjcmV0"}]}'},
        {"text": " " * 70_000},
        {"status": 302, "headers": {"Location": "http://127.0.0.1/"}},
    ],
)
async def test_a_fetch_that_fails_leaves_the_keys_as_they_were(
    ann, register_with_keys, server, service, clock, answer
):
    key = new_key("one")
    app = await register_with_keys(key)
    server.answer = web.Response(**answer)
    clock.advance(61)
    await authenticate(ann, app, new_key("two"), clock)
    await settled(service)

    status = await authenticate(ann, app, key, clock)

    assert (status, server.fetches) == (200, 2)


@pytest.mark.parametrize("key_id", [["one"], {"a": 1}, 1])
async def test_a_name_of_a_key_that_is_none_is_refused(ann, register_with_keys, clock, key_id):
    key = new_key("one")
    app = await register_with_keys(key)

    assert await authenticate_raw(ann, app, key_id) == 401


async def authenticate_raw(visitor, client, key_id):
    """An assertion as no library writes it."""

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    header = part({"alg": "ES256", "kid": key_id})
    claims = part({"sub": client["client_id"]})
    form = {
        "token": "x",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": f"{header}.{claims}.AAAA",
    }
    response = await visitor.http.post(f"{visitor.issuer}/introspect", data=form)
    return response.status_code


async def test_another_url_is_fetched_and_inline_keys_end_it(
    ann, register_with_keys, server, service, clock, client
):
    old, new = new_key("one"), new_key("two")
    app = await register_with_keys(old)
    path = f"/v1/oidc/clients/{app['client_id']}"
    clock.advance(61)
    server.keys = [new]

    await client.patch(path, json={"jwks_uri": f"{server.url}?moved"})
    await settled(service)
    moved = [await authenticate(ann, app, key, clock) for key in (old, new)]
    inline = {"keys": [old.as_dict(private=False)]}
    changed = await client.patch(path, json={"jwks": inline})
    back = [await authenticate(ann, app, key, clock) for key in (old, new)]

    assert (moved, back) == ([401, 200], [200, 401])
    assert changed.json()["jwks_uri"] is None


async def test_keys_come_from_one_place(client, server):
    body = {
        "name": "Wiki",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": {"keys": [new_key("one").as_dict(private=False)]},
        "jwks_uri": server.url,
    }

    both = await client.post("/v1/oidc/clients", json=body)
    of_ours = await client.post(
        "/v1/oidc/clients", json={**body, "jwks": None, "jwks_uri": "http://10.0.0.1/jwks"}
    )

    assert (both.status_code, both.json()["code"]) == (400, "validation_failed")
    assert (of_ours.status_code, of_ours.json()["code"]) == (400, "invalid_url")


async def test_a_client_registers_itself_with_the_url_of_its_keys(
    ann, server, service, client, clock
):
    key = new_key("one")
    server.keys = [key]
    made = await client.post("/v1/oidc/registration-tokens", json={"name": "Matrix"})

    registered = await ann.http.post(
        f"{ann.issuer}/register",
        json={
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "private_key_jwt",
            "jwks_uri": server.url,
        },
        headers={"Authorization": f"Bearer {made.json()['token']}"},
    )
    await settled(service)
    status = await authenticate(ann, registered.json(), key, clock)

    assert registered.json()["jwks_uri"] == server.url
    assert "jwks" not in registered.json()
    assert status == 200
