"""The SQL of accounts."""

from collections.abc import Collection, Mapping
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_dashboard.accounts.models import Account

#: Of `dashboard_accounts a`, for `account_of`.
COLUMNS = (
    "a.account_id, a.email, a.name, a.status, a.is_operator, a.lang, a.timezone, a.created_at_ms,"
    " a.signed_in_at_ms, a.password_hash IS NOT NULL AS has_password,"
    " a.totp_confirmed_at_ms IS NOT NULL AS has_totp"
)


async def insert(tx: Tx, account: Account) -> bool:
    """False if there is an account with that email."""
    return bool(
        await tx.execute(
            "INSERT INTO dashboard_accounts (account_id, email, name, status, is_operator, lang, timezone,"
            " created_at_ms) VALUES (:account_id, :email, :name, :status, :is_operator, :lang,"
            " :timezone, :created_at_ms) ON CONFLICT DO NOTHING",
            {
                "account_id": account.account_id,
                "email": account.email,
                "name": account.name,
                "status": account.status,
                "is_operator": account.is_operator,
                "lang": account.lang,
                "timezone": account.timezone,
                "created_at_ms": account.created_at_ms,
            },
        )
    )


async def find(tx: Tx, account_id: str) -> Account | None:
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM dashboard_accounts a WHERE a.account_id = :account_id",
        {"account_id": account_id},
    )
    return None if row is None else account_of(row)


async def find_many(tx: Tx, account_ids: Collection[str]) -> dict[str, Account]:
    """The accounts that exist, by their id."""
    if not account_ids:
        return {}
    rows = await tx.fetch_all(
        f"SELECT {COLUMNS} FROM dashboard_accounts a"
        f" WHERE {in_array('a.account_id', 'account_ids', tx.dialect)}",
        {"account_ids": array_param(sorted(account_ids), tx.dialect)},
    )
    return {row["account_id"]: account_of(row) for row in rows}


async def find_by_email(tx: Tx, email: str) -> Account | None:
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM dashboard_accounts a WHERE a.email = :email", {"email": email}
    )
    return None if row is None else account_of(row)


async def list_page(tx: Tx, after: str | None, most: int, email_prefix: str = "") -> list[Account]:
    """Newest first, from before the account `after`."""
    conditions, params = ["1 = 1"], dict[str, Any](most=most)
    if email_prefix:
        # Not by an order, which is the database's own: by bytes here, by a language's rules there.
        conditions.append("SUBSTR(a.email, 1, :length) = :prefix")
        params |= {"prefix": email_prefix, "length": len(email_prefix)}
    if after is not None:
        conditions.append("a.account_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {COLUMNS} FROM dashboard_accounts a WHERE {' AND '.join(conditions)}"
        " ORDER BY a.account_id DESC LIMIT :most",
        params,
    )
    return [account_of(row) for row in rows]


async def update(tx: Tx, account_id: str, changes: Mapping[str, Any]) -> bool:
    """False if there is no such account. Column names are never user input."""
    assignments = ", ".join(f"{column} = :{column}" for column in changes)
    return bool(
        await tx.execute(
            f"UPDATE dashboard_accounts SET {assignments} WHERE account_id = :account_id",
            {"account_id": account_id, **changes},
        )
    )


async def learn_timezone(tx: Tx, account_id: str, timezone: str) -> bool:
    """False if the account has a time zone already."""
    return bool(
        await tx.execute(
            "UPDATE dashboard_accounts SET timezone = :timezone"
            " WHERE account_id = :account_id AND timezone IS NULL",
            {"account_id": account_id, "timezone": timezone},
        )
    )


def account_of(row: Row) -> Account:
    """The account of a row with `COLUMNS`."""
    return Account(
        account_id=row["account_id"],
        email=row["email"],
        name=row["name"],
        status=row["status"],
        is_operator=bool(row["is_operator"]),
        lang=row["lang"],
        timezone=row["timezone"],
        created_at_ms=row["created_at_ms"],
        signed_in_at_ms=row["signed_in_at_ms"],
        has_password=bool(row["has_password"]),
        has_totp=bool(row["has_totp"]),
    )
