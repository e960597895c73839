"""The SQL of one-time links."""

from msgsvc_core.db import Tx
from msgsvc_dashboard.accounts.models import OneTimeLink


async def insert(tx: Tx, link: OneTimeLink, digest: str) -> None:
    await tx.insert(
        "dashboard_account_links",
        {
            "digest": digest,
            "purpose": link.purpose,
            "account_id": link.account_id,
            "project_id": link.project_id,
            "member_id": link.member_id,
            "expires_at_ms": link.expires_at_ms,
        },
    )


async def find(tx: Tx, digest: str, now_ms: int) -> OneTimeLink | None:
    """An unused link that has not expired."""
    row = await tx.fetch_one(
        "SELECT purpose, account_id, project_id, member_id, expires_at_ms FROM dashboard_account_links"
        " WHERE digest = :digest AND used_at_ms IS NULL AND expires_at_ms > :now_ms",
        {"digest": digest, "now_ms": now_ms},
    )
    return None if row is None else OneTimeLink(*row)


async def use(tx: Tx, digest: str, now_ms: int) -> bool:
    """False if it was used concurrently."""
    return bool(
        await tx.execute(
            "UPDATE dashboard_account_links SET used_at_ms = :now_ms"
            " WHERE digest = :digest AND used_at_ms IS NULL AND expires_at_ms > :now_ms",
            {"digest": digest, "now_ms": now_ms},
        )
    )


async def end_of_member(tx: Tx, project_id: str, member_id: str) -> None:
    """Ends the unused invitations of a member."""
    await tx.execute(
        "DELETE FROM dashboard_account_links WHERE project_id = :project_id AND member_id = :member_id",
        {"project_id": project_id, "member_id": member_id},
    )


async def end_of_account(tx: Tx, account_id: str) -> None:
    """Ends an account's links for signing in and setting a password."""
    await tx.execute(
        "DELETE FROM dashboard_account_links WHERE account_id = :account_id",
        {"account_id": account_id},
    )


async def list_invited(tx: Tx, project_id: str, now_ms: int) -> dict[str, int]:
    """When the open invitation of each invited member expires."""
    rows = await tx.fetch_all(
        "SELECT member_id, MAX(expires_at_ms) AS ends_at_ms FROM dashboard_account_links"
        " WHERE project_id = :project_id AND used_at_ms IS NULL AND expires_at_ms > :now_ms"
        " AND member_id IS NOT NULL GROUP BY member_id",
        {"project_id": project_id, "now_ms": now_ms},
    )
    return {row["member_id"]: row["ends_at_ms"] for row in rows}
