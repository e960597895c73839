"""What the database does for a statement: its plan, and how many rows it looked at."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import asyncpg
import pytest

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.sql import numbered

#: Steps of SQLite's virtual machine that looking at one row takes, about; one that is shown takes more.
STEPS_PER_ROW = 10

#: How exactly steps are counted.
_COUNTED_BY = 10


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL as a store gave it to the transaction."""

    sql: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What was done for a statement: a scan or a sort of everything has looked at everything."""

    plan: str
    looked_at: int


class Explainer(Protocol):
    async def explain(self, statement: Statement) -> Work: ...

    async def close(self) -> None: ...


class SQLiteExplainer:
    """Runs a statement, and counts the steps that it takes."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(sqlite_path(url))
        self._ticks = 0

    async def explain(self, statement: Statement) -> Work:
        query = f"EXPLAIN QUERY PLAN {statement.sql}"
        lines = [row[3] for row in self._connection.execute(query, statement.params)]
        self._ticks = 0
        self._connection.set_progress_handler(self._tick, _COUNTED_BY)
        self._connection.execute(statement.sql, statement.params).fetchall()
        self._connection.set_progress_handler(None, 0)
        looked_at = self._ticks * _COUNTED_BY // STEPS_PER_ROW
        return Work("\n".join(lines), looked_at)

    def _tick(self) -> int:
        self._ticks += 1
        return 0

    async def close(self) -> None:
        self._connection.close()


class PostgresExplainer:
    """Has a statement explained while it runs."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "PostgresExplainer":
        connection = await asyncpg.connect(url)
        await connection.execute("ANALYZE")
        return cls(connection)

    async def explain(self, statement: Statement) -> Work:
        sql, names = numbered(statement.sql)
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}"
        found = await self._connection.fetchval(query, *[statement.params[name] for name in names])
        nodes = [*_nodes(json.loads(found)[0]["Plan"])]
        return Work("\n".join(map(_line, nodes)), sum(map(_rows, nodes)))

    async def close(self) -> None:
        await self._connection.close()


async def explainer_of(url: str) -> Explainer:
    return SQLiteExplainer(url) if url.startswith("sqlite") else await PostgresExplainer.open(url)


def note_statements(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """From now on every statement that is run and answers rows."""
    statements: list[Statement] = []
    fetch_all = Tx.fetch_all

    async def noted(tx: Tx, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        statements.append(Statement(sql, params or {}))
        return await fetch_all(tx, sql, params)

    monkeypatch.setattr(Tx, "fetch_all", noted)
    return statements


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _rows(node: Mapping[str, Any]) -> int:
    """Rows that a node handed on or dropped."""
    dropped = sum(value for name, value in node.items() if name.startswith("Rows Removed"))
    return int((node["Actual Rows"] + dropped) * node["Actual Loops"])


def _line(node: Mapping[str, Any]) -> str:
    told = [node["Node Type"], node.get("Index Name"), node.get("Relation Name"), str(_rows(node))]
    told += [node.get("Index Cond"), node.get("Filter")]
    return " ".join(filter(None, told))
