"""The SQL of permissions."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import (
    array_param,
    for_key_share,
    for_update,
    in_array,
    key_params,
    key_table,
)
from msgsvc_core.kernel.i18n import from_column, to_column
from msgsvc_core.subscribers.permissions.models import Permission

_COLUMNS = "project_id, key, title, description, is_default, created_at_ms"

_OF_ACTIVE = (
    "FROM core_subscriber_permissions g JOIN core_subscribers s"
    " ON s.project_id = g.project_id AND s.subscriber_id = g.subscriber_id"
    " WHERE g.project_id = :project_id AND s.status = 'active'"
)


async def find(tx: Tx, project_id: str, key: str) -> Permission | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_permissions WHERE project_id = :project_id AND key = :key",
        {"project_id": project_id, "key": key},
    )
    return None if row is None else _permission(row)


async def find_existing(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bool]:
    """Which of (project_id, key) exist, of several projects."""
    rows = await tx.fetch_all(
        f"SELECT p.project_id, p.key FROM {key_table(('project', 'permission'), tx.dialect)}"
        " CROSS JOIN core_permissions p"
        " WHERE p.project_id = keys.project AND p.key = keys.permission",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["key"]): True for row in rows}


async def find_granted(
    tx: Tx, keys: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], bool]:
    """Which of (project_id, subscriber_id, key) were granted, of several projects."""
    rows = await tx.fetch_all(
        "SELECT g.project_id, g.subscriber_id, g.permission"
        f" FROM {key_table(('project', 'subscriber', 'permission'), tx.dialect)}"
        " CROSS JOIN core_subscriber_permissions g WHERE g.project_id = keys.project"
        " AND g.subscriber_id = keys.subscriber AND g.permission = keys.permission",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["subscriber_id"], row["permission"]): True for row in rows}


async def list_all(tx: Tx, project_id: str) -> list[Permission]:
    """Oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_permissions WHERE project_id = :project_id"
        " ORDER BY created_at_ms, key",
        {"project_id": project_id},
    )
    return [_permission(row) for row in rows]


async def list_page(
    tx: Tx, project_id: str, after: tuple[int, str] | None, limit: int
) -> list[Permission]:
    """Newest first; `after` is time and key of the last one of the previous page."""
    params: dict[str, Any] = {"project_id": project_id, "most": limit}
    condition = ""
    if after is not None:
        condition = " AND (created_at_ms, key) < (:after_ms, :after_key)"
        params.update(after_ms=after[0], after_key=after[1])
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_permissions WHERE project_id = :project_id{condition}"
        " ORDER BY created_at_ms DESC, key DESC LIMIT :most",
        params,
    )
    return [_permission(row) for row in rows]


async def count_active(tx: Tx, project_id: str, keys: Sequence[str]) -> dict[str, int]:
    """The number of active subscribers that granted each of `keys`; those without grants are absent."""
    rows = await tx.fetch_all(
        # In one scan: a subquery for each took twice the time.
        f"SELECT g.permission, COUNT(*) AS active {_OF_ACTIVE}"
        f" AND {in_array('g.permission', 'keys', tx.dialect)} GROUP BY g.permission",
        {"project_id": project_id, "keys": array_param(keys, tx.dialect)},
    )
    return {row["permission"]: row["active"] for row in rows}


async def count_active_up_to(
    tx: Tx, project_id: str, keys: Sequence[str], limit: int
) -> dict[str, int]:
    """Like `count_active`, each counted up to `limit`; `keys` is not empty."""
    rows = await tx.fetch_all(
        # SQLite executes a CROSS JOIN from left to right, and PostgreSQL reads the index in its order.
        "SELECT keys.permission, (SELECT COUNT(*) FROM (SELECT 1 FROM core_subscriber_permissions g"
        " CROSS JOIN core_subscribers s WHERE g.project_id = :project_id"
        " AND g.permission = keys.permission AND s.project_id = g.project_id"
        " AND s.subscriber_id = g.subscriber_id AND s.status = 'active'"
        " ORDER BY g.subscriber_id LIMIT :most) AS found) AS active"
        f" FROM {key_table(('permission',), tx.dialect)}",
        {
            "project_id": project_id,
            "most": limit,
            **key_params([(key,) for key in keys], tx.dialect),
        },
    )
    return {row["permission"]: row["active"] for row in rows}


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM core_permissions WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def insert(tx: Tx, permission: Permission) -> bool:
    """False if the project has one of that key."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_permissions ({_COLUMNS}) VALUES (:project_id, :key, :title,"
            " :description, :is_default, :created_at_ms) ON CONFLICT DO NOTHING",
            {
                "project_id": permission.project_id,
                "key": permission.key,
                "title": to_column(permission.title),
                "description": to_column(permission.description),
                "is_default": permission.default,
                "created_at_ms": permission.created_at_ms,
            },
        )
    )


async def update(tx: Tx, project_id: str, key: str, changes: Mapping[str, Any]) -> bool:
    """Writes those of `title`, `description` and `default` that are in `changes`; False if there is no
    such permission."""
    values: dict[str, Any] = {"key": key}
    for name, value in changes.items():
        if name == "default":
            values["is_default"] = value
        else:
            values[name] = to_column(value)
    return bool(
        await tx.execute(
            f"UPDATE core_permissions SET {', '.join(f'{name} = :{name}' for name in values)}"
            " WHERE project_id = :project_id AND key = :key",
            {"project_id": project_id, **values},
        )
    )


async def lock(tx: Tx, project_id: str, key: str) -> bool:
    """Locks the permission against grants until the transaction ends; False if it does not exist."""
    row = await tx.fetch_one(
        "SELECT 1 AS found FROM core_permissions WHERE project_id = :project_id AND key = :key"
        + for_update(tx.dialect),
        {"project_id": project_id, "key": key},
    )
    return row is not None


async def has_active(tx: Tx, project_id: str, key: str) -> bool:
    """Whether an active subscriber granted it."""
    return bool(
        await tx.fetch_val(
            f"SELECT 1 AS found {_OF_ACTIVE} AND g.permission = :key LIMIT 1",
            {"project_id": project_id, "key": key},
        )
    )


async def delete(tx: Tx, project_id: str, key: str) -> None:
    """Deletes its grants too."""
    await tx.execute(
        "DELETE FROM core_permissions WHERE project_id = :project_id AND key = :key",
        {"project_id": project_id, "key": key},
    )


async def existing_keys(tx: Tx, project_id: str, keys: Sequence[str]) -> set[str]:
    """Those of `keys` that exist."""
    rows = await tx.fetch_all(
        "SELECT key FROM core_permissions WHERE project_id = :project_id"
        f" AND {in_array('key', 'keys', tx.dialect)}",
        {"project_id": project_id, "keys": array_param(keys, tx.dialect)},
    )
    return {row["key"] for row in rows}


async def grant(
    tx: Tx, project_id: str, subscriber_id: str, keys: Sequence[str], now_ms: int
) -> list[str]:
    """Grants those of `keys` that exist, if the subscriber exists; returns those that were not granted
    before."""
    return await _grant(
        tx,
        in_array("p.key", "keys", tx.dialect),
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "keys": array_param(keys, tx.dialect),
            "now_ms": now_ms,
        },
    )


async def grant_defaults(tx: Tx, project_id: str, subscriber_id: str, now_ms: int) -> list[str]:
    """Like `grant`, for the project's defaults."""
    return await _grant(
        tx,
        "p.is_default",
        {"project_id": project_id, "subscriber_id": subscriber_id, "now_ms": now_ms},
    )


async def _grant(tx: Tx, which: str, params: Mapping[str, Any]) -> list[str]:
    rows = await tx.fetch_all(
        "INSERT INTO core_subscriber_permissions"
        " (project_id, subscriber_id, permission, granted_at_ms)"
        " SELECT s.project_id, s.subscriber_id, p.key, CAST(:now_ms AS BIGINT)"
        " FROM core_subscribers s JOIN core_permissions p ON p.project_id = s.project_id"
        " WHERE s.project_id = :project_id AND s.subscriber_id = :subscriber_id"
        f" AND {which}{for_key_share(tx.dialect)}"
        " ON CONFLICT DO NOTHING RETURNING permission",
        params,
    )
    return sorted(row["permission"] for row in rows)


async def revoke(tx: Tx, project_id: str, subscriber_id: str, key: str) -> bool:
    """False if the subscriber had not granted it."""
    return bool(
        await tx.execute(
            "DELETE FROM core_subscriber_permissions WHERE project_id = :project_id"
            " AND subscriber_id = :subscriber_id AND permission = :key",
            {"project_id": project_id, "subscriber_id": subscriber_id, "key": key},
        )
    )


def _permission(row: Row) -> Permission:
    title = from_column(row["title"])
    assert title is not None
    return Permission(
        project_id=row["project_id"],
        key=row["key"],
        title=title,
        description=from_column(row["description"]),
        default=bool(row["is_default"]),
        created_at_ms=row["created_at_ms"],
    )
