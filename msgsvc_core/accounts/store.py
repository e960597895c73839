"""The SQL of accounts, and of what is theirs."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.accounts.models import Account
from msgsvc_core.db import Row, Tx

#: Of `core_accounts a`, for `account_of`.
COLUMNS = (
    "a.account_id, a.email, a.name, a.status, a.is_operator, a.lang, a.timezone, a.created_at_ms,"
    " a.signed_in_at_ms, a.password_hash IS NOT NULL AS has_password,"
    " a.totp_confirmed_at_ms IS NOT NULL AS has_totp"
)


async def insert(tx: Tx, account: Account) -> bool:
    """False if there is an account of that e-mail."""
    return bool(
        await tx.execute(
            "INSERT INTO core_accounts (account_id, email, name, status, is_operator, lang, timezone,"
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
        f"SELECT {COLUMNS} FROM core_accounts a WHERE a.account_id = :account_id",
        {"account_id": account_id},
    )
    return None if row is None else account_of(row)


async def find_role(tx: Tx, account_id: str, project_id: str) -> str | None:
    """Owner of their own projects, else what they are as a member; None for everybody else's."""
    role: str | None = await tx.fetch_val(
        "SELECT CASE WHEN p.account_id = :account_id THEN 'owner' ELSE m.role END"
        " FROM core_projects p LEFT JOIN core_members m ON m.project_id = p.project_id"
        " AND m.account_id = :account_id AND m.status = 'active'"
        " WHERE p.project_id = :project_id",
        {"account_id": account_id, "project_id": project_id},
    )
    return role


async def list_projects(tx: Tx, account_id: str) -> list[tuple[str, str, str]]:
    """(project_id, name, role) of an account's own projects and of those they are a member of."""
    rows = await tx.fetch_all(
        "SELECT project_id, name, 'owner' AS role FROM core_projects"
        " WHERE account_id = :account_id UNION ALL"
        " SELECT p.project_id, p.name, m.role FROM core_members m"
        " JOIN core_projects p ON p.project_id = m.project_id"
        " WHERE m.account_id = :account_id AND m.status = 'active'"
        " AND (p.account_id IS NULL OR p.account_id <> :account_id) ORDER BY 1",
        {"account_id": account_id},
    )
    return [(row["project_id"], row["name"], row["role"]) for row in rows]


async def set_owner(tx: Tx, project_id: str, account_id: str | None) -> bool:
    """False if there is no such project."""
    return bool(
        await tx.execute(
            "UPDATE core_projects SET account_id = :account_id WHERE project_id = :project_id",
            {"project_id": project_id, "account_id": account_id},
        )
    )


async def set_member(tx: Tx, project_id: str, member_id: str, account_id: str) -> bool:
    """False if the project has no such active member."""
    return bool(
        await tx.execute(
            "UPDATE core_members SET account_id = :account_id WHERE project_id = :project_id"
            " AND member_id = :member_id AND status = 'active'",
            {"project_id": project_id, "member_id": member_id, "account_id": account_id},
        )
    )


async def find_owner(tx: Tx, project_id: str) -> str | None:
    """The account that owns a project; None where the operator alone does."""
    owner: str | None = await tx.fetch_val(
        "SELECT account_id FROM core_projects WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return owner


async def find_by_email(tx: Tx, email: str) -> Account | None:
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM core_accounts a WHERE a.email = :email", {"email": email}
    )
    return None if row is None else account_of(row)


async def list_page(tx: Tx, after: str | None, most: int) -> list[Account]:
    """The newest first, from before the account `after`."""
    condition, params = "", dict[str, Any](most=most)
    if after is not None:
        condition, params["after"] = " WHERE a.account_id < :after", after
    rows = await tx.fetch_all(
        f"SELECT {COLUMNS} FROM core_accounts a{condition} ORDER BY a.account_id DESC LIMIT :most",
        params,
    )
    return [account_of(row) for row in rows]


async def update(tx: Tx, account_id: str, changes: Mapping[str, Any]) -> bool:
    """False if there is no such account. The names of columns are ours."""
    assignments = ", ".join(f"{column} = :{column}" for column in changes)
    return bool(
        await tx.execute(
            f"UPDATE core_accounts SET {assignments} WHERE account_id = :account_id",
            {"account_id": account_id, **changes},
        )
    )


async def count_owned(tx: Tx, account_id: str) -> int:
    """Projects that belong to the account."""
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM core_projects WHERE account_id = :account_id",
            {"account_id": account_id},
        )
    )


async def list_owners(tx: Tx, after: str | None, most: int) -> list[Row]:
    """`project_id`, `name`, `status`, `created_at_ms`, and `email` of the owner; the newest first."""
    condition, params = "", dict[str, Any](most=most)
    if after is not None:
        condition, params["after"] = " WHERE p.project_id < :after", after
    return await tx.fetch_all(
        "SELECT p.project_id, p.name, p.status, p.created_at_ms, a.email FROM core_projects p"
        f" LEFT JOIN core_accounts a ON a.account_id = p.account_id{condition}"
        " ORDER BY p.project_id DESC LIMIT :most",
        params,
    )


def account_of(row: Row) -> Account:
    """Of a row with `COLUMNS`."""
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
