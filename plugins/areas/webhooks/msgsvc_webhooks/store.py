"""The SQL of webhooks and their secrets."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import among, listed
from msgsvc_webhooks.models import Webhook

_COLUMNS = "project_id, webhook_id, url, events, description, status, created_at_ms, updated_at_ms"
_THIS = "project_id = :project_id AND webhook_id = :webhook_id"


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM webhooks_endpoints WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def insert(tx: Tx, webhook: Webhook) -> None:
    await tx.insert(
        "webhooks_endpoints",
        {
            "project_id": webhook.project_id,
            "webhook_id": webhook.webhook_id,
            "url": webhook.url,
            "events": json.dumps(webhook.events),
            "description": webhook.description,
            "status": webhook.status,
            "created_at_ms": webhook.created_at_ms,
            "updated_at_ms": webhook.updated_at_ms,
        },
    )


async def find(tx: Tx, project_id: str, webhook_id: str) -> Webhook | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints WHERE {_THIS}",
        {"project_id": project_id, "webhook_id": webhook_id},
    )
    return None if row is None else _webhook(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Webhook]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints WHERE project_id = :project_id"
        + (" AND webhook_id < :after" if after is not None else "")
        + " ORDER BY webhook_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_webhook(row) for row in rows]


async def list_active(tx: Tx, project_ids: Iterable[str]) -> dict[str, list[Webhook]]:
    """The active webhooks by project."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints"
        f" WHERE {among('project_id', 'project_ids', tx.dialect)} AND status = 'active'",
        {"project_ids": listed(list(project_ids), tx.dialect)},
    )
    found: dict[str, list[Webhook]] = defaultdict(list)
    for row in rows:
        found[row["project_id"]].append(_webhook(row))
    return found


async def update(
    tx: Tx, project_id: str, webhook_id: str, changes: Mapping[str, Any], now_ms: int
) -> bool:
    """Sets columns by name; False if the project has no such webhook."""
    values = dict(changes)
    if "events" in values:
        values["events"] = json.dumps(values["events"])
    values["updated_at_ms"] = now_ms
    assignments = ", ".join(f"{column} = :{column}" for column in values)
    changed = await tx.execute(
        f"UPDATE webhooks_endpoints SET {assignments} WHERE {_THIS}",
        {**values, "project_id": project_id, "webhook_id": webhook_id},
    )
    return bool(changed)


async def delete(tx: Tx, project_id: str, webhook_id: str) -> bool:
    """Removes a webhook and its secrets; False if the project has no such webhook."""
    return bool(
        await tx.execute(
            f"DELETE FROM webhooks_endpoints WHERE {_THIS}",
            {"project_id": project_id, "webhook_id": webhook_id},
        )
    )


async def insert_secret(
    tx: Tx, project_id: str, webhook_id: str, secret_id: str, encrypted: str
) -> None:
    """Adds a secret that is valid until it is replaced."""
    await tx.insert(
        "webhooks_secrets",
        {
            "project_id": project_id,
            "webhook_id": webhook_id,
            "secret_id": secret_id,
            "encrypted": encrypted,
        },
    )


async def expire_secrets(
    tx: Tx, project_id: str, webhook_id: str, *, now_ms: int, until_ms: int
) -> None:
    """Ends the current secret at `until_ms`, and removes those that have ended."""
    this = {"project_id": project_id, "webhook_id": webhook_id}
    await tx.execute(
        f"DELETE FROM webhooks_secrets WHERE {_THIS} AND expires_at_ms <= :now_ms",
        {**this, "now_ms": now_ms},
    )
    await tx.execute(
        f"UPDATE webhooks_secrets SET expires_at_ms = :until_ms WHERE {_THIS}"
        " AND expires_at_ms IS NULL",
        {**this, "until_ms": until_ms},
    )


async def valid_secrets(tx: Tx, project_id: str, webhook_id: str, now_ms: int) -> list[str]:
    """The encrypted secrets that sign at present, the newest first."""
    rows = await tx.fetch_all(
        f"SELECT encrypted FROM webhooks_secrets WHERE {_THIS}"
        " AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms) ORDER BY secret_id DESC",
        {"project_id": project_id, "webhook_id": webhook_id, "now_ms": now_ms},
    )
    return [row["encrypted"] for row in rows]


async def purge_secrets(tx: Tx, now_ms: int) -> None:
    """Removes secrets that have ended, of all projects."""
    await tx.execute(
        "DELETE FROM webhooks_secrets WHERE expires_at_ms <= :now_ms", {"now_ms": now_ms}
    )


def _webhook(row: Row) -> Webhook:
    return Webhook(
        project_id=row["project_id"],
        webhook_id=row["webhook_id"],
        url=row["url"],
        events=tuple(json.loads(row["events"])),
        description=row["description"],
        status=row["status"],
        created_at_ms=row["created_at_ms"],
        updated_at_ms=row["updated_at_ms"],
    )
