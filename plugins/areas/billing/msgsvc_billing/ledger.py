"""The SQL of ledgers and of daily usage."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_billing.models import Debit, Entry, LedgerFilter, Usage
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array, key_params, key_table
from msgsvc_core.kernel.ids import new_id

_COLUMNS = (
    "account_id, entry_id, project_id, operation, resource_id, quantity, allowance, packs, unpaid,"
    " note, at_ms"
)


async def add(tx: Tx, entry: Entry) -> None:
    """Adds a complete line."""
    await tx.insert("billing_ledger", {name: getattr(entry, name) for name in _COLUMNS.split(", ")})


async def claim(
    tx: Tx, account_id: str, operation: str, keys: Sequence[tuple[str, str, int]], now_ms: int
) -> set[str]:
    """Inserts a line for each (project, resource, quantity) without one; returns their resources.

    A concurrent insert of the same line waits, and then finds the row.
    """
    named = [
        (new_id("led"), project_id, resource, str(count)) for project_id, resource, count in keys
    ]
    columns = ("entry_id", "project_id", "resource_id", "quantity")
    rows = await tx.fetch_all(
        f"INSERT INTO billing_ledger ({_COLUMNS}) SELECT :account_id, keys.entry_id, keys.project_id,"
        " :operation, keys.resource_id, CAST(keys.quantity AS BIGINT), 0, 0, 0, '', :now_ms"
        f" FROM {key_table(columns, tx.dialect)} WHERE 1 = 1 ON CONFLICT DO NOTHING"
        " RETURNING resource_id",
        {
            "account_id": account_id,
            "operation": operation,
            "now_ms": now_ms,
            **key_params(named, tx.dialect),
        },
    )
    return {row["resource_id"] for row in rows}


async def adjust(
    tx: Tx, account_id: str, operation: str, resources: Sequence[str], taken: Debit, unpaid: int
) -> None:
    """Sets what each of these lines took, and the part of its price without credit."""
    await tx.execute(
        "UPDATE billing_ledger SET allowance = 0 - :allowance, packs = 0 - :packs, unpaid = :unpaid"
        " WHERE account_id = :account_id AND operation = :operation"
        f" AND {in_array('resource_id', 'resources', tx.dialect)}",
        {
            "account_id": account_id,
            "operation": operation,
            "resources": array_param(resources, tx.dialect),
            "allowance": taken.allowance,
            "packs": taken.packs,
            "unpaid": unpaid,
        },
    )


async def find(tx: Tx, account_id: str, operation: str, resource_id: str) -> Entry | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM billing_ledger WHERE account_id = :account_id"
        " AND operation = :operation AND resource_id = :resource_id",
        {"account_id": account_id, "operation": operation, "resource_id": resource_id},
    )
    return None if row is None else _entry(row)


async def list_page(tx: Tx, wanted: LedgerFilter, after: str | None, limit: int) -> list[Entry]:
    """Up to `limit` lines, newest first, from before `after`.

    Ids increase with time: after the first that is too old, all are older.
    """
    conditions = ["account_id = :account_id"]
    params: dict[str, Any] = {"account_id": wanted.account_id, "limit": limit}
    for column in ("project_id", "operation"):
        if (value := getattr(wanted, column)) is not None:
            conditions.append(f"{column} = :{column}")
            params[column] = value
    if after is not None:
        conditions.append("entry_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM billing_ledger WHERE {' AND '.join(conditions)}"
        " ORDER BY entry_id DESC LIMIT :limit",
        params,
    )
    since_ms = wanted.since_ms or 0
    return [entry for entry in map(_entry, rows) if entry.at_ms >= since_ms]


async def sums(tx: Tx, account_id: str) -> Debit:
    """The sum of all lines of an account, which is its balance."""
    row = await tx.fetch_one(
        "SELECT COALESCE(SUM(allowance), 0) AS allowance, COALESCE(SUM(packs), 0) AS packs"
        " FROM billing_ledger WHERE account_id = :account_id",
        {"account_id": account_id},
    )
    assert row is not None, "an aggregate has a row"
    return Debit(int(row["allowance"]), int(row["packs"]))


async def count_usage(
    tx: Tx, account_id: str, operation: str, day: int, by_project: Mapping[str, tuple[int, int]]
) -> None:
    """Adds (quantity, credits) to the projects' usage of an operation on that day."""
    for project_id, (quantity, spent) in sorted(by_project.items()):
        await tx.execute(
            "INSERT INTO billing_usage (account_id, day, project_id, operation, quantity, credits)"
            " VALUES (:account_id, :day, :project_id, :operation, :quantity, :credits)"
            " ON CONFLICT (account_id, day, project_id, operation) DO UPDATE"
            " SET quantity = billing_usage.quantity + excluded.quantity,"
            " credits = billing_usage.credits + excluded.credits",
            {
                "account_id": account_id,
                "day": day,
                "project_id": project_id,
                "operation": operation,
                "quantity": quantity,
                "credits": spent,
            },
        )


async def usage_by_day(
    tx: Tx, account_id: str, project_id: str | None, from_day: int, last_day: int | None = None
) -> list[Usage]:
    """By day and operation, oldest first, from one day to another, or to the last."""
    only = "" if project_id is None else " AND project_id = :project_id"
    params: dict[str, Any] = {"account_id": account_id, "from_day": from_day}
    if last_day is not None:
        only += " AND day <= :last_day"
        params["last_day"] = last_day
    rows = await tx.fetch_all(
        "SELECT day, operation, SUM(quantity) AS quantity, SUM(credits) AS credits"
        f" FROM billing_usage WHERE account_id = :account_id AND day >= :from_day{only}"
        " GROUP BY day, operation ORDER BY day, operation",
        params if project_id is None else {**params, "project_id": project_id},
    )
    return [
        Usage(row["day"], row["operation"], int(row["quantity"]), int(row["credits"]))
        for row in rows
    ]


def _entry(row: Row) -> Entry:
    return Entry(
        account_id=row["account_id"],
        entry_id=row["entry_id"],
        project_id=row["project_id"],
        operation=row["operation"],
        resource_id=row["resource_id"],
        quantity=row["quantity"],
        allowance=row["allowance"],
        packs=row["packs"],
        unpaid=row["unpaid"],
        note=row["note"],
        at_ms=row["at_ms"],
    )
