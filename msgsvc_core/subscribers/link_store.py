"""The SQL of links that subscribe."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Tx


async def insert(
    tx: Tx,
    project_id: str,
    digest: str,
    *,
    tag_ids: Sequence[str],
    permissions: Sequence[str],
    external_id: str | None,
    expires_at_ms: int,
) -> None:
    await tx.insert(
        "core_links",
        {
            "project_id": project_id,
            "digest": digest,
            "tag_ids": json.dumps(tag_ids, ensure_ascii=False),
            "permissions": json.dumps(permissions),
            "external_id": external_id,
            "expires_at_ms": expires_at_ms,
        },
    )


async def find(tx: Tx, digest: str, now_ms: int) -> Mapping[str, Any] | None:
    """`project_id`, `digest`, `tag_ids`, `permissions` and `external_id` of a valid link; `external_id` is
    None once it has been used."""
    row = await tx.fetch_one(
        "SELECT project_id, tag_ids, permissions, external_id FROM core_links"
        " WHERE digest = :digest AND expires_at_ms > :now_ms",
        {"digest": digest, "now_ms": now_ms},
    )
    if row is None:
        return None
    return {
        "project_id": row["project_id"],
        "digest": digest,
        "tag_ids": json.loads(row["tag_ids"]),
        "permissions": json.loads(row["permissions"]),
        "external_id": row["external_id"],
    }


async def use(tx: Tx, project_id: str, digest: str) -> bool:
    """Removes the `external_id` from a link. False if it has none any more."""
    return bool(
        await tx.execute(
            "UPDATE core_links SET external_id = NULL"
            " WHERE project_id = :project_id AND digest = :digest AND external_id IS NOT NULL",
            {"project_id": project_id, "digest": digest},
        )
    )
