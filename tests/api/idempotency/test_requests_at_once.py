"""`Idempotency-Key`: requests with one key that come while the first of them runs."""

import asyncio

import httpx2
import pytest

from msgsvc_core.api import idempotency
from msgsvc_core.service import Service
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, client_at
from tests.api.idempotency.effects import KEY, CountEffects, Effects


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
    make_service: ServiceFactory, service: Service, tenant: Tenant, count_effects: CountEffects
) -> None:
    second = await make_service(
        extra_plugins=[("effects", Effects())], database_url=service.settings.database_url
    )
    async with client_at(second, tenant) as beside:
        answers = await asyncio.gather(
            *(
                client.post("/v1/effects", json={}, headers=KEY)
                for client in (tenant.client, beside) * 10
            )
        )

    assert {answer.status_code for answer in answers} == {201}
    assert await count_effects() == 1


async def test_who_comes_while_the_first_runs_waits_for_its_answer(
    client: httpx2.AsyncClient, effects: Effects
) -> None:
    effects.may_end.clear()
    first = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()
    second = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    effects.may_end.set()

    assert (await second).content == (await first).content


async def test_who_waited_for_too_long_comes_too_early(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_S", 0.02)
    effects.may_end.clear()
    first = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()

    early = await client.post("/v1/effects", json={}, headers=KEY)
    effects.may_end.set()
    await first
    later = await client.post("/v1/effects", json={}, headers=KEY)

    check_error(early, 425, "too_early")
    assert early.headers["Retry-After"] == "1"
    assert later.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_who_waits_for_another_process_for_too_long_comes_too_early(
    make_service: ServiceFactory,
    service: Service,
    tenant: Tenant,
    check_error: CheckError,
    effects: Effects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_S", 0.1)
    second = await make_service(
        extra_plugins=[("effects", Effects())], database_url=service.settings.database_url
    )
    effects.may_end.clear()
    first = asyncio.create_task(tenant.client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()
    async with client_at(second, tenant) as beside:
        early = await beside.post("/v1/effects", json={}, headers=KEY)
    effects.may_end.set()

    check_error(early, 425, "too_early")
    assert (await first).status_code == 201


# SQLite writes one transaction at a time anyway.
@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_who_waits_keeps_nobody_else_from_working(
    client: httpx2.AsyncClient, effects: Effects
) -> None:
    effects.may_end.clear()
    first = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()
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
    client: httpx2.AsyncClient, effects: Effects, count_effects: CountEffects
) -> None:
    effects.may_end.clear()
    first = asyncio.create_task(client.post("/v1/effects", json={}, headers=KEY))
    await effects.entered.wait()
    first.cancel()
    await asyncio.wait([first])
    effects.may_end.set()

    answer = await client.post("/v1/effects", json={}, headers=KEY)

    assert answer.status_code == 201
    assert await count_effects() == 1
