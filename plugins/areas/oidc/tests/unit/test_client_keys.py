"""Keys of clients at a URL, without a network."""

from typing import Any

import pytest

from msgsvc_core.jobs import NewJob
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fakes import (
    PROJECT,
    FakeDatabase,
    FakeJobContext,
    FakeJobQueue,
    FakeTx,
    claimed,
)
from msgsvc_oidc.clients.key_fetcher import KeyFetcher, KeysUnavailable
from msgsvc_oidc.clients.key_jobs import ClientKeyJobs
from msgsvc_oidc.clients.remote_keys import FETCH, RemoteKeys
from msgsvc_oidc.protocol.client_authentication import names_unknown_key
from msgsvc_oidc.protocol.clients import Client

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


async def test_keys_are_asked_for_once_a_minute() -> None:
    clock = FakeClock()
    jobs = FakeJobQueue(clock)
    keys = RemoteKeys(clock=clock, jobs=jobs)
    now_ms = clock.now_ms()

    await keys.ask(FakeTx(replies={"UPDATE oidc_clients": 0}), client_of())
    refused = list(jobs.enqueued)
    await keys.ask(FakeTx(replies={"UPDATE oidc_clients": 1}), client_of())

    assert refused == []
    assert [(job.name, job.lane) for job in jobs.enqueued] == [(FETCH, "oidc-keys:app_1")]
    assert not keys.may_ask(client_of(jwks_asked_at_ms=now_ms - 59_999))
    assert keys.may_ask(client_of(jwks_asked_at_ms=now_ms - 60_000))
    assert not keys.may_ask(client_of(jwks_uri=None))


async def test_a_url_of_our_own_network_is_not_called() -> None:
    fetcher = KeyFetcher(guard=OutboundGuard(), timeout_s=5)

    with pytest.raises(KeysUnavailable, match="no response"):
        await fetcher.fetch("https://127.0.0.1/jwks")


async def test_keys_of_a_client_that_is_gone_are_not_fetched() -> None:
    db = FakeDatabase(replies={"FROM oidc_clients": []})
    jobs = ClientKeyJobs(db=db, fetcher=KeyFetcher(guard=OutboundGuard(), timeout_s=5))
    ctx = FakeJobContext(db)

    await jobs.fetch(ctx, [claimed(NewJob(FETCH, {"client_id": "app_1"}, project_id=PROJECT))])

    assert db.params_of("UPDATE") == []
