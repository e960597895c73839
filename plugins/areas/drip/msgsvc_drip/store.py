"""The SQL of campaigns and their versions.

A `deleted` campaign is no longer found; its row is kept until its last enrollment is deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_core.kernel.values import value_object
from msgsvc_drip.models import Drip

_COLUMNS = (
    "project_id",
    "drip_id",
    "name",
    "status",
    "reentry",
    "trigger_on",
    "trigger_value",
    "version",
    "created_at_ms",
    "updated_at_ms",
)
_SELECT = (
    f"SELECT {', '.join(f'c.{column}' for column in _COLUMNS)}, v.content FROM drip_chains c"
    " JOIN drip_versions v ON v.project_id = c.project_id AND v.drip_id = c.drip_id"
    " AND v.version = c.version AND c.status <> 'deleted'"
)
_THIS = "project_id = :project_id AND drip_id = :drip_id"

#: What stands for a version: project, chain and number.
VersionKey = tuple[str, str, int]


@value_object
class Subscription:
    """A campaign that reacts to an event or tag: `stop` ends enrollments, anything else starts them.

    `content` is that of the newest version; None if only `version` is affected.
    """

    kind: str
    value: str
    project_id: str
    drip_id: str
    version: int
    content: str | None


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM drip_chains"
        " WHERE project_id = :project_id AND status <> 'deleted'",
        {"project_id": project_id},
    )
    return found


async def insert(tx: Tx, drip: Drip) -> None:
    values = {column: getattr(drip, column) for column in _COLUMNS}
    paused_at_ms = drip.created_at_ms if drip.status == "paused" else None
    await tx.insert("drip_chains", {**values, "paused_at_ms": paused_at_ms})
    await add_version(tx, drip)


async def add_version(tx: Tx, drip: Drip) -> None:
    """Stores the content of a campaign as its version, with its stop conditions."""
    key = {"project_id": drip.project_id, "drip_id": drip.drip_id, "version": drip.version}
    await tx.insert(
        "drip_versions", {**key, "content": drip.content, "created_at_ms": drip.updated_at_ms}
    )
    stops = dict.fromkeys(drip.definition.stop_on)
    await tx.insert_many("drip_stops", [{**key, "event": name} for name in stops])


async def find(tx: Tx, project_id: str, drip_id: str, *, lock: bool = False) -> Drip | None:
    """With `lock`, the campaign is locked until the transaction ends."""
    key = {"project_id": project_id, "drip_id": drip_id}
    if lock and tx.dialect == "postgresql":
        # A separate query: in one with the version, a waiting transaction would read the previous one. Not
        # FOR UPDATE: concurrent enrolling need not wait.
        await tx.fetch_one(f"SELECT 1 FROM drip_chains WHERE {_THIS} FOR NO KEY UPDATE", key)
    row = await tx.fetch_one(
        f"{_SELECT} WHERE c.project_id = :project_id AND c.drip_id = :drip_id", key
    )
    return None if row is None else _drip(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Drip]:
    """Newest first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE c.project_id = :project_id"
        + (" AND c.drip_id < :after" if after is not None else "")
        + " ORDER BY c.drip_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_drip(row) for row in rows]


async def update(tx: Tx, drip: Drip) -> None:
    """Writes everything except the status."""
    await tx.execute(
        "UPDATE drip_chains SET name = :name, reentry = :reentry, trigger_on = :trigger_on,"
        " trigger_value = :trigger_value, version = :version, updated_at_ms = :updated_at_ms"
        f" WHERE {_THIS}",
        {
            column: getattr(drip, column)
            for column in _COLUMNS
            if column not in {"status", "created_at_ms"}
        },
    )


async def pause(tx: Tx, project_id: str, drip_id: str, now_ms: int) -> None:
    """Stops the campaign's own time. No effect if it is paused, or does not exist."""
    await tx.execute(
        "UPDATE drip_chains SET status = 'paused', paused_at_ms = :now_ms, updated_at_ms = :now_ms"
        f" WHERE {_THIS} AND status = 'active'",
        {"project_id": project_id, "drip_id": drip_id, "now_ms": now_ms},
    )


async def resume(tx: Tx, project_id: str, drip_id: str, now_ms: int) -> None:
    """Continues the campaign's own time. No effect if it is active, or does not exist."""
    await tx.execute(
        "UPDATE drip_chains SET status = 'active', paused_ms = paused_ms"
        # Clocks of machines differ: a pause is never shorter than nothing.
        " + CASE WHEN paused_at_ms < :now_ms THEN :now_ms - paused_at_ms ELSE 0 END,"
        f" paused_at_ms = NULL, updated_at_ms = :now_ms WHERE {_THIS} AND status = 'paused'",
        {"project_id": project_id, "drip_id": drip_id, "now_ms": now_ms},
    )


async def mark_deleted(tx: Tx, project_id: str, drip_id: str) -> bool:
    """Marks a campaign as deleted, which hides it and stops all enrolling and sending. False if it does not
    exist."""
    key = {"project_id": project_id, "drip_id": drip_id}
    if not await tx.execute(
        f"UPDATE drip_chains SET status = 'deleted' WHERE {_THIS} AND status <> 'deleted'", key
    ):
        return False
    await tx.execute(f"DELETE FROM drip_stops WHERE {_THIS}", key)
    return True


async def delete_marked(tx: Tx, project_id: str, drip_id: str) -> None:
    """Deletes the remaining rows of a deleted campaign."""
    await tx.execute(
        f"DELETE FROM drip_chains WHERE {_THIS} AND status = 'deleted'",
        {"project_id": project_id, "drip_id": drip_id},
    )


async def find_matching(tx: Tx, happened: Sequence[tuple[str, str, str]]) -> list[Subscription]:
    """The campaigns that react to (project_id, kind, value): triggers of active ones, and `stop`."""
    rows = await tx.fetch_all(
        "SELECT keys.kind, keys.value, c.project_id, c.drip_id, c.version, v.content"
        f" FROM {key_table(('project', 'kind', 'value'), tx.dialect)}"
        " CROSS JOIN drip_chains c JOIN drip_versions v ON v.project_id = c.project_id"
        " AND v.drip_id = c.drip_id AND v.version = c.version"
        " WHERE c.project_id = keys.project AND c.trigger_on = keys.kind"
        " AND c.trigger_value = keys.value AND c.status = 'active'"
        " UNION ALL SELECT keys.kind, keys.value, s.project_id, s.drip_id, s.version, NULL"
        f" FROM {key_table(('project', 'kind', 'value'), tx.dialect)}"
        " CROSS JOIN drip_stops s WHERE keys.kind = 'stop'"
        " AND s.project_id = keys.project AND s.event = keys.value",
        key_params(happened, tx.dialect),
    )
    return [Subscription(*row) for row in rows]


async def find_definitions(tx: Tx, versions: Iterable[VersionKey]) -> Mapping[VersionKey, str]:
    """The contents of versions."""
    keys = [(project_id, drip_id, str(version)) for project_id, drip_id, version in versions]
    rows = await tx.fetch_all(
        "SELECT v.project_id, v.drip_id, v.version, v.content"
        f" FROM {key_table(('project', 'drip', 'number'), tx.dialect)}"
        " CROSS JOIN drip_versions v WHERE v.project_id = keys.project"
        " AND v.drip_id = keys.drip AND v.version = CAST(keys.number AS integer)",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["drip_id"], row["version"]): row["content"] for row in rows}


def _drip(row: Row) -> Drip:
    fields: dict[str, Any] = {column: row[column] for column in _COLUMNS}
    return Drip(**fields, content=row["content"])
