"""A service whose limits are in Redis: shared while it answers, and never a 500 when it is away."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial

import pytest

from msgsvc_core.limits import DatabaseLimiter
from msgsvc_core.limits import redis as redis_limits
from msgsvc_core.limits.redis import RedisLimiter
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import REDIS_URL_VARIABLE, redis_url
from msgsvc_devkit.work import PATIENCE_S
from tests.api.conftest import client_at

MakeTenant = Callable[..., Awaitable[Tenant]]
REDIS_URL = redis_url()

needs_redis = pytest.mark.skipif(
    not has("redis"), reason=f"Redis does not answer; {REDIS_URL_VARIABLE} names one"
)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is only slow, on a busy machine, does not count as away."""
    for name in ("redis_client", "RedisLimiter"):
        made = getattr(redis_limits, name)
        monkeypatch.setattr(redis_limits, name, partial(made, timeout_s=PATIENCE_S))


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a Redis that is away."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"redis://:hunter2-hunter2@127.0.0.1:{bound.getsockname()[1]}/0"


async def test_without_a_url_limits_are_in_the_database_or_in_memory(service: Service) -> None:
    assert isinstance(service.limiter, DatabaseLimiter)


@pytest.mark.database_file
@pytest.mark.both_databases
@needs_redis
@pytest.mark.usefixtures("patient")
async def test_two_processes_share_a_projects_rate(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    limits = {"requests_per_minute": 3}
    one = await make_service(redis_url=REDIS_URL, limits=limits)
    other = await make_service(
        redis_url=REDIS_URL, limits=limits, database_url=one.settings.database_url
    )
    tenant = await make_tenant(one)
    async with client_at(other, tenant) as client:
        statuses = [
            (await caller.get("/v1/project")).status_code
            for caller in (tenant.client, client, tenant.client, client, tenant.client)
        ]

    assert isinstance(one.limiter, RedisLimiter)
    assert statuses == [200, 200, 200, 429, 429]


@needs_redis
@pytest.mark.usefixtures("patient")
async def test_a_ready_service_says_that_its_limits_are_shared(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    client = (await make_tenant(await make_service(redis_url=REDIS_URL))).client

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["checks"]["redis"] == {"ok": True, "detail": "limits are shared"}


@needs_redis
@pytest.mark.usefixtures("patient")
async def test_a_stopped_service_leaves_no_connection(make_service: ServiceFactory) -> None:
    service = await make_service(redis_url=REDIS_URL, start=False)
    async with service:
        await service.limiter.hit("connections", 5, 1)
        limiter = service.limiter
        assert isinstance(limiter, RedisLimiter)
        pool = limiter._client.connection_pool
        during = [one.is_connected for one in pool._available_connections]

    assert during == [True]
    assert not any(one.is_connected for one in pool._available_connections)


async def test_requests_go_on_and_are_limited_while_redis_is_away(
    make_service: ServiceFactory, make_tenant: MakeTenant, nowhere: str
) -> None:
    service = await make_service(redis_url=nowhere, limits={"requests_per_minute": 3})
    client = (await make_tenant(service)).client

    answers = await asyncio.gather(*(client.get("/v1/project") for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 429, 429]
    assert all("X-RateLimit-Remaining" in answer.headers for answer in answers)


async def test_a_service_without_its_redis_is_degraded_but_ready(
    make_service: ServiceFactory, make_tenant: MakeTenant, nowhere: str
) -> None:
    client = (await make_tenant(await make_service(redis_url=nowhere))).client

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["redis"]["ok"] is False
    assert "hunter2" not in answer.text
