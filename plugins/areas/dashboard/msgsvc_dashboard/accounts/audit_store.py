"""The SQL of the audit log."""

import json
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_dashboard.accounts.models import AuditEntry

_COLUMNS = (
    "e.entry_id, e.project_id, e.account_id, a.name AS account_name, e.at_ms, e.action, e.target,"
    " e.detail, e.ip"
)
_FROM = "dashboard_audit e LEFT JOIN dashboard_accounts a ON a.account_id = e.account_id"


async def insert(tx: Tx, entry: AuditEntry) -> None:
    await tx.insert(
        "dashboard_audit",
        {
            "entry_id": entry.entry_id,
            "project_id": entry.project_id,
            "account_id": entry.account_id,
            "at_ms": entry.at_ms,
            "action": entry.action,
            "target": entry.target,
            "detail": json.dumps(entry.detail, ensure_ascii=False),
            "ip": entry.ip,
        },
    )


async def list_of_project(
    tx: Tx, project_id: str, account_id: str | None, after: str | None, most: int
) -> list[AuditEntry]:
    """Newest first; only those of one account, if given."""
    conditions, params = ["e.project_id = :project_id"], _page(after, most)
    params["project_id"] = project_id
    if account_id is not None:
        conditions.append("e.account_id = :account_id")
        params["account_id"] = account_id
    return await _list(tx, conditions, params)


async def list_of_account(
    tx: Tx, account_id: str, after: str | None, most: int
) -> list[AuditEntry]:
    """An account's changes, in projects and outside, and failed attempts to sign in to it; newest first."""
    return await _list(
        tx, ["e.account_id = :account_id"], {**_page(after, most), "account_id": account_id}
    )


def _page(after: str | None, most: int) -> dict[str, Any]:
    return {"most": most, **({} if after is None else {"after": after})}


async def _list(tx: Tx, conditions: list[str], params: dict[str, Any]) -> list[AuditEntry]:
    if "after" in params:
        conditions = [*conditions, "e.entry_id < :after"]
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE {' AND '.join(conditions)}"
        " ORDER BY e.entry_id DESC LIMIT :most",
        params,
    )
    return [_entry(row) for row in rows]


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        entry_id=row["entry_id"],
        project_id=row["project_id"],
        account_id=row["account_id"],
        account_name=row["account_name"],
        at_ms=row["at_ms"],
        action=row["action"],
        target=row["target"],
        detail=json.loads(row["detail"]),
        ip=row["ip"],
    )
