"""A PostgreSQL that lets nobody write, as an old primary after a failover, or nobody in."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.databases import postgres_url
from msgsvc_devkit.fixtures import Tenant

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)


class Server:
    """What an operator does to the service's database."""

    def __init__(self, name: str, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._name = name
        self._connection = connection

    async def alter(self, change: str) -> None:
        """Changes the database, and ends the connections that were made before."""
        await self._connection.execute(f"ALTER DATABASE {self._name} {change}")
        await self._connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", self._name
        )


@pytest.fixture
async def server(service: Service) -> AsyncIterator[Server]:
    connection = await asyncpg.connect(postgres_url())
    name = urlsplit(service.settings.database_url).path.removeprefix("/")
    try:
        yield Server(name, connection)
    finally:
        await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await connection.close()


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("SET default_transaction_read_only = on", "RESET default_transaction_read_only"),
        ("ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true"),
    ],
)
@pytest.mark.parametrize("keyed", [False, True])
async def test_writes_are_unavailable_until_it_can_be_written_to_again(
    server: Server, tenant: Tenant, client: httpx2.AsyncClient, broken: str, whole: str, keyed: bool
) -> None:
    headers = {"Idempotency-Key": "only-once"} if keyed else {}

    async def write() -> httpx2.Response:
        return await client.post("/v1/subscribers/links", json={}, headers=headers)

    await server.alter(broken)
    # Connections that were cut show that at their next use.
    answers = [await write() for _ in range(3)]
    ready = await client.get("/readyz")
    await server.alter(whole)
    again = [await write() for _ in range(4)][-1]
    ready_again = await client.get("/readyz")

    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["code"] for answer in answers} == {"unavailable"}
    assert all("Retry-After" in answer.headers for answer in answers)
    assert ready.status_code == 503
    assert again.status_code == 201
    assert ready_again.status_code == 200
