"""The SQL of a project's people: which accounts they have, who owns it, how many they are."""

from msgsvc_core.accounts.models import Account
from msgsvc_core.accounts.store import COLUMNS, account_of
from msgsvc_core.db import Tx


async def accounts_of(tx: Tx, project_id: str, member_id: str | None = None) -> dict[str, Account]:
    """The account of each active member that has one, or of one of them."""
    condition, params = "", {"project_id": project_id}
    if member_id is not None:
        condition, params["member_id"] = " AND m.member_id = :member_id", member_id
    rows = await tx.fetch_all(
        f"SELECT m.member_id, {COLUMNS} FROM core_members m"
        " JOIN core_accounts a ON a.account_id = m.account_id"
        f" WHERE m.project_id = :project_id AND m.status = 'active'{condition}",
        params,
    )
    return {row["member_id"]: account_of(row) for row in rows}


async def has_other_owner(tx: Tx, project_id: str, member_id: str) -> bool:
    """Whether somebody could still do all, without that member: the account that the project belongs
    to, unless it is that member's, or another owner who has joined."""
    return bool(
        await tx.fetch_val(
            "SELECT 1 AS found FROM core_projects p WHERE p.project_id = :project_id"
            " AND (p.account_id IS NOT NULL OR EXISTS (SELECT 1 FROM core_members m"
            " WHERE m.project_id = p.project_id AND m.member_id <> :member_id"
            " AND m.status = 'active' AND m.role = 'owner' AND m.account_id IS NOT NULL))",
            {"project_id": project_id, "member_id": member_id},
        )
    )


async def count_others(tx: Tx, project_id: str, owner: Account) -> int:
    """Active members who are not the account that the project belongs to.

    Who has its e-mail is it, until another account has joined in their place.
    """
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM core_members WHERE project_id = :project_id"
            " AND status = 'active' AND (account_id <> :account_id"
            " OR (account_id IS NULL AND email <> :email))",
            {
                "project_id": project_id,
                "email": owner.email,
                "account_id": owner.account_id,
            },
        )
    )
