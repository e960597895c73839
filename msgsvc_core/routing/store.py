"""The SQL of routes."""

from msgsvc_core.db import Row, Tx
from msgsvc_core.routing.models import Route, read_steps, steps_to_column

_COLUMNS = "project_id, route_id, name, steps, version, created_at_ms, updated_at_ms"


async def insert(tx: Tx, route: Route) -> bool:
    """False if the project has a route of that name."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_routes ({_COLUMNS}) VALUES (:project_id, :route_id, :name, :steps,"
            " :version, :created_at_ms, :updated_at_ms)"
            " ON CONFLICT (project_id, name) DO NOTHING",
            {
                "project_id": route.project_id,
                "route_id": route.route_id,
                "name": route.name,
                "steps": steps_to_column(route.steps),
                "version": route.version,
                "created_at_ms": route.created_at_ms,
                "updated_at_ms": route.updated_at_ms,
            },
        )
    )


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT count(*) AS n FROM core_routes WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def find(tx: Tx, project_id: str, route_id: str) -> Route | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_routes"
        " WHERE project_id = :project_id AND route_id = :route_id",
        {"project_id": project_id, "route_id": route_id},
    )
    return None if row is None else _route(row)


async def find_by_name(tx: Tx, project_id: str, name: str) -> Route | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_routes WHERE project_id = :project_id AND name = :name",
        {"project_id": project_id, "name": name},
    )
    return None if row is None else _route(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Route]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_routes WHERE project_id = :project_id"
        + (" AND route_id < :after" if after is not None else "")
        + " ORDER BY route_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_route(row) for row in rows]


async def update(tx: Tx, route: Route) -> bool:
    """False if the route is gone, or was changed since the version before."""
    return bool(
        await tx.execute(
            "UPDATE core_routes SET name = :name, steps = :steps, version = :version,"
            " updated_at_ms = :now_ms WHERE project_id = :project_id AND route_id = :route_id"
            " AND version = :before",
            {
                "project_id": route.project_id,
                "route_id": route.route_id,
                "name": route.name,
                "steps": steps_to_column(route.steps),
                "version": route.version,
                "before": route.version - 1,
                "now_ms": route.updated_at_ms,
            },
        )
    )


async def delete(tx: Tx, project_id: str, route_id: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM core_routes WHERE project_id = :project_id AND route_id = :route_id",
            {"project_id": project_id, "route_id": route_id},
        )
    )


def _route(row: Row) -> Route:
    return Route(
        project_id=row["project_id"],
        route_id=row["route_id"],
        name=row["name"],
        steps=read_steps(row["steps"]),
        version=row["version"],
        created_at_ms=row["created_at_ms"],
        updated_at_ms=row["updated_at_ms"],
    )
