"""Callers cancelled in the middle of what they do, by the thousand, on both databases."""

import asyncio
import json
import random
import sqlite3
from contextlib import AsyncExitStack, closing
from functools import partial
from typing import Any

import asyncpg
import pytest

from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.sqlite import READERS
from msgsvc_core.server import ConnectionLimits, Server, bind
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import ServiceFactory
from tests.faults.conftest import Figure, Rounds
from tests.faults.held_shop import STEPS, Call, HeldPlugin, HeldShop, cancel_soon

pytestmark = pytest.mark.faults

#: Callers at once.
AT_ONCE = 10

#: Seconds after which something hangs.
HUNG_S = patient(120.0)


@pytest.fixture
async def shop(make_service: ServiceFactory, make_tenant: Any) -> HeldShop:
    plugin = HeldPlugin()
    service = await make_service(
        extra_plugins=[("held", plugin)],
        channels={"messenger_a": {"plugin": "held"}},
        limits={"requests_per_minute": 10_000_000},
        jobs={"sweep_s": 0.5, "lease_s": 3600},
    )
    made = HeldShop(service, await make_tenant(service), plugin)
    await made.subscribe()
    return made


async def test_callers_cancelled_in_the_middle_leave_no_trace(
    shop: HeldShop, rounds: Rounds, figure: Figure
) -> None:
    wanted = rounds(short=500, long=10_000)
    cut = started = 0
    async with asyncio.timeout(HUNG_S + wanted / 20):
        while shop.plugin.cut_in_transaction < wanted:
            callers = [random.choice(shop.callers) for _ in range(AT_ONCE)]
            cut += sum(await asyncio.gather(*(_cut_short(shop, caller) for caller in callers)))
            started += AT_ONCE

        await check_pool(shop.service)
        messages = await check_rows(shop)
    figure(
        f"requests cancelled, {_name(shop.service)}",
        f"{cut} of {started} cancelled, {shop.plugin.cut_in_transaction} of them in a transaction;"
        f" {len(shop.accepted)} of {messages} messages answered, 0 lost, pool whole, no lock left",
        cancelled=cut,
        cancelled_in_transaction=shop.plugin.cut_in_transaction,
        started=started,
        accepted=len(shop.accepted),
    )
    assert cut >= wanted


async def test_half_of_64_cancelled_senders_do_the_other_half_no_harm(
    shop: HeldShop, rounds: Rounds, figure: Figure
) -> None:
    waves = rounds(short=5, long=50)
    kept = cut = 0
    for wave in range(waves):
        send = (shop.send, shop.send_in_process, shop.send_with_key)[wave % 3]
        before = len(shop.accepted)
        tasks = [asyncio.create_task(send()) for _ in range(64)]
        for _ in range(random.randrange(STEPS)):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done, pending = await asyncio.wait(tasks, timeout=HUNG_S)

        assert not pending
        assert [task.result() for task in tasks[1::2]] == [None] * 32
        assert len(done) == 64
        kept += len(shop.accepted) - before
        cut += sum(task.cancelled() for task in tasks)

    assert kept + cut == 64 * waves
    await check_pool(shop.service)
    await check_rows(shop)
    figure(
        f"half of 64 senders cancelled, {_name(shop.service)}",
        f"{waves} times, {cut} cancelled, {kept} accepted and kept, 0 lost",
        waves=waves,
        cancelled=cut,
        accepted=kept,
    )


async def test_clients_that_hang_up_in_the_middle_leave_no_trace(
    shop: HeldShop, rounds: Rounds, figure: Figure
) -> None:
    wanted = rounds(short=200, long=2_000)
    service = shop.service
    guard = ConnectionLimits(service.settings.server, service.settings.errors_url, service.metrics)
    server = Server(service.app, guard, signals=False)
    with bind("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(HUNG_S + wanted / 50):
            await until(partial(_has_started, server))
            for _ in range(wanted // AT_ONCE):
                ends = (hang_up(shop, listener.getsockname()[1]) for _ in range(AT_ONCE))
                await asyncio.gather(*ends)
            server.should_exit = True
            await serving

            await check_pool(shop.service)
            await check_rows(shop)
    figure(
        f"clients that hang up, {_name(shop.service)}",
        f"{wanted} hung up, pool whole, no transaction or lock left",
        hung_up=wanted,
    )


async def _cut_short(shop: HeldShop, call: Call) -> bool:
    """Cancels a call at a random moment; True if it was in the middle. Raises what it raised."""
    task = asyncio.create_task(call())
    if call not in (shop.write, shop.write_with_key):
        cancel_soon(task)
    _, pending = await asyncio.wait([task], timeout=HUNG_S)
    assert not pending, "a cancelled call hangs"
    if task.cancelled():
        return True
    task.result()
    return False


async def hang_up(shop: HeldShop, port: int) -> None:
    """Sends a request, or half of one, and closes the connection without reading the answer."""
    fields = shop.message()
    body = f'{{"subscriber_id": "{fields["subscriber_id"]}", "text": "{fields["text"]}"}}'
    request = (
        "POST /v1/send HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {shop.tenant.key}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request[: random.choice([len(request), random.randrange(len(request))])])
    await writer.drain()
    for _ in range(random.randrange(STEPS)):
        await asyncio.sleep(0)
    writer.transport.abort()


async def check_pool(service: Service) -> None:
    """Every connection can be had, all at once, and none of them is in a transaction."""
    db = service.db
    async with asyncio.timeout(HUNG_S), AsyncExitStack() as held:
        writers = 1 if db.dialect == "sqlite" else service.settings.database_pool
        for _ in range(writers):
            tx = await held.enter_async_context(db.transaction())
            assert await tx.fetch_val("SELECT 1") == 1
        for _ in range(READERS if db.dialect == "sqlite" else 0):
            tx = await held.enter_async_context(db.read())
            assert await tx.fetch_val("SELECT 1") == 1

    async def all_ended() -> bool:
        return not await _open_transactions(service)

    # The runner has transactions of its own; they are short.
    await until(all_ended, timeout_s=HUNG_S)


async def _open_transactions(service: Service) -> int:
    """Transactions and locks on the database that somebody holds just now."""
    url = service.settings.database_url
    if service.db.dialect == "sqlite":
        with closing(sqlite3.connect(sqlite_path(url), timeout=0, isolation_level=None)) as other:
            # Busy while anybody writes or reads.
            return int(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
    looking = await asyncpg.connect(url)
    try:
        found = await looking.fetchval(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle')"
            " + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return int(found)
    finally:
        await looking.close()


async def check_rows(shop: HeldShop) -> int:
    """A message is there if and only if its job is; then everything goes out, once.

    Returns how many messages there are.
    """
    messages = await shop.column("SELECT message_id AS text FROM core_messages")
    payloads = await shop.column(
        "SELECT payload AS text FROM core_jobs WHERE name = 'message.deliver'"
    )
    contents = await shop.column("SELECT content AS text FROM core_messages")

    assert sorted(messages) == sorted(json.loads(payload)["message_id"] for payload in payloads)
    assert all(sum(f'"{text}"' in one for one in contents) == 1 for text in shop.accepted[-200:])

    shop.plugin.channel.open.set()
    await settled(shop.service, timeout_s=HUNG_S + len(messages) / 100)

    assert len(shop.plugin.channel.texts) == len(messages)
    assert len(set(shop.plugin.channel.texts)) == len(messages)
    assert set(shop.accepted) <= set(shop.plugin.channel.texts)
    assert set(await shop.column("SELECT DISTINCT status AS text FROM core_messages")) == {"sent"}
    assert await shop.column("SELECT job_id AS text FROM core_jobs WHERE state = 'dead'") == []
    return len(messages)


async def _has_started(server: Server) -> bool:
    return server.started


def _name(service: Service) -> str:
    return "SQLite" if service.db.dialect == "sqlite" else "PostgreSQL"
