"""Partitions of large tables on PostgreSQL: made while others write, dropped after their retention, and
finished by whoever comes after one that was ended."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db import (
    CORE_MIGRATIONS,
    Database,
    DatabaseUnavailable,
    LockTimeout,
    MigrationSource,
    migrate,
    partitions,
)
from msgsvc_core.db.copying import Scope, backup, copy
from msgsvc_core.db.partitions import (
    Partition,
    PartitionedTable,
    lock_key,
    partitioned_table,
    read_partitions,
)
from msgsvc_core.db.retention import PartitionRule
from msgsvc_core.db.sql import limited_delete
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.messages.retention import MessagePurge, partition_rule
from msgsvc_core.telemetry.partition_metrics import PartitionMetrics
from msgsvc_devkit import FakeClock
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.images import dumped

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

#: Of partitions of three days each.
RULE = partition_rule(24)

INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'core_messages' ORDER BY 1"


#: Those of the core that a purge of messages reads. All of them would take half a second in each test.
TABLES = ("core_messages", "core_message_copies", CORE_MIGRATIONS.version_table)


@pytest.fixture(scope="module")
async def made_by(databases: dict[str, Any]) -> str | None:
    """The script of the tables; None if they can't be read from a migrated database."""
    url = await databases["postgresql"].fresh([CORE_MIGRATIONS])
    try:
        return await asyncio.to_thread(dumped, url, *TABLES)
    finally:
        await databases["postgresql"].give_back(url)


@pytest.fixture
async def db(url: str, made_by: str | None) -> AsyncIterator[Database]:
    """With the tables."""
    if made_by is None:
        await migrate(url, [CORE_MIGRATIONS])
    else:
        await execute(url, made_by)
    async with connected(url) as database:
        yield database


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_size=4, session="msgsvc of this release")
    await database.connect()
    yield database
    await database.disconnect()


async def execute(url: str, script: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


class Purges:
    """The purge of messages, on a clock of its own. All tables are large."""

    def __init__(self, db: Database, *, days: int = 24, min_mib: int = 1) -> None:
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.partitioning = Partitioning(
            clock=self.clock,
            db=db,
            min_mib=min_mib,
            metrics=PartitionMetrics(self.registry),
        )
        self.db, self.days = db, days

    async def run(self) -> None:
        purge = MessagePurge(
            clock=self.clock, message_days=self.days, partitioning=self.partitioning
        )
        await purge.purge(JobInTest(self.db))

    async def days_later(self, days: int) -> None:
        """With a purge every two days."""
        for _ in range(days // 2):
            self.clock.advance(48 * 3600)
            await self.run()

    async def send(self, status: str = "sent", *, days_ago: int = 0) -> str:
        at_ms = self.clock.now_ms() - days_ago * DAY_MS
        message_id = earliest_id("msg", at_ms)
        async with self.db.transaction() as tx:
            await tx.insert("core_messages", message(message_id, status, at_ms))
        return message_id


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    async def concerned(self: Partitioning, _rule: PartitionRule) -> bool:
        return bool(self._min_mib)

    monkeypatch.setattr(Partitioning, "_is_concerned", concerned)


def message(message_id: str, status: str, at_ms: int) -> dict[str, Any]:
    return {
        "project_id": "prj_1",
        "message_id": message_id,
        "subscriber_id": "sub_1",
        "channel": "messenger_a",
        "status": status,
        "content": "{}",
        "attempts": 1,
        "created_at_ms": at_ms,
    }


async def parts(db: Database) -> list[Partition]:
    async with partitioned_table(db, RULE) as table:
        assert table is not None
        return await table.partitions()


async def ids(db: Database) -> list[str]:
    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT message_id FROM core_messages ORDER BY message_id")
    return [row["message_id"] for row in rows]


async def fetch(db: Database, sql: str) -> list[tuple[Any, ...]]:
    async with db.read() as tx:
        return [tuple(row) for row in await tx.fetch_all(sql)]


async def test_the_table_becomes_the_first_partition_with_its_rows_indexes_and_rights(
    db: Database,
) -> None:
    purges = Purges(db)
    sent = await purges.send()
    async with db.transaction() as tx:
        await tx.execute("GRANT SELECT ON core_messages TO PUBLIC")
    before = await fetch(db, INDEXES)
    place = await fetch(db, "SELECT relfilenode FROM pg_class WHERE relname = 'core_messages'")

    await purges.run()
    first, second = await parts(db)

    assert await ids(db) == [sent]
    assert [
        (name, sql.replace(" ON ONLY ", " ON ")) for name, sql in await fetch(db, INDEXES)
    ] == before
    assert await fetch(db, f"SELECT relfilenode FROM pg_class WHERE relname = '{first.name}'") == (
        place
    )
    assert await fetch(
        db, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'core_messages_pkey'::regclass"
    ) == [(2,)]
    assert await fetch(db, "SELECT has_table_privilege('pg_monitor', 'core_messages', 'SELECT')")
    assert (first.start, first.end) == (None, second.start)
    assert second.end is None
    assert 3 * DAY_MS <= second.start_ms - purges.clock.now_ms() <= 6 * DAY_MS


async def test_partitions_are_added_ahead_and_dropped_after_their_retention(db: Database) -> None:
    purges = Purges(db)
    old = await purges.send()
    await purges.run()
    await purges.days_later(20)
    recent = await purges.send()
    before = await parts(db)
    await purges.days_later(16)
    after = await parts(db)

    assert old not in await ids(db)
    assert await ids(db) == [recent]
    assert before[0].start is None
    assert len(before) == 9
    assert 9 <= len(after) <= 12
    assert after[0].start is None
    for earlier, later in pairwise(after):
        assert earlier.end == later.start
    assert purges.registry.get_sample_value("msgsvc_partitions", {"table": "core_messages"}) == len(
        after
    )
    assert purges.registry.get_sample_value(
        "msgsvc_partitions_dropped_total", {"table": "core_messages"}
    )


async def test_old_rows_of_the_first_partition_are_deleted_one_by_one(db: Database) -> None:
    """It has no end of its own until much later."""
    purges = Purges(db)
    await purges.send(days_ago=30)
    kept = await purges.send(days_ago=20)
    await purges.run()

    assert await ids(db) == [kept]


async def test_a_partition_with_a_message_to_be_delivered_stays_without_the_others(
    db: Database,
) -> None:
    purges = Purges(db)
    await purges.run()
    await purges.days_later(10)
    queued = await purges.send("queued")
    await purges.send(days_ago=1)
    await purges.days_later(40)
    held = await parts(db)
    left = await ids(db)
    async with db.transaction() as tx:
        await tx.execute("UPDATE core_messages SET status = 'failed'")
    await purges.run()

    assert left == [queued]
    assert held[0].start is None
    assert held[0].end is not None
    assert held[0].end <= queued < (held[1].end or "")
    assert await ids(db) == []
    assert len(await parts(db)) < len(held)


async def test_an_id_before_all_others_has_a_place(db: Database) -> None:
    purges = Purges(db)
    await purges.run()
    await purges.days_later(60)
    late = await purges.send("queued", days_ago=59)

    assert await fetch(db, "SELECT message_id FROM core_messages_p0") == [(late,)]


async def test_an_empty_first_partition_is_not_made_anew_each_hour(db: Database) -> None:
    purges = Purges(db)
    await purges.run()
    await purges.days_later(60)
    place = "SELECT 'core_messages_p0'::regclass::oid"
    before = await fetch(db, place)
    await purges.run()

    assert await fetch(db, place) == before


async def test_small_tables_and_those_without_retention_stay_as_they_are(db: Database) -> None:
    await Purges(db, min_mib=0).run()

    assert await fetch(db, "SELECT relkind::text FROM pg_class WHERE relname='core_messages'") == [
        ("r",)
    ]


async def test_without_a_retention_nothing_is_split_or_dropped_any_more(db: Database) -> None:
    purges = Purges(db)
    sent = await purges.send()
    await purges.run()
    before = await parts(db)
    purges.days = 0
    await purges.days_later(100)

    assert await parts(db) == before
    assert await ids(db) == [sent]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE VIEW latest AS SELECT message_id FROM core_messages", "a view reads it"),
        ("CREATE POLICY p ON core_messages", "it has a policy"),
        ("CREATE PUBLICATION p FOR TABLE core_messages", "it is published"),
        ("GRANT SELECT (status) ON core_messages TO PUBLIC", "rights were granted on its columns"),
    ],
)
async def test_what_a_partitioned_table_would_lose_keeps_it_plain(
    db: Database, statement: str, reason: str
) -> None:
    async with db.transaction() as tx:
        await tx.execute(statement)
    with capture_logs() as logs:
        await Purges(db).run()

    assert [each["reason"] for each in logs if each["event"] == "table_not_partitioned"] == [reason]


async def test_processes_of_an_earlier_release_keep_it_plain(db: Database, url: str) -> None:
    other = await asyncpg.connect(url, server_settings={"application_name": "msgsvc 0.0.9 x"})
    try:
        with capture_logs() as logs:
            await Purges(db).run()
    finally:
        await other.close()

    assert "msgsvc 0.0.9 x" in str(logs)


async def test_two_purges_at_once_are_one(db: Database) -> None:
    purges = Purges(db)
    sent = await purges.send()
    await asyncio.gather(*(purges.run() for _ in range(4)))
    await purges.days_later(6)
    await asyncio.gather(*(purges.run() for _ in range(4)))

    assert await ids(db) == [sent]
    assert len({each.start for each in await parts(db)}) == len(await parts(db))


async def test_a_purge_leaves_a_table_to_the_one_that_is_about_it(db: Database, url: str) -> None:
    other = await asyncpg.connect(url)
    try:
        await other.execute(f"SELECT pg_advisory_lock({lock_key('core_messages')})")
        tables = await Purges(db).partitioning.maintain(JobInTest(db), RULE)
    finally:
        await other.close()

    assert tables == []


async def test_nobody_waits_long_behind_a_change_that_waits_for_a_reader(
    db: Database, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "LOCK_ATTEMPTS", 3)
    purges, waits = Purges(db), list[float]()
    reader = await asyncpg.connect(url)
    await reader.execute("BEGIN; SELECT FROM core_messages")
    running = asyncio.create_task(purges.run())
    try:
        while not running.done():
            begun_s = time.monotonic()
            await purges.send()
            waits.append(time.monotonic() - begun_s)
            purges.clock.advance(0.001)
        with pytest.raises(LockTimeout):
            await running
    finally:
        await reader.close()

    assert max(waits) < 0.5
    assert await ids(db)


async def test_sends_go_on_while_the_table_is_partitioned_and_partitions_go(db: Database) -> None:
    purges, sent, ended = Purges(db), list[str](), False

    async def send() -> None:
        while not ended:
            purges.clock.advance(0.001)
            at_ms = purges.clock.now_ms()
            message_id = earliest_id("msg", at_ms)
            async with db.transaction() as tx:
                await tx.insert("core_messages", message(message_id, "queued", at_ms))
                await tx.execute(
                    "UPDATE core_messages SET status = 'sent' WHERE project_id = 'prj_1'"
                    " AND message_id = :message_id",
                    {"message_id": message_id},
                )
            sent.append(message_id)

    sending = asyncio.create_task(send())
    await asyncio.sleep(0.05)
    await purges.run()
    await purges.days_later(40)
    ended = True
    await sending

    first = next(each for each in await parts(db) if each.start is not None)
    assert len(sent) > 100
    assert first.start is not None
    assert first.start > sent[0]
    assert await ids(db) == [each for each in sent if each >= first.start]


async def test_rows_beyond_the_next_end_postpone_it(db: Database) -> None:
    """A clock that was wrong has made ids of a later time."""
    purges = Purges(db)
    later = await purges.send(days_ago=-30)
    with capture_logs() as logs:
        await purges.run()

    assert "partition_has_later_rows" in {each["event"] for each in logs}
    assert [(each.start, each.end) for each in await parts(db)] == [(None, None)]
    assert await fetch(db, "SELECT conname FROM pg_constraint WHERE conname LIKE '%until'") == []
    assert await ids(db) == [later]


async def test_a_limit_that_was_left_behind_is_taken_away_before_it_refuses_anything(
    db: Database,
) -> None:
    purges = Purges(db)
    async with partitioned_table(db, RULE) as table:
        assert table is not None
        await table.convert()
        [first] = await table.partitions()
        soon = earliest_id("msg", purges.clock.now_ms() + DAY_MS)
        await table._add_limit(first, f"{first.name}_until", soon)
    purges.days = 0
    await purges.run()

    assert await fetch(db, "SELECT conname FROM pg_constraint WHERE conname LIKE '%until'") == []


async def test_a_table_that_an_operator_detached_stays(db: Database) -> None:
    purges = Purges(db)
    await purges.run()
    await purges.days_later(10)
    [_, second, *_] = await parts(db)
    async with db.transaction() as tx:
        await tx.execute(f"ALTER TABLE core_messages DETACH PARTITION {second.name}")
    await purges.run()

    assert await fetch(db, f"SELECT count(*) FROM {second.name}") == [(0,)]


async def test_a_delete_in_steps_takes_no_other_rows_of_the_same_place(db: Database) -> None:
    purges = Purges(db)
    old = await purges.send()
    await purges.run()
    await purges.days_later(10)
    new = await purges.send()
    condition = limited_delete("core_messages", "created_at_ms < :before_ms", "postgresql")
    async with db.transaction() as tx:
        await tx.execute(
            f"DELETE FROM core_messages WHERE {condition}",
            {"before_ms": purges.clock.now_ms() - DAY_MS, "most": 10},
        )

    assert old < new
    assert await ids(db) == [new]


class Ending(Exception):
    """Ends the session, as a kill would."""


class DyingSession:
    """A session of asyncpg that is lost before its statement number `left`, counted from 0."""

    def __init__(self, raw: Any, left: int) -> None:
        self._raw, self._left, self._is_dead = raw, left, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    async def execute(self, sql: str, *values: Any) -> Any:
        if self._left <= 0:
            if not self._is_dead:
                self._is_dead = True
                self._raw.terminate()
            raise Ending
        self._left -= 1
        return await self._raw.execute(sql, *values)


async def test_what_is_ended_before_any_statement_is_finished_by_the_next(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the plain table to the dropped partitions: the same comes of it as without an end."""
    real, left = PartitionedTable.__init__, [0]

    def dying(self: PartitionedTable, raw: Any, rule: PartitionRule) -> None:
        real(self, DyingSession(raw, left[0]), rule)

    purges = Purges(db)
    old = await purges.send(days_ago=10)
    kept, ends = list[str](), 0
    for _ in range(40):
        while True:
            monkeypatch.setattr(PartitionedTable, "__init__", dying)
            left[0] = ends % 23
            try:
                await purges.run()
                break
            except (Ending, DatabaseUnavailable):
                ends += 1
                monkeypatch.setattr(PartitionedTable, "__init__", real)
                # Whatever was left behind, rows of now can be written.
                kept.append(await purges.send())
                purges.clock.advance(0.001)
        ends += 1
        monkeypatch.setattr(PartitionedTable, "__init__", real)
        purges.clock.advance(24 * 3600)
    await purges.run()

    bound = earliest_id("msg", purges.clock.now_ms() - 24 * DAY_MS)
    found = await ids(db)
    assert ends > 60
    assert old not in found
    assert [each for each in kept if each >= bound] == [each for each in found if each >= bound]
    assert 9 <= len(await parts(db)) <= 12
    assert (
        await fetch(
            db,
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND NOT relispartition"
            " AND relname LIKE 'core_messages_p%'",
        )
        == []
    )
    assert await fetch(db, "SELECT conname FROM pg_constraint WHERE conname LIKE '%until'") == []


STEP = """
from alembic import op
import sqlalchemy as sa
from msgsvc_core.db.indexes import create_index

revision = "{revision}"
down_revision = {before!r}
phase = "expand"
transactional = {transactional}


def upgrade() -> None:
    {body}
"""

MADE = """op.create_table(
        "shop_things",
        sa.Column("thing_id", sa.Text(collation="C"), primary_key=True),
        sa.Column("name", sa.Text),
    )"""

THINGS = PartitionRule("shop_things", "thing_id", "thg", 24)

VALID = """SELECT c.relname, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE c.relname LIKE 'shop_things%name' ORDER BY 1"""


@pytest.mark.parametrize("is_partitioned", [True, False])
async def test_a_later_migration_adds_an_index_to_either_form(
    db: Database, url: str, tmp_path: Path, is_partitioned: bool
) -> None:
    source = MigrationSource("shop", tmp_path)
    step(tmp_path, 1, MADE)
    await migrate(url, [source])
    names = ["shop_things_name"]
    if is_partitioned:
        names += await partitioned(db, tmp_path)
    step(
        tmp_path,
        2,
        'create_index("shop_things_name", "shop_things", ["name"], where="name IS NOT NULL")',
    )
    await migrate(url, [source])

    assert await fetch(db, VALID) == [(name, True) for name in sorted(names)]


async def test_an_index_of_partitions_that_was_interrupted_is_finished(
    db: Database, url: str, tmp_path: Path
) -> None:
    source = MigrationSource("shop", tmp_path)
    step(tmp_path, 1, MADE)
    await migrate(url, [source])
    names = await partitioned(db, tmp_path)
    async with db.session() as raw:
        await raw.execute("CREATE INDEX shop_things_name ON ONLY shop_things (name)")
        await raw.execute(f"CREATE INDEX {names[0]} ON shop_things_p0 (name)")
        await raw.execute(f"ALTER INDEX shop_things_name ATTACH PARTITION {names[0]}")
    step(tmp_path, 2, 'create_index("shop_things_name", "shop_things", ["name"])')
    await migrate(url, [source])

    assert await fetch(db, VALID) == [(name, True) for name in sorted(["shop_things_name", *names])]


def step(folder: Path, number: int, body: str) -> None:
    (folder / f"{number:04}_step.py").write_text(
        STEP.format(
            revision=f"shop_{number:04}",
            before=None if number == 1 else f"shop_{number - 1:04}",
            transactional=number == 1,
            body=body,
        )
    )


async def partitioned(db: Database, _folder: Path) -> list[str]:
    """Partitions the table of things; returns the names of its partitions' indexes."""
    async with partitioned_table(db, THINGS) as table:
        assert table is not None
        await table.convert()
        await table.split(FakeClock().now_ms())
        return [f"{each.name}_name" for each in await table.partitions()]


async def test_a_copy_takes_the_rows_of_partitions_once_and_leaves_plain_tables(
    url: str, backend: Any, tmp_path: Path
) -> None:
    await migrate(url, [CORE_MIGRATIONS])
    async with connected(url) as db:
        purges = Purges(db)
        await purges.run()
        await purges.days_later(10)
        sent = [await purges.send(days_ago=days) for days in (8, 4, 0)]
    scope = Scope([CORE_MIGRATIONS], CORE_NOT_COPIED)
    there, back = f"sqlite:///{tmp_path / 'there.db'}", await backend.empty()

    moved = await copy(url, there, scope, lambda *_: None)
    returned = await copy(there, back, scope, lambda *_: None)
    saved = await backup(
        url, tmp_path / "m.backup", scope, lambda *_: None, release="1", created_at="now"
    )

    assert moved.tables["core_messages"].rows == len(sent)
    assert moved == returned == saved
    assert not [name for name in moved.tables if name.startswith("core_messages_p")]
    await backend.give_back(back)


async def test_doctor_tells_partitions_and_those_that_were_not_added(db: Database) -> None:
    purges = Purges(db)
    await purges.run()
    async with db.read() as tx:
        found = await read_partitions(tx)

    assert {name: len(each) for name, each in found.items()} == {"core_messages": 2}
    assert found["core_messages"][-1].start_ms > purges.clock.now_ms()
