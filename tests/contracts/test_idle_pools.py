"""Connections that a service of a test leaves to that of the next."""

import asyncio

import asyncpg
import pytest

from msgsvc_core.db import CORE_MIGRATIONS
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.runners import TestRunner
from msgsvc_devkit.services import ServiceMaker

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

OPENED = "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'msgsvc %'"


async def sessions(url: str) -> set[int]:
    """The server's processes for connections of services to that database."""
    connection = await asyncpg.connect(url.rpartition("/")[0] + "/postgres")
    try:
        return {row["pid"] for row in await connection.fetch(OPENED, url.rpartition("/")[2])}
    finally:
        await connection.close()


async def none_is_left(url: str) -> None:
    """The server lists a session for a moment after its end."""
    async with asyncio.timeout(patient(20)):
        while await sessions(url):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.005)


@pytest.fixture
def maker(backend: PostgresDatabases, _stopped_in_the_end: None) -> ServiceMaker:
    return ServiceMaker(backend, FakeClock(), TestRunner("embedded"))


async def test_the_next_service_on_a_database_continues_its_connections(
    backend: PostgresDatabases, maker: ServiceMaker
) -> None:
    first = await maker()
    await first.projects.create("Shop")
    await maker.close()
    left = await sessions(first.settings.database_url)

    second = ServiceMaker(backend, FakeClock(), TestRunner("embedded"))
    service = await second()

    assert service.settings.database_url == first.settings.database_url
    assert left & await sessions(first.settings.database_url)
    assert await service.projects.list() == []
    await second.close()


async def test_nobody_is_connected_to_a_database_for_other_uses(
    backend: PostgresDatabases, maker: ServiceMaker
) -> None:
    await maker()
    await maker.close()

    url = await backend.fresh([CORE_MIGRATIONS])

    await none_is_left(url)
    await backend.give_back(url)


async def test_a_service_that_a_test_stops_closes_its_connections(maker: ServiceMaker) -> None:
    service = await maker()
    await service.stop()

    await none_is_left(service.settings.database_url)
    await maker.close()
