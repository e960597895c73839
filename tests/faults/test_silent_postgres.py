"""PostgreSQL that falls silent under a service: it is told so, and goes on when the database does."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import postgres_batches, postgres_notices, postgres_pool, tx
from msgsvc_core.http import operations
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.deadlines import patient
from tests.contracts.proxy import Proxy
from tests.faults.conftest import Figure

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("backend", ["postgresql"], indirect=True),
]

#: Seconds of each bound, whose own values would make this test take minutes.
BOUND_S = 0.5

#: Seconds to open a connection. While the server is there, this test needs some; on a busy machine one
#: took more than `BOUND_S`.
CONNECT_S = 3.0

#: Seconds in which each request is answered: it waits for a connection, a statement, and its undoing. One of
#: them without its bound would wait for as long as the server is silent, or a minute.
ANSWERED_S = patient(20.0)

REQUESTS: tuple[tuple[str, str, object], ...] = (
    ("GET", "/readyz", None),
    ("GET", "/v1/project", None),
    ("GET", "/v1/messages", None),
    ("POST", "/v1/tags", {"name": "new"}),
)


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_pool, "CONNECT_S", CONNECT_S)
    for name in ("STATEMENT_S", "ACQUIRE_S", "GIVE_BACK_S", "CLOSE_S"):
        monkeypatch.setattr(postgres_pool, name, BOUND_S)
    for module in (tx, postgres_batches):
        monkeypatch.setattr(module, "UNDO_S", BOUND_S)
    for name in ("CHECK_S", "PATIENCE_S", "RETRY_S"):
        monkeypatch.setattr(postgres_notices, name, BOUND_S)
    monkeypatch.setattr(operations, "DATABASE_TIMEOUT_S", BOUND_S)


@pytest.fixture
def long_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_pool, "STATEMENT_S", 60.0)


@pytest.fixture
async def proxy(backend: PostgresDatabases) -> AsyncIterator[Proxy]:
    url = await backend.empty()
    async with Proxy(url).running() as running:
        yield running
    await backend.give_back(url)


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[httpx2.AsyncClient]:
    """Of a service that runs in this process."""
    settings = {"secret_keys": ("k" * 40,), "database_url": proxy.url, "channels": {}}
    service = Service(Settings.model_validate(settings))
    await service.migrate()
    async with service:
        project = await service.projects.create("shop")
        _, key = await service.projects.create_key(project.project_id, "all", ("*",))
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=service.app),
            base_url="http://service",
            headers={"Authorization": f"Bearer {key}"},
        ) as made:
            yield made
        proxy.go_on()


async def test_a_silent_postgres_is_503_in_time_and_heals_by_itself(
    proxy: Proxy, client: httpx2.AsyncClient, figure: Figure
) -> None:
    async def ask(method: str, path: str, body: object) -> tuple[int, float]:
        started = time.monotonic()
        async with asyncio.timeout(ANSWERED_S):
            answer = await client.request(method, path, json=body)
        return answer.status_code, time.monotonic() - started

    async def ask_all() -> list[tuple[int, float]]:
        return list(await asyncio.gather(*(ask(*request) for request in REQUESTS)))

    async def all_answered() -> bool:
        return 503 not in {status for status, _ in await ask_all()}

    # The pool is warm, and the key is known.
    await until(all_answered)
    proxy.fall_silent()
    during = [one for _ in range(2) for one in await ask_all()]
    proxy.go_on()
    back_at_s = time.monotonic()
    await until(all_answered)
    back_s = time.monotonic() - back_at_s

    slowest_s = max(took_s for _, took_s in during)
    figure(
        "PostgreSQL that falls silent",
        f"{len(during)} requests, all 503 within {slowest_s:.2f} s by bounds of {BOUND_S} and {CONNECT_S} s,"
        f" back after {back_s:.2f} s",
        requests=len(during),
        slowest_s=round(slowest_s, 2),
        back_s=round(back_s, 2),
    )
    assert {status for status, _ in during} == {503}


@pytest.mark.usefixtures("long_statements")
async def test_readiness_answers_in_its_own_time_whatever_a_statement_may_take(
    proxy: Proxy, client: httpx2.AsyncClient
) -> None:
    async def is_ready() -> bool:
        return (await client.get("/readyz")).status_code == 200

    await until(is_ready)
    proxy.fall_silent()
    async with asyncio.timeout(ANSWERED_S):
        during = await client.get("/readyz")

    assert during.status_code == 503
