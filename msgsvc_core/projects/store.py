"""The SQL of projects and API keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of, array_param, in_array, key_params, key_table
from msgsvc_core.kernel.json import to_json
from msgsvc_core.projects.branding import Branding
from msgsvc_core.projects.models import ApiKey, ListedKey, Project, ProjectTexts

#: The columns of `_project`.
_COLUMNS = "project_id, name, status, created_at_ms, branding, link_tracking"


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
        f"SELECT {_COLUMNS} FROM core_projects WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return None if row is None else _project(row)


async def get_many(tx: Tx, project_ids: Sequence[str]) -> dict[str, Project]:
    known, params = any_of("project_id", "ids", project_ids, tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_projects WHERE {known}",
        params,
    )
    return {row["project_id"]: _project(row) for row in rows}


async def list_projects(tx: Tx) -> list[Project]:
    rows = await tx.fetch_all(f"SELECT {_COLUMNS} FROM core_projects ORDER BY project_id")
    return [_project(row) for row in rows]


async def list_newest(
    tx: Tx, after: str | None, limit: int, prefix: str = ""
) -> list[tuple[Project, str | None]]:
    """Projects with the account that owns each, the newest first, from before the project `after`, whose
    name or id begins with `prefix`."""
    conditions, params = ["1 = 1"], dict[str, Any](limit=limit)
    if prefix:
        # SQLite knows the cases of ASCII alone: of other letters a name is found as it is usually written.
        conditions.append(
            "(SUBSTR(project_id, 1, :length) = :prefix OR SUBSTR(name, 1, :length) = :capitalized"
            " OR LOWER(SUBSTR(name, 1, :length)) = :lower)"
        )
        params |= {"prefix": prefix, "capitalized": prefix.capitalize(), "lower": prefix.lower()}
        params["length"] = len(prefix)
    if after is not None:
        conditions.append("project_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS}, account_id FROM core_projects WHERE {' AND '.join(conditions)}"
        " ORDER BY project_id DESC LIMIT :limit",
        params,
    )
    return [(_project(row), row["account_id"]) for row in rows]


async def find_owner(tx: Tx, project_id: str) -> str | None:
    owner: str | None = await tx.fetch_val(
        "SELECT account_id FROM core_projects WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return owner


async def set_owner(tx: Tx, project_id: str, account_id: str | None) -> bool:
    """False if there is no such project."""
    return bool(
        await tx.execute(
            "UPDATE core_projects SET account_id = :account_id WHERE project_id = :project_id",
            {"project_id": project_id, "account_id": account_id},
        )
    )


async def find_owners(tx: Tx, project_ids: Sequence[str]) -> dict[str, str]:
    """Accounts by project; projects without one are left out."""
    known, params = any_of("project_id", "ids", project_ids, tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT project_id, account_id FROM core_projects WHERE account_id IS NOT NULL AND {known}",
        params,
    )
    return {row["project_id"]: row["account_id"] for row in rows}


async def count_owned(tx: Tx, account_id: str) -> int:
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM core_projects WHERE account_id = :account_id",
            {"account_id": account_id},
        )
    )


async def find_disabled(tx: Tx, project_ids: Sequence[str] | None) -> set[str]:
    """Ids of the disabled projects, among all or `project_ids`."""
    known, params = "", dict[str, Any]()
    if project_ids is not None:
        condition, params = any_of("project_id", "ids", project_ids, tx.dialect)
        known = f" AND {condition}"
    rows = await tx.fetch_all(
        f"SELECT project_id FROM core_projects WHERE status <> 'active'{known}", params
    )
    return {row["project_id"] for row in rows}


async def set_status(tx: Tx, project_id: str, status: str) -> bool:
    """False if there is no such project."""
    return bool(
        await tx.execute(
            "UPDATE core_projects SET status = :status WHERE project_id = :project_id",
            {"project_id": project_id, "status": status},
        )
    )


async def set_name(tx: Tx, project_id: str, name: str) -> None:
    await tx.execute(
        "UPDATE core_projects SET name = :name WHERE project_id = :project_id",
        {"project_id": project_id, "name": name},
    )


async def set_link_tracking(tx: Tx, project_id: str, *, is_on: bool) -> None:
    await tx.execute(
        "UPDATE core_projects SET link_tracking = :is_on WHERE project_id = :project_id",
        {"project_id": project_id, "is_on": is_on},
    )


async def find_texts(tx: Tx, project_id: str) -> ProjectTexts:
    column = await tx.fetch_val(
        "SELECT texts FROM core_projects WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return ProjectTexts() if column is None else ProjectTexts(**json.loads(column))


async def set_texts(tx: Tx, project_id: str, texts: ProjectTexts) -> None:
    await tx.execute(
        "UPDATE core_projects SET texts = :texts WHERE project_id = :project_id",
        {"project_id": project_id, "texts": to_json(asdict(texts))},
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
            "expires_at_ms": key.expires_at_ms,
        },
    )


async def find_keys(tx: Tx, digests: Sequence[str]) -> dict[str, tuple[Project, ApiKey]]:
    """The unrevoked keys of these digests, also if they expired, and their projects, by digest."""
    rows = await tx.fetch_all(
        "SELECT k.digest, k.key_id, k.name AS key_name, k.prefix, k.scopes, k.expires_at_ms,"
        " p.project_id, p.name, p.status, p.created_at_ms, p.branding, p.link_tracking"
        " FROM core_api_keys k JOIN core_projects p ON p.project_id = k.project_id"
        f" WHERE {in_array('k.digest', 'digests', tx.dialect)} AND k.revoked_at_ms IS NULL",
        {"digests": array_param(digests, tx.dialect)},
    )
    return {row["digest"]: (_project(row), _key(row)) for row in rows}


async def list_keys(tx: Tx, project_id: str) -> list[ListedKey]:
    rows = await tx.fetch_all(
        f"SELECT {_LISTED} FROM core_api_keys WHERE project_id = :project_id ORDER BY key_id",
        {"project_id": project_id},
    )
    return [_listed(row) for row in rows]


async def find_expiring(tx: Tx, now_ms: int, until_ms: int) -> list[ListedKey]:
    """The keys of active projects that are in use and expire by then, the first to expire first."""
    rows = await tx.fetch_all(
        f"SELECT {_LISTED} FROM core_api_keys WHERE revoked_at_ms IS NULL"
        " AND expires_at_ms > :now_ms AND expires_at_ms <= :until_ms AND project_id IN"
        " (SELECT project_id FROM core_projects WHERE status = 'active')"
        " ORDER BY expires_at_ms, project_id, key_id",
        {"now_ms": now_ms, "until_ms": until_ms},
    )
    return [_listed(row) for row in rows]


async def set_last_used(tx: Tx, uses: Mapping[tuple[str, str], int]) -> None:
    """Sets when keys, by project and id, were last used, unless a later use is known."""
    keys = [(project_id, key_id, str(at_ms)) for (project_id, key_id), at_ms in uses.items()]
    await tx.execute(
        "UPDATE core_api_keys SET last_used_at_ms = CAST(keys.used_at_ms AS BIGINT)"
        f" FROM {key_table(['project_id', 'key_id', 'used_at_ms'], tx.dialect)}"
        " WHERE core_api_keys.project_id = keys.project_id AND core_api_keys.key_id = keys.key_id"
        " AND COALESCE(last_used_at_ms, 0) < CAST(keys.used_at_ms AS BIGINT)",
        key_params(keys, tx.dialect),
    )


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
        branding=Branding.read(row["branding"]),
        link_tracking=bool(row["link_tracking"]),
    )


#: The columns of `_listed`.
_LISTED = (
    "key_id, project_id, name AS key_name, prefix, scopes, expires_at_ms, created_at_ms,"
    " last_used_at_ms, revoked_at_ms"
)


def _listed(row: Row) -> ListedKey:
    return ListedKey(_key(row), row["created_at_ms"], row["last_used_at_ms"], row["revoked_at_ms"])


def _key(row: Row) -> ApiKey:
    return ApiKey(
        key_id=row["key_id"],
        project_id=row["project_id"],
        name=row["key_name"],
        prefix=row["prefix"],
        scopes=tuple(json.loads(row["scopes"])),
        expires_at_ms=row["expires_at_ms"],
    )
