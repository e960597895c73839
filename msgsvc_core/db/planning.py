"""What pending migrations will do, without doing it. Import this only for that: it loads Alembic."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext

from msgsvc_core.db.database import Database
from msgsvc_core.db.ddl import Statement, StatementReader, Work
from msgsvc_core.db.migrations import one_at_a_time
from msgsvc_core.db.revisions import MIGRATING_SESSION, MigrationSource, Phase, Step, applied_in
from msgsvc_core.db.schema import compare, due, steps_of
from msgsvc_core.db.scripts import scripts_of
from msgsvc_core.db.sessions import OTHER_SESSIONS, session_name
from msgsvc_core.db.sql import Dialect
from msgsvc_core.db.tx import Tx

#: Bytes of a table per second that each kind of work takes, for estimates. Of a table of 61 MB on a busy
#: machine a scan took 439 MB/s, indexes 17 to 102, a rewrite 14, updates 2. An idle machine is several times
#: as fast.
BYTES_PER_S: dict[Work, float] = {"scan": 150e6, "index": 15e6, "rewrite": 15e6, "rows": 2e6}

#: Characters of a statement that are shown.
SHORT = 100

OUTSIDE = "without a transaction a step may only build indexes, which can be repeated"

#: Bytes of a row on SQLite, which has no size of a table in its catalogue.
SQLITE_ROW_BYTES = 300


@dataclass(frozen=True, slots=True)
class Size:
    """Rows and bytes of a table without its indexes, as the catalogue has them."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """`seconds` is an estimate, 0 for what is instant whatever the size, None if nothing is known. `size` is
    that of the table by which it was estimated."""

    statement: Statement
    seconds: float | None
    size: Size | None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """`creates` says that the owner has no tables yet. `unread` is why the script could not be read to its
    end: some decide by what they find in the database."""

    step: Step
    creates: bool
    statements: tuple[PlannedStatement, ...]
    unread: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """`others` are sessions of another release, while which the steps that contract are refused."""

    steps: tuple[PlannedStep, ...]
    others: tuple[str, ...]


async def plan(url: str, sources: Sequence[MigrationSource], phase: Phase | None = None) -> Plan:
    """What `migrate` would do now. Changes nothing, and locks nothing.

    Raises what `migrate` does, but for a refusal because of other processes, which `others` names.
    """
    database = Database(url, pool_size=1, session=MIGRATING_SESSION)
    await database.connect()
    try:
        async with database.read() as tx:
            schema = compare(sources, await applied_in(tx, sources))
            new = {each.owner for each in schema if each.is_new}
            reader = StatementReader(tx.dialect)
            steps = []
            for step in due(schema, phase):
                source = next(each for each in sources if each.owner == step.owner)
                statements, unread = read_statements(source, step, reader)
                planned = [await _planned(tx, statement) for statement in statements]
                steps.append(PlannedStep(step, step.owner in new, tuple(planned), unread))
            return Plan(tuple(steps), tuple(await _others(tx, sources)))
    finally:
        await database.disconnect()


async def _planned(tx: Tx, statement: Statement) -> PlannedStatement:
    if statement.work == "none":
        return PlannedStatement(statement, 0.0, None)
    if statement.table is None:
        return PlannedStatement(statement, None, None)
    size = await _size(tx, statement.table)
    return PlannedStatement(statement, size.bytes / BYTES_PER_S[statement.work], size)


async def _size(tx: Tx, table: str) -> Size:
    if tx.dialect == "sqlite":
        known = await tx.fetch_val(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": table}
        )
        # The greatest key, which is found at once; counting would read the table.
        rows = await tx.fetch_val(f"SELECT max(rowid) FROM {table}") if known else 0
        return Size(rows or 0, (rows or 0) * SQLITE_ROW_BYTES)
    found = await tx.fetch_one(
        # A partitioned table has its rows in its partitions; a table that was never analyzed has -1.
        "SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint AS rows,"
        " coalesce(sum(pg_table_size(c.oid)), 0)::bigint AS bytes"
        " FROM pg_class c WHERE relkind <> 'p' AND (c.oid = to_regclass(:name)"
        " OR c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(:name))))",
        {"name": table},
    )
    assert found is not None
    return Size(found["rows"], found["bytes"])


async def _others(tx: Tx, sources: Sequence[MigrationSource]) -> list[str]:
    if tx.dialect == "sqlite":
        return []
    rows = await tx.fetch_all(OTHER_SESSIONS, {"name": session_name(sources)})
    return [row["session"] for row in rows]


def read_statements(
    source: MigrationSource, step: Step, reader: StatementReader
) -> tuple[list[Statement], str | None]:
    """The statements of a step, and why the last of them may be missing; None if they are all."""
    texts = list[str]()
    unread = None
    with one_at_a_time:
        try:
            _render(source, step, reader.dialect, _Collected(texts))
        except Exception as error:  # noqa: BLE001 - a script that queries the database fails without one, in any way
            unread = (
                f"it decides by what it finds in the database ({type(error).__name__}: {error})"
            )
    own = source.version_table
    return [reader.read(text) for text in texts if own not in text], unread


class _Collected:
    """Alembic writes each statement at once."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def write(self, text: str) -> None:
        text = text.strip().rstrip(";")
        if text and not text.startswith("--") and text not in ("BEGIN", "COMMIT"):
            self._texts.append(text)

    def flush(self) -> None:
        """Nothing is held back."""


def _render(source: MigrationSource, step: Step, dialect: Dialect, output: Any) -> None:
    scripts = scripts_of(source)
    known = steps_of(source)
    at = known.index(step)
    before = known[at - 1].revision if at else "base"

    def steps(_revision: Any, _context: MigrationContext) -> Any:
        return scripts._upgrade_revs(step.revision, before)

    with EnvironmentContext(
        Config(), scripts, fn=steps, as_sql=True, starting_rev=before
    ) as environment:
        environment.configure(
            dialect_name=dialect,
            version_table=source.version_table,
            output_buffer=output,
            literal_binds=True,
        )
        environment.run_migrations()


def objections(source: MigrationSource, dialect: Dialect) -> Iterator[str]:
    """What the owner's steps that expand do, and processes of the earlier release could not live with.

    The first step is left out: it creates the tables. A script that needs a database to be read is named.
    """
    for step in steps_of(source)[1:]:
        if step.phase == "contract":
            continue
        statements, unread = read_statements(source, step, StatementReader(dialect))
        if unread:
            yield f"{step.name}: {unread}"
        for statement in statements:
            for reason in statement.objections:
                yield f"{step.name}: {reason}: {in_short(statement.sql)}"
            if not step.transactional and not statement.is_index:
                yield f"{step.name}: {OUTSIDE}: {in_short(statement.sql)}"


def in_short(sql: str) -> str:
    """In one line of at most `SHORT` characters."""
    line = " ".join(sql.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 3]}..."
