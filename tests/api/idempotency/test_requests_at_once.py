"""`Idempotency-Key`: requests with one key that come while the first of them runs."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_core.http import idempotency
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, client_at
from tests.api.idempotency.effects import KEY, CountEffects, Effects

First = asyncio.Task[httpx2.Response]


@pytest.fixture
async def first(client: httpx2.AsyncClient, effects: Effects) -> First:
    """The first request with the key, which has its effect and ends with `effects.may_end`."""
    effects.may_end.clear()
    task = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()
    return task


@pytest.fixture
async def beside(
    make_service: ServiceFactory, service: Service, tenant: Tenant
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client at a second process on the database of the first."""
    second = await make_service(
        extra_plugins=[("effects", Effects())], database_url=service.settings.database_url
    )
    async with client_at(second, tenant) as client:
        yield client


async def test_fifty_at_once_have_one_effect_and_one_answer(
    client: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    answers = await asyncio.gather(
        *(client.post("/v1/effects", json={}, headers=KEY) for _ in range(50))
    )

    assert {(answer.status_code, answer.content) for answer in answers} == {(201, b'{"calls":1}')}
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 49
    assert await count_effects() == 1


async def test_twenty_over_two_processes_have_one_effect(
    client: httpx2.AsyncClient, beside: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    answers = await asyncio.gather(
        *(one.post("/v1/effects", json={}, headers=KEY) for one in (client, beside) * 10)
    )

    assert {answer.status_code for answer in answers} == {201}
    assert await count_effects() == 1


async def test_who_comes_while_the_first_runs_waits_for_its_answer(
    client: httpx2.AsyncClient, effects: Effects, first: First
) -> None:
    second = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    effects.may_end.set()

    assert (await second).content == (await first).content


async def test_who_waited_for_too_long_comes_too_early(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    first: First,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_S", 0.02)

    early = await client.post("/v1/effects", json={}, headers=KEY)
    effects.may_end.set()
    await first
    later = await client.post("/v1/effects", json={}, headers=KEY)

    check_error(early, 425, "too_early")
    assert early.headers["Retry-After"] == "1"
    assert later.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_who_waits_for_another_process_for_too_long_comes_too_early(
    beside: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    first: First,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_S", 0.1)

    early = await beside.post("/v1/effects", json={}, headers=KEY)
    effects.may_end.set()

    check_error(early, 425, "too_early")
    assert (await first).status_code == 201


# SQLite writes one transaction at a time anyway.
@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_who_waits_keeps_nobody_else_from_working(
    client: httpx2.AsyncClient, effects: Effects, first: First
) -> None:
    waiting = [
        asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY)) for _ in range(30)
    ]

    other = await client.post(
        "/v1/subscribers/links", json={}, headers={"Idempotency-Key": "other-key"}
    )
    effects.may_end.set()
    await asyncio.gather(first, *waiting)

    assert other.status_code == 201


async def test_a_client_that_hangs_up_leaves_its_key_free(
    client: httpx2.AsyncClient, effects: Effects, first: First, count_effects: CountEffects
) -> None:
    first.cancel()
    await asyncio.wait([first])
    effects.may_end.set()

    answer = await client.post("/v1/effects", json={}, headers=KEY)

    assert answer.status_code == 201
    assert await count_effects() == 1
