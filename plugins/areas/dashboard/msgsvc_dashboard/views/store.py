"""The SQL of saved views."""

from msgsvc_core.db import Row, Tx
from msgsvc_dashboard.views.models import SavedView

_SELECTED = (
    "SELECT v.view_id, v.path, v.query, v.name, v.account_id, v.is_shared,"
    " d.view_id IS NOT NULL AS is_default FROM dashboard_views v"
    " LEFT JOIN dashboard_default_views d ON d.project_id = v.project_id"
    " AND d.view_id = v.view_id AND d.account_id = :account_id AND d.path = v.path"
    " WHERE v.project_id = :project_id AND (v.is_shared OR v.account_id = :account_id)"
)


async def insert(tx: Tx, project_id: str, view: SavedView, now_ms: int) -> None:
    await tx.insert(
        "dashboard_views",
        {
            "project_id": project_id,
            "view_id": view.view_id,
            "path": view.path,
            "query": view.query,
            "name": view.name,
            "account_id": view.account_id,
            "is_shared": view.is_shared,
            "created_at_ms": now_ms,
        },
    )


async def list_of(
    tx: Tx, project_id: str, account_id: str, path: str, limit: int
) -> list[SavedView]:
    """The views of a list that somebody sees, the oldest first."""
    rows = await tx.fetch_all(
        f"{_SELECTED} AND v.path = :path ORDER BY v.view_id LIMIT :most",
        {"project_id": project_id, "account_id": account_id, "path": path, "most": limit},
    )
    return [_view(row) for row in rows]


async def find(tx: Tx, project_id: str, account_id: str, view_id: str) -> SavedView | None:
    row = await tx.fetch_one(
        f"{_SELECTED} AND v.view_id = :view_id",
        {"project_id": project_id, "account_id": account_id, "view_id": view_id},
    )
    return None if row is None else _view(row)


async def rename(tx: Tx, project_id: str, view_id: str, name: str) -> None:
    await tx.execute(
        "UPDATE dashboard_views SET name = :name WHERE project_id = :project_id AND view_id = :view_id",
        {"project_id": project_id, "view_id": view_id, "name": name},
    )


async def delete(tx: Tx, project_id: str, view_id: str) -> None:
    await tx.execute(
        "DELETE FROM dashboard_views WHERE project_id = :project_id AND view_id = :view_id",
        {"project_id": project_id, "view_id": view_id},
    )


async def find_default(tx: Tx, project_id: str, account_id: str, path: str) -> str | None:
    """The filters with which somebody opens a list; not those of a view that they see no more."""
    query: str | None = await tx.fetch_val(
        "SELECT v.query FROM dashboard_default_views d JOIN dashboard_views v"
        " ON v.project_id = d.project_id AND v.view_id = d.view_id"
        " WHERE d.project_id = :project_id AND d.account_id = :account_id AND d.path = :path"
        " AND (v.is_shared OR v.account_id = :account_id)",
        {"project_id": project_id, "account_id": account_id, "path": path},
    )
    return query


async def set_default(tx: Tx, project_id: str, account_id: str, path: str, view_id: str) -> None:
    await tx.execute(
        "INSERT INTO dashboard_default_views (project_id, account_id, path, view_id)"
        " VALUES (:project_id, :account_id, :path, :view_id)"
        " ON CONFLICT (project_id, account_id, path) DO UPDATE SET view_id = excluded.view_id",
        {"project_id": project_id, "account_id": account_id, "path": path, "view_id": view_id},
    )


async def clear_default(tx: Tx, project_id: str, account_id: str, path: str) -> None:
    await tx.execute(
        "DELETE FROM dashboard_default_views"
        " WHERE project_id = :project_id AND account_id = :account_id AND path = :path",
        {"project_id": project_id, "account_id": account_id, "path": path},
    )


def _view(row: Row) -> SavedView:
    return SavedView(
        view_id=row["view_id"],
        path=row["path"],
        query=row["query"],
        name=row["name"],
        account_id=row["account_id"],
        is_shared=bool(row["is_shared"]),
        is_default=bool(row["is_default"]),
    )
