"""The SQL of webhooks and their secrets."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_webhooks.models import DisabledReason, Webhook

_COLUMNS = (
    "project_id, webhook_id, url, events, description, status, created_at_ms, updated_at_ms,"
    " failing_since_ms, disabled_reason, failed_deliveries, failed_delivery_at_ms"
)
_THIS = "project_id = :project_id AND webhook_id = :webhook_id"
#: What an address answers says nothing of the one that took its place during the call.
_CALLED = f"{_THIS} AND url = :url"


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


async def find_with_secrets(
    tx: Tx, project_id: str, webhook_id: str, now_ms: int
) -> tuple[Webhook | None, list[str]]:
    """A webhook, and its valid secrets, encrypted, newest first."""
    selected = ", ".join(f"e.{column.strip()}" for column in _COLUMNS.split(","))
    rows = await tx.fetch_all(
        f"SELECT {selected}, s.encrypted FROM webhooks_endpoints e LEFT JOIN webhooks_secrets s"
        " ON s.project_id = e.project_id AND s.webhook_id = e.webhook_id"
        " AND (s.expires_at_ms IS NULL OR s.expires_at_ms > :now_ms)"
        " WHERE e.project_id = :project_id AND e.webhook_id = :webhook_id"
        " ORDER BY s.secret_id DESC",
        {"project_id": project_id, "webhook_id": webhook_id, "now_ms": now_ms},
    )
    secrets = [row["encrypted"] for row in rows if row["encrypted"] is not None]
    return (_webhook(rows[0]) if rows else None), secrets


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Webhook]:
    """Newest first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints WHERE project_id = :project_id"
        + (" AND webhook_id < :after" if after is not None else "")
        + " ORDER BY webhook_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_webhook(row) for row in rows]


async def list_all(tx: Tx, project_id: str) -> list[Webhook]:
    """A project's webhooks, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints WHERE project_id = :project_id"
        " ORDER BY webhook_id",
        {"project_id": project_id},
    )
    return [_webhook(row) for row in rows]


async def list_active(tx: Tx, project_ids: Iterable[str]) -> dict[str, list[Webhook]]:
    """The active webhooks by project."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_endpoints"
        f" WHERE {in_array('project_id', 'project_ids', tx.dialect)} AND status = 'active'",
        {"project_ids": array_param(list(project_ids), tx.dialect)},
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


async def record_success(tx: Tx, webhook: Webhook) -> None:
    """Ends a failure period."""
    await tx.execute(
        f"UPDATE webhooks_endpoints SET failing_since_ms = NULL WHERE {_CALLED}",
        _called(webhook),
    )


async def record_failure(tx: Tx, webhook: Webhook, now_ms: int) -> None:
    """Starts a failure period, unless one has started; no failed delivery is counted in it yet."""
    await tx.execute(
        "UPDATE webhooks_endpoints SET failing_since_ms = :now_ms, failed_deliveries = 0,"
        " failed_delivery_at_ms = NULL"
        f" WHERE {_CALLED} AND failing_since_ms IS NULL",
        {**_called(webhook), "now_ms": now_ms},
    )


async def count_failed(tx: Tx, webhook: Webhook, now_ms: int, *, unless_after_ms: int) -> None:
    """Counts a failed delivery in a failure period, unless one was counted after that time."""
    await tx.execute(
        "UPDATE webhooks_endpoints SET failed_deliveries = failed_deliveries + 1,"
        f" failed_delivery_at_ms = :now_ms WHERE {_CALLED} AND failing_since_ms IS NOT NULL"
        " AND (failed_delivery_at_ms IS NULL OR failed_delivery_at_ms <= :unless_after_ms)",
        {**_called(webhook), "now_ms": now_ms, "unless_after_ms": unless_after_ms},
    )


async def disable(tx: Tx, webhook: Webhook, reason: DisabledReason, now_ms: int) -> bool:
    """Disables an active webhook; False if nothing was changed, e.g. because its URL has changed."""
    return await _disable(tx, webhook, reason, now_ms, "", {})


async def disable_failing(
    tx: Tx, webhook: Webhook, now_ms: int, *, failing_since_ms: int, failed_deliveries: int
) -> bool:
    """Like `disable`, only if it has failed since then or longer, with that many failed deliveries or
    more."""
    condition = " AND failing_since_ms <= :failing_since_ms AND failed_deliveries >= :failed"
    params = {"failing_since_ms": failing_since_ms, "failed": failed_deliveries}
    return await _disable(tx, webhook, "failing", now_ms, condition, params)


async def _disable(
    tx: Tx,
    webhook: Webhook,
    reason: DisabledReason,
    now_ms: int,
    condition: str,
    params: Mapping[str, Any],
) -> bool:
    changed = await tx.execute(
        "UPDATE webhooks_endpoints SET status = 'disabled', disabled_reason = :reason,"
        f" updated_at_ms = :now_ms WHERE {_CALLED} AND status = 'active'{condition}",
        {**_called(webhook), **params, "reason": reason, "now_ms": now_ms},
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
    """Ends the current secret at `until_ms`, and deletes expired ones."""
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
    """The valid secrets, encrypted, newest first."""
    rows = await tx.fetch_all(
        f"SELECT encrypted FROM webhooks_secrets WHERE {_THIS}"
        " AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms) ORDER BY secret_id DESC",
        {"project_id": project_id, "webhook_id": webhook_id, "now_ms": now_ms},
    )
    return [row["encrypted"] for row in rows]


async def purge_secrets(tx: Tx, now_ms: int) -> None:
    """Deletes expired secrets of all projects."""
    await tx.execute(
        "DELETE FROM webhooks_secrets WHERE expires_at_ms <= :now_ms", {"now_ms": now_ms}
    )


def _called(webhook: Webhook) -> dict[str, Any]:
    return {
        "project_id": webhook.project_id,
        "webhook_id": webhook.webhook_id,
        "url": webhook.url,
    }


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
        failing_since_ms=row["failing_since_ms"],
        disabled_reason=row["disabled_reason"],
        failed_deliveries=row["failed_deliveries"],
        failed_delivery_at_ms=row["failed_delivery_at_ms"],
    )
