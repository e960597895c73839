"""The SQL of browser sessions."""

from msgsvc_core.db import Row, Tx
from msgsvc_dashboard.accounts.models import AccountSession
from msgsvc_dashboard.accounts.store import COLUMNS, account_of

_SESSION = (
    "s.session_id, s.created_at_ms AS begun_at_ms, s.seen_at_ms, s.expires_at_ms, s.ip,"
    " s.user_agent"
)


async def insert(tx: Tx, session: AccountSession, digest: str) -> None:
    await tx.insert(
        "dashboard_account_sessions",
        {
            "digest": digest,
            "account_id": session.account.account_id,
            "session_id": session.session_id,
            "created_at_ms": session.created_at_ms,
            "seen_at_ms": session.seen_at_ms,
            "expires_at_ms": session.expires_at_ms,
            "ip": session.ip,
            "user_agent": session.user_agent,
        },
    )


async def find(tx: Tx, digest: str, now_ms: int) -> AccountSession | None:
    """The session of an active account, unless it has ended."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS}, {_SESSION} FROM dashboard_account_sessions s"
        " JOIN dashboard_accounts a ON a.account_id = s.account_id"
        " WHERE s.digest = :digest AND s.expires_at_ms > :now_ms AND a.status = 'active'",
        {"digest": digest, "now_ms": now_ms},
    )
    return None if row is None else _session(row)


async def list_of(tx: Tx, account_id: str, now_ms: int) -> list[AccountSession]:
    """Active sessions, newest first."""
    rows = await tx.fetch_all(
        f"SELECT {COLUMNS}, {_SESSION} FROM dashboard_account_sessions s"
        " JOIN dashboard_accounts a ON a.account_id = s.account_id"
        " WHERE s.account_id = :account_id AND s.expires_at_ms > :now_ms"
        " ORDER BY s.session_id DESC",
        {"account_id": account_id, "now_ms": now_ms},
    )
    return [_session(row) for row in rows]


async def saw(tx: Tx, session_id: str, account_id: str, now_ms: int, before_ms: int) -> None:
    """Records a use of the session, unless one was recorded after `before_ms`."""
    await tx.execute(
        "UPDATE dashboard_account_sessions SET seen_at_ms = :now_ms WHERE account_id = :account_id"
        " AND session_id = :session_id AND seen_at_ms <= :before_ms",
        {
            "session_id": session_id,
            "account_id": account_id,
            "now_ms": now_ms,
            "before_ms": before_ms,
        },
    )


async def end(tx: Tx, account_id: str, session_id: str) -> bool:
    """False if there is none."""
    return bool(
        await tx.execute(
            "DELETE FROM dashboard_account_sessions"
            " WHERE account_id = :account_id AND session_id = :session_id",
            {"account_id": account_id, "session_id": session_id},
        )
    )


async def end_all(tx: Tx, account_id: str, but: str = "") -> int:
    """Ends all sessions except `but`; returns how many."""
    return await tx.execute(
        "DELETE FROM dashboard_account_sessions WHERE account_id = :account_id AND session_id <> :but",
        {"account_id": account_id, "but": but},
    )


def _session(row: Row) -> AccountSession:
    return AccountSession(
        session_id=row["session_id"],
        account=account_of(row),
        created_at_ms=row["begun_at_ms"],
        seen_at_ms=row["seen_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        ip=row["ip"],
        user_agent=row["user_agent"],
    )
