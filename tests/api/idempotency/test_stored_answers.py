"""`Idempotency-Key`: every row of the table in the API's conventions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_core.api import idempotency
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Answer, Body, Endpoint, Router
from msgsvc_core.errors import (
    ApiError,
    BillingBlocked,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    PlatformBusy,
    RateLimitProject,
    TooEarly,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError

KEY = {"Idempotency-Key": "key-1234"}
HOUR_S = 3600

STORED: tuple[type[ApiError], ...] = (ValidationFailed, BillingBlocked, NotFound, Conflict)
NOT_STORED: tuple[type[ApiError], ...] = (
    Unauthorized,
    Forbidden,
    TooEarly,
    RateLimitProject,
    InternalError,
    PlatformBusy,
    Unavailable,
)


class EffectBody(Body):
    """Which error the handler raises after its effect, if any."""

    error: str | None = None
    note: str = ""


class EffectAnswer(Answer):
    """How often the handler has run."""

    calls: int


class Effects:
    """A plugin whose endpoints write a row, and then do as they are told."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    @hookimpl
    def register_endpoints(self, service: Service) -> Sequence[Endpoint]:
        router = Router(area="effects")

        @router.post("/v1/effects", status=201)
        async def make_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has an effect."""
            await self._effect(ctx)
            if body.error == "crash":
                raise RuntimeError("out of order")
            for error in (*STORED, *NOT_STORED):
                if body.error == error.code:
                    raise error
            return EffectAnswer(calls=self.calls)

        @router.post("/v1/effects/other")
        async def make_other_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has the same effect at another path."""
            await self._effect(ctx)
            return EffectAnswer(calls=self.calls)

        @router.post("/v1/effects/silent")
        async def make_silent_effect(ctx: Context) -> None:
            """Has an effect and says nothing of it."""
            await self._effect(ctx)

        @router.put("/v1/effects")
        async def put_effect(ctx: Context, body: EffectBody) -> EffectAnswer:
            """Has the effect by a method that takes no key."""
            await self._effect(ctx)
            return EffectAnswer(calls=self.calls)

        return router.endpoints

    async def _effect(self, ctx: Context) -> None:
        self.calls += 1
        self.entered.set()
        await ctx.tx.insert(
            "core_tags",
            {"project_id": ctx.project_id, "name": f"effect-{self.calls}", "created_at_ms": 0},
        )
        await self.may_end.wait()


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
async def service(make_service: ServiceFactory, effects: Effects) -> Service:
    return await make_service(extra_plugins=[("effects", effects)])


@pytest.fixture
def count_effects(service: Service) -> Callable[[], Awaitable[int]]:
    """How many effects were committed."""

    async def count() -> int:
        async with service.db.read() as tx:
            return int(await tx.fetch_val("SELECT COUNT(*) FROM core_tags"))

    return count


CountEffects = Callable[[], Awaitable[int]]


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


@pytest.mark.parametrize("key", ["a" * 8, "Z_-" * 42, "0" * 128])
async def test_a_key_of_8_to_128_characters_is_taken(client: httpx2.AsyncClient, key: str) -> None:
    answer = await client.post("/v1/effects", json={}, headers={"Idempotency-Key": key})

    assert answer.status_code == 201


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
    prints = {idempotency.fingerprint_of(method, "/v1/x", b"{}") for method in ("POST", "PUT")}

    assert len(prints) == 2


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
    transport = httpx2.ASGITransport(app=second.app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://msgsvc.test", headers=tenant.client.headers
    ) as beside:
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
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=second.app),
        base_url="http://msgsvc.test",
        headers=tenant.client.headers,
    ) as beside:
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


async def test_a_stored_answer_can_not_be_read_in_the_database(
    service: Service, client: httpx2.AsyncClient
) -> None:
    await client.post("/v1/effects", json={}, headers=KEY)

    async with service.db.read() as tx:
        assert "calls" not in await tx.fetch_val("SELECT body FROM core_idempotency")
