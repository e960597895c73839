"""The SQL of browsers' sessions."""

from msgsvc_core.db import Row, Tx
from msgsvc_oidc.protocol.authorize import Session


async def insert_session(tx: Tx, project_id: str, session: Session, expires_at_ms: int) -> None:
    await tx.insert(
        "oidc_sessions",
        {
            "project_id": project_id,
            "session_id": session.session_id,
            "subscriber_id": session.subscriber_id,
            "auth_time_ms": session.auth_time_ms,
            "method": session.method,
            "proves": session.proves,
            "expires_at_ms": expires_at_ms,
        },
    )


async def find_session(tx: Tx, project_id: str, session_id: str, *, now_ms: int) -> Session | None:
    """A session that has not ended."""
    row = await tx.fetch_one(
        "SELECT session_id, subscriber_id, auth_time_ms, method, proves FROM oidc_sessions"
        " WHERE project_id = :project_id AND session_id = :session_id"
        " AND ended_at_ms IS NULL AND expires_at_ms > :now_ms",
        {"project_id": project_id, "session_id": session_id, "now_ms": now_ms},
    )
    return None if row is None else _session(row)


async def renew_session(
    tx: Tx, project_id: str, session: Session, expires_at_ms: int, *, now_ms: int
) -> bool:
    """Writes that the same person signed in again; False for a session of another one, or that has ended."""
    return bool(
        await tx.execute(
            "UPDATE oidc_sessions SET auth_time_ms = :auth_time_ms, method = :method,"
            " proves = :proves, expires_at_ms = :expires_at_ms WHERE project_id = :project_id"
            " AND session_id = :session_id AND subscriber_id = :subscriber_id"
            " AND ended_at_ms IS NULL AND expires_at_ms > :now_ms",
            {
                "project_id": project_id,
                "session_id": session.session_id,
                "subscriber_id": session.subscriber_id,
                "auth_time_ms": session.auth_time_ms,
                "method": session.method,
                "proves": session.proves,
                "expires_at_ms": expires_at_ms,
                "now_ms": now_ms,
            },
        )
    )


async def end_session(tx: Tx, project_id: str, session_id: str, *, now_ms: int) -> Session | None:
    """The session that ended; None if it had ended before. Of concurrent calls one gets it."""
    row = await tx.fetch_one(
        "UPDATE oidc_sessions SET ended_at_ms = :now_ms"
        " WHERE project_id = :project_id AND session_id = :session_id AND ended_at_ms IS NULL"
        " RETURNING session_id, subscriber_id, auth_time_ms, method, proves",
        {"project_id": project_id, "session_id": session_id, "now_ms": now_ms},
    )
    return None if row is None else _session(row)


def _session(row: Row) -> Session:
    return Session(
        session_id=row["session_id"],
        subscriber_id=row["subscriber_id"],
        auth_time_ms=row["auth_time_ms"],
        method=row["method"],
        proves=row["proves"],
    )
