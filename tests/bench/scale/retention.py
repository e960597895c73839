"""What retention costs: the time of a run over days of messages, and how long who sends meanwhile waits.

`--rows` is the number of messages, each with an event and a delivery to a webhook, of three days that are
past. A quiet service answers before, the same service while it deletes them.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from msgsvc_core.db import Tx
from msgsvc_core.db.shrinking import read_space
from msgsvc_core.events.retention import retention_rule
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.messages.retention import partition_rule
from msgsvc_core.service import Service
from msgsvc_webhooks.retention import of_attempts, of_deliveries
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.scale.partitions import partition_table
from tests.bench.servers import (
    Fill,
    Setup,
    go_on,
    nothing_more,
    started_service,
    while_it_stands,
)
from tests.bench.steady import at, times_ms

#: The jobs that delete.
PURGES = ("core.purge", "webhooks.purge")

#: Days of the rows; the oldest are of so many days ago.
DAYS, OLDEST_DAYS = 3, 6

#: Rows of one INSERT.
ROWS = 50_000

#: Messages a second that are sent meanwhile.
PER_S = 50

#: Seconds of one measurement of the times; a run of retention is as many as it takes.
WINDOW_S = 5

#: Seconds after which a run that has not ended is given up.
PATIENCE_S = 3600

#: Times the longest answer of the quiet service.
MOST_WAIT = Bound(most=5)

MESSAGE_DAYS, EVENT_DAYS, JOURNAL_DAYS = 1, 1, 2
SECTIONS = (
    f"message_days = {MESSAGE_DAYS}\nevent_days = {EVENT_DAYS}",
    f"[webhooks]\njournal_days = {JOURNAL_DAYS}",
)

_CONTENT = to_json({"text": "Your order is on its way and arrives tomorrow between 10 and 12."})
_DATA = to_json(
    {
        "message_id": "msg_" + "0" * 22,
        "subscriber_id": "sub_" + "0" * 22,
        "channel": "messenger_a",
        "external_id": "customer-4711",
        "metadata": None,
        "text": "Your order is on its way and arrives tomorrow between 10 and 12.",
    }
)
_SUBSCRIBER = "'sub_000000000000' || substr(CAST(10000000000 + i * 7919 % 100000 AS text), 2)"

#: By table: the prefix of its ids, their column, and what else a row has, in SQL of `i`.
TABLES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "core_messages": (
        "msg",
        "message_id",
        {
            "subscriber_id": _SUBSCRIBER,
            "channel": "'messenger_a'",
            "bot": "'messenger_a'",
            "status": "'sent'",
            "content": f"'{_CONTENT}'",
            "attempts": "1",
            "message_ref": "CAST(i AS text)",
            "created_at_ms": ":at_ms",
            "finished_at_ms": ":at_ms",
        },
    ),
    "core_events": (
        "evt",
        "event_id",
        {"name": "'delivery.success'", "data": f"'{_DATA}'", "occurred_at_ms": ":at_ms"},
    ),
    "webhooks_deliveries": (
        "whd",
        "delivery_id",
        {
            "webhook_id": "'whe_0000000000000000000001'",
            "event_id": "'evt_000000000000' || substr(CAST(10000000000 + i AS text), 2)",
            "event": "'delivery.success'",
            "body": f"'{_DATA}'",
            "status": "'delivered'",
            "attempts": "1",
            "step": "0",
            "created_at_ms": ":at_ms",
            "first_attempt_at_ms": ":at_ms",
            "finished_at_ms": ":at_ms",
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one service: milliseconds of sends while it is quiet and meanwhile, seconds of the run, bytes of the
    database by time, and bytes of a row with its indexes, by table."""

    quiet_ms: list[float]
    during_ms: list[float]
    run_s: float
    full: int
    after: int
    row_bytes: Mapping[str, float]


def retention(run: Run) -> list[Finding]:
    """On every database, and on PostgreSQL by dropping partitions too."""
    found: list[Finding] = []
    for kind in run.databases.kinds:
        for is_partitioned in (False, True) if kind == "postgresql" else (False,):
            how = "in partitions" if is_partitioned else "deleted"
            name = f"{run.options.rows:,} messages, events and deliveries {how}, {kind}"
            run.tell(f"{name}: writing them")
            seen = _measure(run, name, kind, partition if is_partitioned else nothing_more)
            found += _findings(name, seen)
    return found


async def partition(service: Service, _project_id: str) -> None:
    """A partition for each day, as the purges of the last week would have left them."""
    events = retention_rule(event_days=EVENT_DAYS).partitions
    assert events is not None
    for rule in (
        partition_rule(MESSAGE_DAYS),
        events,
        of_deliveries(JOURNAL_DAYS),
        of_attempts(JOURNAL_DAYS),
    ):
        await partition_table(service, rule, days=OLDEST_DAYS + 2)


def _measure(run: Run, name: str, kind: str, prepare: Fill) -> Seen:
    setup = Setup(kind, plugins=("sink", "webhooks"), sections=SECTIONS)
    with started_service(run, setup, fill=prepare) as service:

        async def fill(opened: Service) -> None:
            await _fill(opened, service.project_id, run.options.rows)

        # The first runs come with the start, and would delete while the service is to be quiet.
        service.use(_first_runs)
        while_it_stands(service, fill)
        go_on(service.server)
        row_bytes, full = service.use(_row_bytes), service.use(_size)
        run.tell(f"{name}: sending, quiet")
        quiet_ms = sorted(times_ms(service.sends, per_s=PER_S, seconds=run.options.window))
        run.tell(f"{name}: sending meanwhile")
        during_ms: list[float] = []
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(service.use, _run_retention)
            while not running.done():
                during_ms += times_ms(service.sends, per_s=PER_S, seconds=WINDOW_S)
        after = service.use(_size)
    return Seen(quiet_ms, sorted(during_ms), running.result(), full, after, row_bytes)


async def _fill(service: Service, project_id: str, rows: int) -> None:
    since_ms = service.clock.now_ms() - OLDEST_DAYS * DAY_MS
    for first in range(0, rows, ROWS):
        count = min(ROWS, rows - first)
        at_ms = since_ms + first * DAYS * DAY_MS // rows
        async with service.db.transaction() as tx:
            for table in TABLES:
                await _insert(tx, table, project_id, at_ms, count)
    if service.db.dialect == "postgresql":
        async with service.db.read() as tx:
            await tx.execute("ANALYZE")


async def _insert(tx: Tx, table: str, project_id: str, at_ms: int, count: int) -> None:
    """Rows of nearly one time: their ids are those of the time, and a number in place of what is random."""
    prefix, column, others = TABLES[table]
    series = (
        "generate_series(1, :count) AS s (i)"
        if tx.dialect == "postgresql"
        else "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < :count)"
        " SELECT i FROM s) AS s"
    )
    number = "substr(CAST(10000000000 + i AS text), 2)"
    values = {
        "project_id": "CAST(:project_id AS text)",
        column: f"CAST(:head AS text) || {number}",
        **{name: sql.replace(":at_ms", "CAST(:at_ms AS bigint)") for name, sql in others.items()},
    }
    await tx.execute(
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM {series}",
        {
            "count": count,
            "project_id": project_id,
            "head": earliest_id(prefix, at_ms)[:-10],
            "at_ms": at_ms,
        },
    )


async def _first_runs(service: Service) -> None:
    until_ms = service.clock.now_ms() + PATIENCE_S * 1000
    while (await _open_runs(service, service.clock.now_ms())) < len(PURGES):
        if service.clock.now_ms() > until_ms:
            raise BenchError("the purges have not run after the start")
        await asyncio.sleep(0.1)


async def _run_retention(service: Service) -> float:
    """Seconds until all old rows were gone, and a file as short as it becomes."""
    began_ms = service.clock.now_ms()
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_jobs SET run_at_ms = :now_ms WHERE name IN ('core.purge', 'webhooks.purge')"
            " AND state = 'ready'",
            {"now_ms": began_ms},
        )
    while (await _open_runs(service, began_ms)) < len(PURGES):
        if service.clock.now_ms() - began_ms > PATIENCE_S * 1000:
            raise BenchError(f"retention has not ended after {PATIENCE_S} s")
        await asyncio.sleep(0.1)
    if service.db.dialect == "sqlite":
        await _until_shrunk(service, began_ms)
    took_s = (service.clock.now_ms() - began_ms) / 1000
    before_ms = service.clock.now_ms() - (OLDEST_DAYS - DAYS) * DAY_MS
    async with service.db.read() as tx:
        for table, (prefix, column, _) in TABLES.items():
            left = await tx.fetch_val(
                f"SELECT COUNT(*) AS count FROM {table} WHERE {column} < :before",
                {"before": earliest_id(prefix, before_ms)},
            )
            if left:
                raise BenchError(f"{left} rows of {table} were left")
    return took_s


async def _until_shrunk(service: Service, began_ms: int) -> None:
    excess = 1
    while excess:
        if service.clock.now_ms() - began_ms > PATIENCE_S * 1000:
            raise BenchError(f"{excess} free pages are left after {PATIENCE_S} s")
        await asyncio.sleep(1)
        async with service.db.read() as tx:
            excess = (await read_space(tx)).excess_pages


async def _open_runs(service: Service, began_ms: int) -> int:
    """How many of the purges wait for their next run already."""
    async with service.db.read() as tx:
        return int(
            await tx.fetch_val(
                "SELECT COUNT(*) AS count FROM core_jobs"
                " WHERE name IN ('core.purge', 'webhooks.purge') AND run_at_ms > :began_ms"
                " AND state = 'ready'",
                {"began_ms": began_ms + 60_000},
            )
        )


async def _size(service: Service) -> int:
    async with service.db.read() as tx:
        if tx.dialect == "postgresql":
            return int(await tx.fetch_val("SELECT pg_database_size(current_database())"))
        space = await read_space(tx)
        return space.pages * space.page_bytes


async def _row_bytes(service: Service) -> dict[str, float]:
    """Bytes of a row with its indexes, by table."""
    found: dict[str, float] = {}
    async with service.db.read() as tx:
        for table in TABLES:
            if tx.dialect == "postgresql":
                size = await tx.fetch_val(
                    "SELECT pg_total_relation_size(to_regclass(:name))"
                    " + coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS size"
                    " FROM pg_partition_tree(to_regclass(:name)) WHERE isleaf AND level > 0",
                    {"name": table},
                )
            else:
                size = await tx.fetch_val(
                    "SELECT SUM(pgsize) AS size FROM dbstat WHERE name IN"
                    " (SELECT name FROM sqlite_master WHERE tbl_name = :name)",
                    {"name": table},
                )
            count = await tx.fetch_val(f"SELECT COUNT(*) AS count FROM {table}")
            found[table] = int(size) / count
    return found


def _findings(name: str, seen: Seen) -> list[Finding]:
    return [
        Finding(f"{name}: s", seen.run_s, alone=True),
        Finding(
            f"{name}: longest send ms / quiet", seen.during_ms[-1], seen.quiet_ms[-1], MOST_WAIT
        ),
        Finding(f"{name}: send p99 ms / quiet", at(0.99, seen.during_ms), at(0.99, seen.quiet_ms)),
        Finding(f"{name}: MiB after / before", seen.after / 2**20, seen.full / 2**20),
        *(
            Finding(f"{name}, row of {table}: bytes", size, alone=True)
            for table, size in seen.row_bytes.items()
        ),
    ]
