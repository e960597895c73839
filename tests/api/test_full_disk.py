"""A database that has no room: writes are refused, readiness says so, until there is room again.

`tests/faults/test_disk_full.py` fills a real disk under SQLite. Here SQLite's own bound on a file stands
for it, which answers the same; on PostgreSQL a trigger does, with the code of a full disk.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.subscribing import Subscribe

pytestmark = pytest.mark.database_file

#: Pages that a bounded file may still grow: less than a trial takes.
FEW_PAGES = 2

#: More pages than any test's database has.
MANY_PAGES = 1_000_000

FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$
"""

#: The tables that would have to grow.
GROWING = ("core_messages", "core_links", "core_write_trials")

Fill = Callable[[bool], Awaitable[None]]


@pytest.fixture
def fill(service: Service) -> Fill:
    """`fill(True)` fills the disk, `fill(False)` makes room."""
    return _fill_sqlite(service) if service.db.dialect == "sqlite" else _fill_postgres(service)


def _fill_sqlite(service: Service) -> Fill:
    backend: Any = service.db._backend
    batches: Any = service.db._batches

    async def fill(is_full: bool) -> None:
        plain: list[sqlite3.Connection] = [backend.in_place_writer.connection, batches._connection]
        pages = plain[0].execute("PRAGMA page_count").fetchone()[0]
        bound = f"PRAGMA max_page_count = {pages + FEW_PAGES if is_full else MANY_PAGES}"
        for connection in plain:
            connection.execute(bound)
        async with service.db.transaction() as tx:
            await tx.fetch_val(bound)

    return fill


def _fill_postgres(service: Service) -> Fill:
    async def fill(is_full: bool) -> None:
        async with service.db.transaction() as tx:
            if not is_full:
                await tx.execute("DROP FUNCTION no_room CASCADE")
                return
            await tx.execute(FULL)
            for table in GROWING:
                await tx.execute(
                    f"CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION no_room()"
                )

    return fill


async def write_until_refused(tenant: Tenant, subscriber_id: str) -> httpx2.Response:
    for number in range(100):
        body = {"subscriber_id": subscriber_id, "text": f"{number} " + "x" * 3000}
        answer = await tenant.client.post("/v1/send", json=body)
        if answer.status_code != 202:
            return answer
    raise AssertionError("the disk is not full")


@pytest.mark.both_databases
async def test_readiness_tells_that_the_disk_is_full_until_there_is_room(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, subscribe: Subscribe, fill: Fill
) -> None:
    person = await subscribe("Ann")
    await fill(True)
    refused = await write_until_refused(tenant, person)
    during = [await client.get("/readyz") for _ in range(3)]
    shown = (await service.metrics.scrape())[0].decode()
    read = await tenant.client.get("/v1/messages")
    await fill(False)
    after = await client.get("/readyz")
    body = {"subscriber_id": person, "text": "there is room"}
    sent = await tenant.client.post("/v1/send", json=body)

    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert refused.headers["Retry-After"] == "1"
    assert [answer.status_code for answer in during] == [503] * 3
    checks = [answer.json()["checks"]["database"] for answer in during]
    words = "full" if service.db.dialect == "sqlite" else "No space left"
    assert all(not check["ok"] and words in check["detail"] for check in checks)
    (counted,) = (
        line
        for line in shown.splitlines()
        if line.startswith("msgsvc_database_failed_writes_total")
    )
    assert float(counted.split()[-1]) >= 1
    assert read.status_code == 200
    assert after.status_code == 200
    assert sent.status_code == 202


async def test_a_good_write_ends_what_readiness_tells(
    service: Service, tenant: Tenant, subscribe: Subscribe, fill: Fill
) -> None:
    person = await subscribe("Ann")
    await fill(True)
    await write_until_refused(tenant, person)
    failed = service.db.write_failure
    await fill(False)
    body = {"subscriber_id": person, "text": "there is room"}
    sent = await tenant.client.post("/v1/send", json=body)

    assert failed is not None
    assert sent.status_code == 202
    assert service.db.write_failure is None


async def test_a_trial_leaves_nothing(service: Service, fill: Fill) -> None:
    service.db.write_failure = "the disk is full"
    await service.db.check_writes(1.0)
    async with service.db.read() as tx:
        left = await tx.fetch_val("SELECT COUNT(*) AS count FROM core_write_trials")

    assert left == 0
    assert service.db.write_failure is None
