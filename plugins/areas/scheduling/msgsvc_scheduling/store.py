"""The SQL of scheduled and recurring messages."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, key_params, key_table, limited_delete
from msgsvc_core.jobs.inspection import Waiting
from msgsvc_core.kernel.json import to_json
from msgsvc_scheduling.models import Due, Kind, Record
from msgsvc_scheduling.recurrence import Rule

_COLUMNS = (
    "project_id, record_id, kind, status, message, subscriber_id, audience, timezone, send_at_ms,"
    " due_at_ms, message_id, job_id, reason, error, created_at_ms, finished_at_ms, rule,"
    " last_run_at_ms"
)
_KEY = "project_id = :project_id AND record_id = :record_id"

#: The name of records that wait for their time, for operators.
PLANNED = "scheduling.message"

#: Statuses that have another name in the database: by status.
_STORED = {"completed": "ended"}
_SHOWN = {stored: status for status, stored in _STORED.items()}

#: The name of `route_id` in stored messages.
_STORED_ROUTE = "route"

#: Columns that hold JSON.
_JSON = ("message", "audience", "rule")

#: Columns that change while a record is there.
_CHANGING = (
    *(
        "status",
        "message",
        "audience",
        "timezone",
        "send_at_ms",
        "due_at_ms",
        "message_id",
        "job_id",
    ),
    *("reason", "error", "finished_at_ms", "rule", "last_run_at_ms"),
)


async def insert(tx: Tx, record: Record) -> None:
    await tx.insert("scheduling_records", _columns(record, _COLUMNS.split(", ")))


async def count_open(tx: Tx, project_id: str) -> int:
    """The number of a project's unfinished records, of both kinds."""
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM scheduling_records"
            " WHERE project_id = :project_id AND finished_at_ms IS NULL",
            {"project_id": project_id},
        )
    )


async def find(tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record | None:
    return await _find(tx, project_id, record_id, kind, "")


async def lock(tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record | None:
    """Locks the record until the transaction ends."""
    return await _find(tx, project_id, record_id, kind, for_update(tx.dialect))


async def list_page(
    tx: Tx, project_id: str, kind: Kind, status: str | None, after: str | None, limit: int
) -> list[Record]:
    """Records of one kind, newest first; `after` is the last id of the previous page."""
    conditions = ["project_id = :project_id", "kind = :kind"]
    params: dict[str, Any] = {"project_id": project_id, "kind": kind, "most": limit}
    if status is not None:
        conditions.append("status = :status")
        params["status"] = _STORED.get(status, status)
    if after is not None:
        conditions.append("record_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM scheduling_records WHERE {' AND '.join(conditions)}"
        " ORDER BY record_id DESC LIMIT :most",
        params,
    )
    return [_record(row) for row in rows]


async def list_due(tx: Tx, now_ms: int, most: int) -> list[Due]:
    """Due records of all projects, the longest due first."""
    rows = await tx.fetch_all(
        "SELECT project_id, record_id, subscriber_id, due_at_ms FROM scheduling_records"
        " WHERE due_at_ms <= :now_ms ORDER BY due_at_ms, project_id, record_id LIMIT :most",
        {"now_ms": now_ms, "most": most},
    )
    return [Due(*row) for row in rows]


async def count_waiting(tx: Tx, before_ms: int | None) -> Waiting | None:
    """The records of all projects that wait for their time; those before a time, if there is one."""
    before = "" if before_ms is None else " AND due_at_ms < :before_ms"
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS count, MIN(due_at_ms) AS first, MAX(due_at_ms) AS last"
        f" FROM scheduling_records WHERE due_at_ms IS NOT NULL{before}",
        {} if before_ms is None else {"before_ms": before_ms},
    )
    return Waiting(PLANNED, *row) if row is not None and row["count"] else None


async def find_due(tx: Tx, due: Sequence[Due]) -> list[Record]:
    """The records that are still due at those times."""
    return await _find_due(tx, due, "")


async def lock_due(tx: Tx, due: Sequence[Due]) -> list[Record]:
    """Like `find_due`, locked until the transaction ends. On PostgreSQL rows locked by another transaction
    are skipped and left for the next poll."""
    if not due:
        return []
    return await _find_due(
        tx, due, " FOR UPDATE OF r SKIP LOCKED" if tx.dialect == "postgresql" else ""
    )


async def _find_due(tx: Tx, due: Sequence[Due], ending: str) -> list[Record]:
    rows = await tx.fetch_all(
        f"SELECT {', '.join(f'r.{name}' for name in _COLUMNS.split(', '))}"
        f" FROM {key_table(('project', 'record', 'due'), tx.dialect)}"
        " CROSS JOIN scheduling_records r WHERE r.project_id = keys.project"
        f" AND r.record_id = keys.record AND r.due_at_ms = CAST(keys.due AS bigint){ending}",
        key_params(
            [(one.project_id, one.record_id, str(one.due_at_ms)) for one in due], tx.dialect
        ),
    )
    return sorted(map(_record, rows), key=lambda one: (one.due_at_ms, one.record_id))


async def update_after_run(tx: Tx, records: Sequence[Record]) -> None:
    """Writes the state of locked records after their time."""
    if not records:
        return
    columns = (
        *(("status", "text"), ("audience", "text"), ("message_id", "text"), ("job_id", "text")),
        *(("reason", "text"), ("error", "text"), ("due_at_ms", "bigint")),
        *(("finished_at_ms", "bigint"), ("last_run_at_ms", "bigint")),
    )
    names = [name for name, _ in columns]
    changes = ", ".join(f"{name} = CAST(keys.new_{name} AS {kind})" for name, kind in columns)
    rows = [_columns(record, names) for record in records]
    await tx.execute(
        f"UPDATE scheduling_records AS r SET {changes} FROM "
        + key_table(("project", "record", *(f"new_{name}" for name in names)), tx.dialect)
        + " WHERE r.project_id = keys.project AND r.record_id = keys.record",
        key_params(
            [
                (record.project_id, record.record_id, *map(_text, row.values()))
                for record, row in zip(records, rows, strict=True)
            ],
            tx.dialect,
        ),
    )


async def update(tx: Tx, record: Record) -> None:
    """Writes changes of a locked record."""
    values = _columns(record, _CHANGING)
    changes = ", ".join(f"{name} = :{name}" for name in _CHANGING)
    await tx.execute(
        f"UPDATE scheduling_records SET {changes} WHERE {_KEY} AND finished_at_ms IS NULL",
        {**values, "project_id": record.project_id, "record_id": record.record_id},
    )


async def purge(tx: Tx, finished_before_ms: int, most: int) -> int:
    """Deletes some old finished records of all projects; returns how many."""
    old = limited_delete("scheduling_records", "finished_at_ms < :finished_before_ms", tx.dialect)
    params = {"finished_before_ms": finished_before_ms, "most": most}
    return await tx.execute(f"DELETE FROM scheduling_records WHERE {old}", params)


async def _find(tx: Tx, project_id: str, record_id: str, kind: Kind, ending: str) -> Record | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM scheduling_records WHERE {_KEY} AND kind = :kind{ending}",
        {"project_id": project_id, "record_id": record_id, "kind": kind},
    )
    return None if row is None else _record(row)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _columns(record: Record, names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(record, name) for name in names}
    if "status" in values:
        values["status"] = _STORED.get(record.status, record.status)
    if record.rule is not None and "rule" in values:
        values["rule"] = asdict(record.rule)
    if "message" in values:
        values["message"] = _renamed(record.message, "route_id", _STORED_ROUTE)
    for name in _JSON:
        if values.get(name) is not None:
            values[name] = to_json(values[name])
    return values


def _record(row: Row) -> Record:
    values: dict[str, Any] = {name: row[name] for name in row.keys()}
    values["status"] = _SHOWN.get(values["status"], values["status"])
    for name in _JSON:
        if values[name] is not None:
            values[name] = json.loads(values[name])
    values["message"] = _renamed(values["message"], _STORED_ROUTE, "route_id")
    if values["rule"] is not None:
        values["rule"] = Rule(**values["rule"])
    return Record(**values)


def _renamed(message: dict[str, Any], name: str, to: str) -> dict[str, Any]:
    return {to if each == name else each: value for each, value in message.items()}
