"""`Idempotency-Key`: which answers are kept and given again, and which leave their key free."""

from collections.abc import Awaitable, Callable

import httpx2
import pytest

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError
from tests.api.idempotency.effects import KEY, NOT_STORED, STORED, CountEffects, Effects


async def test_the_same_request_gets_the_stored_answer_and_has_no_second_effect(
    client: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    first = await client.post("/v1/effects", json={}, headers=KEY)
    second = await client.post("/v1/effects", json={}, headers=KEY)

    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert await count_effects() == 1


async def test_only_the_repetition_is_marked_as_replayed(client: httpx2.AsyncClient) -> None:
    first = await client.post("/v1/effects", json={}, headers=KEY)
    second = await client.post("/v1/effects", json={}, headers=KEY)

    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"


async def test_without_a_key_every_request_has_its_effect(
    client: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    for _ in range(2):
        await client.post("/v1/effects", json={})

    assert await count_effects() == 2


async def test_an_answer_without_a_body_is_replayed_as_such(
    client: httpx2.AsyncClient, count_effects: CountEffects
) -> None:
    answers = [await client.post("/v1/effects/silent", headers=KEY) for _ in range(2)]

    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 2
    assert await count_effects() == 1


@pytest.mark.parametrize("error", STORED, ids=lambda error: error.code)
async def test_an_error_of_the_handler_below_500_is_stored_and_its_effect_undone(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    count_effects: CountEffects,
    error: type[ApiError],
) -> None:
    first = await client.post("/v1/effects", json={"error": error.code}, headers=KEY)
    second = await client.post("/v1/effects", json={"error": error.code}, headers=KEY)

    check_error(first, error.status, error.code)
    check_error(second, error.status, error.code)
    assert second.content == first.content
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (effects.calls, await count_effects()) == (1, 0)


@pytest.mark.parametrize("error", NOT_STORED, ids=lambda error: error.code)
async def test_an_error_after_which_one_may_try_again_is_not_stored(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    count_effects: CountEffects,
    error: type[ApiError],
) -> None:
    for _ in range(2):
        answer = await client.post("/v1/effects", json={"error": error.code}, headers=KEY)
        check_error(answer, error.status, error.code)

    assert (effects.calls, await count_effects()) == (2, 0)


async def test_a_crash_of_the_handler_is_not_stored(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    effects: Effects,
    count_effects: CountEffects,
) -> None:
    for _ in range(2):
        answer = await client.post("/v1/effects", json={"error": "crash"}, headers=KEY)
        check_error(answer, 500, "internal_error")

    assert (effects.calls, await count_effects()) == (2, 0)


async def test_a_body_that_never_validated_leaves_its_key_free(client: httpx2.AsyncClient) -> None:
    refused = await client.post("/v1/effects", json={"unknown": 1}, headers=KEY)
    broken = await client.post("/v1/effects", content=b"{", headers=KEY)

    mended = await client.post("/v1/effects", json={}, headers=KEY)

    assert [refused.status_code, broken.status_code, mended.status_code] == [400, 400, 201]


REFUSED_BY = {"its schema": {"unknown": 1}, "its handler": {"error": "validation_failed"}}


@pytest.mark.parametrize("body", REFUSED_BY.values(), ids=REFUSED_BY)
async def test_a_body_may_be_mended_under_its_key_whoever_refused_it(
    client: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    refused = await client.post("/v1/effects", json=body, headers=KEY)

    mended = await client.post("/v1/effects", json={}, headers=KEY)

    assert [refused.status_code, mended.status_code] == [400, 201]


@pytest.mark.parametrize("body", REFUSED_BY.values(), ids=REFUSED_BY)
async def test_a_used_key_conflicts_with_a_body_whoever_would_refuse_it(
    client: httpx2.AsyncClient, check_error: CheckError, body: dict[str, object]
) -> None:
    await client.post("/v1/effects", json={}, headers=KEY)

    answer = await client.post("/v1/effects", json=body, headers=KEY)

    check_error(answer, 409, "idempotency_conflict")


async def test_a_grouped_request_is_replayed_though_it_would_be_refused_now(
    client: httpx2.AsyncClient, ann: str
) -> None:
    await client.post("/v1/templates", json={"key": "hello", "text": "Hi"})
    body = {"subscriber_id": ann, "template": "hello"}
    first = await client.post("/v1/send", json=body, headers=KEY)
    await client.patch("/v1/templates/hello", json={"text": "Hi {{ name }}"})

    again = await client.post("/v1/send", json=body, headers=KEY)

    assert (again.status_code, again.content) == (202, first.content)


async def test_a_request_over_the_rate_leaves_its_key_free(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]], clock: FakeClock
) -> None:
    service = await make_service(
        extra_plugins=[("effects", Effects())], limits={"requests_per_minute": 1}
    )
    client = (await make_tenant(service)).client
    await client.get("/v1/project")
    limited = await client.post("/v1/effects", json={}, headers=KEY)
    clock.advance(60)

    allowed = await client.post("/v1/effects", json={}, headers=KEY)

    assert [limited.status_code, allowed.status_code] == [429, 201]


async def test_a_stored_answer_can_not_be_read_in_the_database(
    service: Service, client: httpx2.AsyncClient
) -> None:
    await client.post("/v1/effects", json={}, headers=KEY)

    async with service.db.read() as tx:
        assert "calls" not in await tx.fetch_val("SELECT body FROM core_idempotency")
