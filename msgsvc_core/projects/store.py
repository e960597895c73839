"""The SQL of projects and API keys."""

import json
from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import among, listed
from msgsvc_core.projects.models import ApiKey, ListedKey, Project


async def insert_project(tx: Tx, project: Project) -> None:
    await tx.insert(
        "core_projects",
        {
            "project_id": project.project_id,
            "name": project.name,
            "status": project.status,
            "created_at_ms": project.created_at_ms,
        },
    )


async def find_project(tx: Tx, project_id: str) -> Project | None:
    row = await tx.fetch_one(
        "SELECT project_id, name, status, created_at_ms FROM core_projects"
        " WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return None if row is None else _project(row)


async def list_projects(tx: Tx) -> list[Project]:
    rows = await tx.fetch_all(
        "SELECT project_id, name, status, created_at_ms FROM core_projects ORDER BY project_id"
    )
    return [_project(row) for row in rows]


async def set_status(tx: Tx, project_id: str, status: str) -> bool:
    """False if there is no such project."""
    return bool(
        await tx.execute(
            "UPDATE core_projects SET status = :status WHERE project_id = :project_id",
            {"project_id": project_id, "status": status},
        )
    )


async def insert_key(tx: Tx, key: ApiKey, digest: str, now_ms: int) -> None:
    await tx.insert(
        "core_api_keys",
        {
            "project_id": key.project_id,
            "key_id": key.key_id,
            "name": key.name,
            "prefix": key.prefix,
            "digest": digest,
            "scopes": json.dumps(key.scopes),
            "created_at_ms": now_ms,
        },
    )


async def find_keys(tx: Tx, digests: Sequence[str]) -> dict[str, tuple[Project, ApiKey]]:
    """The unrevoked keys of these digests, and their projects, by digest."""
    rows = await tx.fetch_all(
        "SELECT k.digest, k.key_id, k.name AS key_name, k.prefix, k.scopes,"
        " p.project_id, p.name, p.status, p.created_at_ms"
        " FROM core_api_keys k JOIN core_projects p ON p.project_id = k.project_id"
        f" WHERE {among('k.digest', 'digests', tx.dialect)} AND k.revoked_at_ms IS NULL",
        {"digests": listed(digests, tx.dialect)},
    )
    return {row["digest"]: (_project(row), _key(row)) for row in rows}


async def list_keys(tx: Tx, project_id: str) -> list[ListedKey]:
    rows = await tx.fetch_all(
        "SELECT key_id, project_id, name AS key_name, prefix, scopes, created_at_ms, revoked_at_ms"
        " FROM core_api_keys WHERE project_id = :project_id ORDER BY key_id",
        {"project_id": project_id},
    )
    return [ListedKey(_key(row), row["created_at_ms"], row["revoked_at_ms"]) for row in rows]


async def revoke_key(tx: Tx, project_id: str, key_id: str, now_ms: int) -> bool:
    """False if the project has no such key in use."""
    return bool(
        await tx.execute(
            "UPDATE core_api_keys SET revoked_at_ms = :now_ms WHERE project_id = :project_id"
            " AND key_id = :key_id AND revoked_at_ms IS NULL",
            {"project_id": project_id, "key_id": key_id, "now_ms": now_ms},
        )
    )


def _project(row: Row) -> Project:
    return Project(
        project_id=row["project_id"],
        name=row["name"],
        status=row["status"],
        created_at_ms=row["created_at_ms"],
    )


def _key(row: Row) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        project_id=row["project_id"],
        name=row["key_name"],
        prefix=row["prefix"],
        scopes=tuple(json.loads(row["scopes"])),
    )
