"""Exports take a share of the process: few at a time, and everybody else stays quick."""

import asyncio
import contextlib
import json
import socket
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import uvicorn

from msgsvc_core.api.exports import RETRY_AFTER_S, Exports
from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError
from tests.api.neighbours import EXPORTS
from tests.api.test_export import PATH, add_people, stream

#: How much longer a request may take while six exports run. Without shares it is some 50 to 150 times.
RATIO = 15

#: Milliseconds to which a request's usual time is rounded up: a fast one must not make the test strict.
LEAST_MS = 2.0


async def pieces(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield str(number).encode()


async def read(stream: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in stream]


async def test_an_export_counts_until_it_was_read() -> None:
    exports = Exports(per_project=1, per_process=2)
    first = exports.start("a", pieces(2))
    with pytest.raises(RateLimitProject) as refused:
        exports.start("a", pieces(1))
    other = exports.start("b", pieces(1))
    with pytest.raises(RateLimitProject):
        exports.start("c", pieces(1))
    whole = await read(first)
    again = exports.start("a", pieces(1))

    assert refused.value.retry_after_s == RETRY_AFTER_S
    assert whole == [b"0", b"1"]
    assert await read(again) == await read(other) == [b"0"]


async def test_an_export_that_fails_or_is_forgotten_counts_no_longer() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"0"
        raise ValueError("no more")

    exports = Exports(per_project=1, per_process=1)
    with pytest.raises(ValueError, match="no more"):
        await read(exports.start("a", failing()))
    # Nobody reads it.
    exports.start("a", pieces(1))
    with exports.slot("a"), pytest.raises(RateLimitProject):
        exports.start("a", pieces(1))

    assert await read(exports.start("a", pieces(1))) == [b"0"]


async def test_one_export_too_many_gets_429_with_the_time_to_wait(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    make_tenant: Any,
    check_error: CheckError,
) -> None:
    other = await make_tenant(service, "Other")
    with service.get(Exports).slot(tenant.project.project_id):
        allowed = await client.get(PATH)
        with service.get(Exports).slot(tenant.project.project_id):
            refused = await client.get(PATH)
            person = await client.get("/v1/people/export", params={"external_id": "ann"})
            others = await other.client.get(PATH)
    afterwards = await client.get(PATH)

    check_error(refused, 429, "rate_limit_project")
    check_error(person, 429, "rate_limit_project")
    assert refused.headers["Retry-After"] == str(RETRY_AFTER_S)
    assert [each.status_code for each in (allowed, others, afterwards)] == [200, 200, 200]


async def test_an_export_whose_client_goes_away_counts_no_longer(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(limits={"exports_per_project": 1})
    tenant = await make_tenant(service)
    await add_people(service, tenant, 1000)
    await stream(service, tenant, lambda _size: True)

    async def is_free() -> bool:
        return (await tenant.client.get(PATH)).status_code == 200

    await until(is_free)


@contextlib.asynccontextmanager
async def served(service: Service) -> AsyncIterator[int]:
    """The service on a port of this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(service.app, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))

        async def has_started() -> bool:
            return server.started

        await until(has_started)
        yield int(listening.getsockname()[1])
        server.should_exit = True
        await serving


@pytest.mark.both_databases
@pytest.mark.database_file
async def test_six_exports_of_one_tenant_leave_another_s_requests_quick(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    # All six are let in: the shares of the process are what is tried.
    limits = {"requests_per_minute": 1_000_000, "exports_per_project": EXPORTS}
    service = await make_service(limits=limits)
    exporting, other = await make_tenant(service), await make_tenant(service, "Other")
    await add_people(service, exporting, 6000)
    async with served(service) as port:
        asking = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.api.neighbours", str(port), exporting.key, other.key),
            stdout=subprocess.PIPE,
        )
        printed, _ = await asking.communicate()
    found = json.loads(printed)

    assert [status for status, _ in found["answers"]] == [200] * EXPORTS
    assert len({size for _, size in found["answers"]}) == 1
    idle, busy = statistics.median(found["idle"]), statistics.median(found["busy"])
    assert busy < RATIO * max(LEAST_MS, idle)
