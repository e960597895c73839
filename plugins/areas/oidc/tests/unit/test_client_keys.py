"""Keys of clients at a URL, without a network."""

from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_oidc.clients.key_fetcher import KeyFetcher, KeysUnavailable
from msgsvc_oidc.clients.remote_keys import FETCH, RemoteKeys
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.protocol.client_authentication import names_unknown_key
from msgsvc_oidc.protocol.clients import Client
from plugins.areas.oidc.tests.unit.provider import register

URL = "https://app.example/jwks"

#: {"alg": "ES256", "kid": "one"}
HEADER = "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9uZSJ9"


def client_of(**changed: Any) -> Client:
    fields = {"jwks_uri": URL, "auth_method": "private_key_jwt", **changed}
    return Client(project_id=PROJECT, client_id="app_1", name="Grafana", created_at_ms=0, **fields)


@pytest.mark.parametrize(
    ("changed", "assertion", "unknown"),
    [
        ({}, f"{HEADER}.e30.x", True),
        ({"jwks": {"keys": [{"kid": "one"}]}}, f"{HEADER}.e30.x", False),
        ({"jwks": {"keys": [{"kid": "two"}]}}, f"{HEADER}.e30.x", True),
        ({"jwks": {"keys": [{"kid": ["one"]}]}}, f"{HEADER}.e30.x", True),
        ({"jwks": {"keys": [{"kid": "one"}]}}, "e30.e30.x", True),
        ({"jwks": {"keys": [{"kid": "one"}]}}, "", True),
        ({"jwks_uri": None}, f"{HEADER}.e30.x", False),
    ],
)
def test_a_key_is_unknown_by_its_name(
    changed: dict[str, Any], assertion: str, unknown: bool
) -> None:
    assert names_unknown_key(client_of(**changed), assertion) is unknown


async def test_keys_are_asked_for_once_a_minute(core: MemoryCore, tx: Tx) -> None:
    keys, start_ms = RemoteKeys(clock=core.clock, jobs=core.jobs), core.clock.now_ms()
    client = await register(core, tx, jwks_uri=URL, token_endpoint_auth_method="private_key_jwt")
    asked_ms = []
    for wait_s in (0, 59, 1):
        core.clock.advance(wait_s)
        await keys.ask(tx, client)
        found = await core.get(Clients).get(tx, PROJECT, client.client_id)
        asked_ms.append((found.jwks_asked_at_ms or 0) - start_ms)

    assert asked_ms == [0, 0, 60_000]
    [job] = await core.jobs_named(tx, FETCH)
    assert job.lane == f"oidc-keys:{client.client_id}"


def test_a_client_is_known_to_have_been_asked(core: MemoryCore) -> None:
    keys, now_ms = RemoteKeys(clock=core.clock, jobs=core.jobs), core.clock.now_ms()

    assert not keys.may_ask(client_of(jwks_asked_at_ms=now_ms - 59_999))
    assert keys.may_ask(client_of(jwks_asked_at_ms=now_ms - 60_000))
    assert not keys.may_ask(client_of(jwks_uri=None))


async def test_a_url_of_our_own_network_is_not_called() -> None:
    fetcher = KeyFetcher(guard=OutboundGuard(), timeout_s=5)

    with pytest.raises(KeysUnavailable, match="no response"):
        await fetcher.fetch("https://127.0.0.1/jwks")


async def test_keys_of_a_client_that_is_gone_are_not_fetched(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    async def fetch(_: KeyFetcher, url: str) -> dict[str, Any]:
        fetched.append(url)
        return {"keys": []}

    monkeypatch.setattr(KeyFetcher, "fetch", fetch)
    async with core.db.transaction() as tx:
        client = await register(
            core, tx, jwks_uri=URL, token_endpoint_auth_method="private_key_jwt"
        )
    job = NewJob(FETCH, {"client_id": client.client_id}, project_id=PROJECT)
    await core.run(job)
    async with core.db.transaction() as tx:
        await core.get(Clients).delete(tx, PROJECT, client.client_id)
    await core.run(job)

    assert fetched == [URL]
