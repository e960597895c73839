"""The SQL of scheduled and recurring messages."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import held, kept
from msgsvc_core.json_text import to_json
from msgsvc_scheduling.models import Due, Kind, Record
from msgsvc_scheduling.recurrence import Rule

_COLUMNS = (
    "project_id, record_id, kind, status, message, subscriber_id, audience, timezone, send_at_ms,"
    " due_at_ms, message_id, job_id, reason, error, created_at_ms, finished_at_ms, rule,"
    " last_run_at_ms"
)
_KEY = "project_id = :project_id AND record_id = :record_id"

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
    """How many of the project are not over, of both kinds."""
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM scheduling_records"
            " WHERE project_id = :project_id AND finished_at_ms IS NULL",
            {"project_id": project_id},
        )
    )


async def find(tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record | None:
    return await _find(tx, project_id, record_id, kind, "")


async def hold(tx: Tx, project_id: str, record_id: str, kind: Kind) -> Record | None:
    """The record, which nobody else changes until the transaction ends."""
    return await _find(tx, project_id, record_id, kind, held(tx.dialect))


async def list_page(
    tx: Tx, project_id: str, kind: Kind, status: str | None, after: str | None, limit: int
) -> list[Record]:
    """Those of one kind, newest first; `after` is the last id of the page before."""
    conditions = ["project_id = :project_id", "kind = :kind"]
    params: dict[str, Any] = {"project_id": project_id, "kind": kind, "most": limit}
    if status is not None:
        conditions.append("status = :status")
        params["status"] = status
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
    """Of all projects, those whose time has come, the longest due first."""
    rows = await tx.fetch_all(
        "SELECT project_id, record_id, subscriber_id, due_at_ms FROM scheduling_records"
        " WHERE due_at_ms <= :now_ms ORDER BY due_at_ms, project_id, record_id LIMIT :most",
        {"now_ms": now_ms, "most": most},
    )
    return [Due(*row) for row in rows]


async def keep_subscriber(tx: Tx, project_id: str, subscriber_id: str) -> bool:
    """Has the subscriber stay until the transaction ends; False if they are gone."""
    row = await tx.fetch_one(
        "SELECT 1 AS found FROM core_subscribers"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id" + kept(tx.dialect),
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )
    return row is not None


async def hold_due(tx: Tx, due: Due) -> Record | None:
    """The record, which nobody else changes until the transaction ends; None if it is not due for
    that time any more."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM scheduling_records WHERE {_KEY} AND due_at_ms = :due_at_ms"
        + held(tx.dialect),
        {"project_id": due.project_id, "record_id": due.record_id, "due_at_ms": due.due_at_ms},
    )
    return None if row is None else _record(row)


async def move_on(tx: Tx, due: Due, after: Record) -> bool:
    """Writes what a record is after its time; False if it is not due for that time any more."""
    return await _write(tx, after, "due_at_ms = :was_due_at_ms", {"was_due_at_ms": due.due_at_ms})


async def update(tx: Tx, record: Record) -> None:
    """Writes what was changed of a record that is held."""
    await _write(tx, record, "finished_at_ms IS NULL", {})


async def purge(tx: Tx, finished_before_ms: int) -> int:
    """Deletes those of all projects that have been over for long; returns how many."""
    return await tx.execute(
        "DELETE FROM scheduling_records WHERE finished_at_ms < :finished_before_ms",
        {"finished_before_ms": finished_before_ms},
    )


async def _find(tx: Tx, project_id: str, record_id: str, kind: Kind, ending: str) -> Record | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM scheduling_records WHERE {_KEY} AND kind = :kind{ending}",
        {"project_id": project_id, "record_id": record_id, "kind": kind},
    )
    return None if row is None else _record(row)


async def _write(tx: Tx, record: Record, condition: str, params: dict[str, Any]) -> bool:
    values = _columns(record, _CHANGING)
    changes = ", ".join(f"{name} = :{name}" for name in _CHANGING)
    changed = await tx.execute(
        f"UPDATE scheduling_records SET {changes} WHERE {_KEY} AND {condition}",
        {**values, **params, "project_id": record.project_id, "record_id": record.record_id},
    )
    return changed == 1


def _columns(record: Record, names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(record, name) for name in names}
    if record.rule is not None and "rule" in values:
        values["rule"] = asdict(record.rule)
    for name in _JSON:
        if values.get(name) is not None:
            values[name] = to_json(values[name])
    return values


def _record(row: Row) -> Record:
    values: dict[str, Any] = {name: row[name] for name in row.keys()}
    for name in _JSON:
        if values[name] is not None:
            values[name] = json.loads(values[name])
    if values["rule"] is not None:
        values["rule"] = Rule(**values["rule"])
    return Record(**values)
