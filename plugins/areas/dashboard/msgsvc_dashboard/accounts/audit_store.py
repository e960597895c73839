"""The SQL of the audit log."""

import json
from collections.abc import Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_dashboard.accounts.models import NO_ACCOUNT, AuditEntry, AuditFilters

_OWN = "e.entry_id, e.project_id, e.account_id, e.at_ms, e.action, e.target, e.detail, e.ip"
_COLUMNS = f"{_OWN}, a.name AS account_name"
_NAMED = "LEFT JOIN dashboard_accounts a ON a.account_id = e.account_id"

#: The first part of an action, as it stands in the indexes.
_AREA = {
    "postgresql": "split_part(e.action, '.', 1)",
    "sqlite": "substr(e.action, 1, instr(e.action, '.') - 1)",
}


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
    tx: Tx,
    project_id: str,
    filters: AuditFilters,
    after: str | None,
    most: int,
    *,
    ascending: bool = False,
) -> list[AuditEntry]:
    """Newest first, or oldest first; `after` is the last id of the previous page, in that order."""
    conditions, params = ["e.project_id = :project_id"], _page(after, most)
    params["project_id"] = project_id
    if filters.account_id == NO_ACCOUNT:
        conditions.append("e.account_id IS NULL")
    elif filters.account_id is not None:
        conditions.append("e.account_id = :account_id")
        params["account_id"] = filters.account_id
    if filters.since_ms is not None:
        conditions.append("e.entry_id > :since")
        params["since"] = earliest_id("aud", filters.since_ms)
    return await _list(tx, conditions, params, filters.areas, ascending=ascending)


async def list_of_account(
    tx: Tx, account_id: str, after: str | None, most: int
) -> list[AuditEntry]:
    """An account's changes, in projects and outside, and failed attempts to sign in to it; newest first."""
    return await _list(
        tx, ["e.account_id = :account_id"], {**_page(after, most), "account_id": account_id}
    )


def _page(after: str | None, limit: int) -> dict[str, Any]:
    return {"most": limit, **({} if after is None else {"after": after})}


async def _list(
    tx: Tx,
    conditions: list[str],
    params: dict[str, Any],
    areas: Sequence[str] = (),
    *,
    ascending: bool = False,
) -> list[AuditEntry]:
    if "after" in params:
        conditions = [*conditions, f"e.entry_id {'>' if ascending else '<'} :after"]
    page = f"ORDER BY e.entry_id {'ASC' if ascending else 'DESC'} LIMIT :most"
    found = f"SELECT {_OWN} FROM dashboard_audit e WHERE {' AND '.join(conditions)}"
    if areas:
        # One walk along the index for each: all in one condition would have to be sorted.
        params = {**params, **{f"area_{number}": area for number, area in enumerate(areas)}}
        found = " UNION ALL ".join(
            f"SELECT * FROM ({found} AND {_AREA[tx.dialect]} = :area_{number} {page}) AS a{number}"
            for number in range(len(areas))
        )
    else:
        found = f"{found} {page}"
    rows = await tx.fetch_all(f"SELECT {_COLUMNS} FROM ({found}) AS e {_NAMED} {page}", params)
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
