"""`Idempotency-Key`: which keys are taken, what they stand for, and for how long."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.http import idempotency
from msgsvc_core.security import SecretBox
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError
from tests.api.idempotency.effects import KEY, CountEffects, Effects

HOUR_S = 3600


@pytest.mark.parametrize(
    "key",
    ["", "seven77", "x" * 129, "with space", "semi;colon", "dot.dot.dot", "кириллица".encode()],
)
async def test_a_malformed_key_is_validation_failed(
    client: httpx2.AsyncClient, check_error: CheckError, effects: Effects, key: Any
) -> None:
    answer = await client.post("/v1/effects", json={}, headers={"Idempotency-Key": key})

    assert check_error(answer, 400, "validation_failed")["error"].startswith("Idempotency-Key: ")
    assert effects.calls == 0


async def test_two_different_keys_are_refused_and_the_same_twice_is_one(
    client: httpx2.AsyncClient, check_error: CheckError, effects: Effects
) -> None:
    name = "Idempotency-Key"
    both = [(name, "first-key"), (name, "other-key")]
    refused = await client.post("/v1/effects", json={}, headers=both)
    taken = await client.post("/v1/effects", json={}, headers=[(name, "first-key")] * 2)

    assert "different values" in check_error(refused, 400, "validation_failed")["error"]
    assert (taken.status_code, effects.calls) == (201, 1)


@pytest.mark.parametrize("key", ["a" * 8, "Z_-" * 42, "0" * 128])
async def test_a_key_of_8_to_128_characters_is_taken(client: httpx2.AsyncClient, key: str) -> None:
    answer = await client.post("/v1/effects", json={}, headers={"Idempotency-Key": key})

    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/effects/other", b"{}"),
        ("/v1/effects", b'{"note": "more"}'),
        ("/v1/effects", b"{ }"),
    ],
    ids=["another path", "another body", "other bytes of the same body"],
)
async def test_the_key_with_another_request_is_a_conflict(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    count_effects: CountEffects,
    path: str,
    body: bytes,
) -> None:
    await client.post("/v1/effects", content=b"{}", headers=KEY)

    answer = await client.post(path, content=body, headers=KEY)

    check_error(answer, 409, "idempotency_conflict")
    assert await count_effects() == 1


async def test_a_conflict_leaves_the_stored_answer_as_it_is(client: httpx2.AsyncClient) -> None:
    first = await client.post("/v1/effects", json={}, headers=KEY)
    await client.post("/v1/effects", json={"note": "other"}, headers=KEY)

    again = await client.post("/v1/effects", json={}, headers=KEY)

    assert again.content == first.content


def test_another_method_makes_another_fingerprint() -> None:
    box = SecretBox(["k" * 32])
    prints = [
        idempotency.fingerprints_of(box, method, "/v1/x", b"{}") for method in ("POST", "PUT")
    ]

    assert prints[0] != prints[1]


def test_a_fingerprint_can_not_be_made_without_the_key_and_outlives_its_rotation() -> None:
    old, new = "o" * 32, "n" * 32
    [made] = idempotency.fingerprints_of(SecretBox([old]), "POST", "/v1/x", b"{}")
    other = idempotency.fingerprints_of(SecretBox([new]), "POST", "/v1/x", b"{}")
    rotated = idempotency.fingerprints_of(SecretBox([new, old]), "POST", "/v1/x", b"{}")

    assert made not in other
    assert rotated == [*other, made]


async def test_only_post_takes_a_key(
    client: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    for _ in range(2):
        await client.put("/v1/effects", json={}, headers=KEY)

    assert await count_effects() == 2


async def test_projects_do_not_share_keys(
    service: Service,
    client: httpx2.AsyncClient,
    make_tenant: Callable[..., Awaitable[Tenant]],
    count_effects: CountEffects,
) -> None:
    other = await make_tenant(service, "Other")
    await client.post("/v1/effects", json={}, headers=KEY)

    answer = await other.client.post("/v1/effects", json={}, headers=KEY)

    assert "Idempotent-Replayed" not in answer.headers
    assert await count_effects() == 2


async def test_a_key_is_kept_for_24_hours(
    client: httpx2.AsyncClient, clock: FakeClock, count_effects: CountEffects
) -> None:
    await client.post("/v1/effects", json={}, headers=KEY)
    clock.advance(24 * HOUR_S)
    kept = await client.post("/v1/effects", json={}, headers=KEY)
    clock.advance(0.001)

    forgotten = await client.post("/v1/effects", json={}, headers=KEY)

    assert kept.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in forgotten.headers
    assert await count_effects() == 2


async def test_a_forgotten_key_may_be_used_for_another_request(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    await client.post("/v1/effects", json={}, headers=KEY)
    clock.advance(24 * HOUR_S + 1)

    answer = await client.post("/v1/effects", json={"note": "other"}, headers=KEY)

    assert answer.status_code == 201
