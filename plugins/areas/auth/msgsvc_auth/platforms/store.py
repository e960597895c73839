"""The SQL of visits to platforms' pages: at most one for each sign-in, the latest."""

from msgsvc_auth.platforms.models import Failure, PlatformVisit
from msgsvc_core.db import Row, Tx

_VISIT = (
    "project_id, session_id, visit_id, channel_key, state_digest, browser_digest, sealed, return_path,"
    " expires_at_ms, status, failure, sealed_code"
)


async def save(tx: Tx, visit: PlatformVisit) -> None:
    """Inserts a visit in place of the sign-in's earlier one, whose state is unknown from then on."""
    columns = _VISIT.split(", ")
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns[2:])
    await tx.execute(
        f"INSERT INTO auth_platform_visits ({_VISIT})"
        f" VALUES ({', '.join(f':{name}' for name in columns)})"
        f" ON CONFLICT (project_id, session_id) DO UPDATE SET {changed}",
        {name: getattr(visit, name) for name in columns},
    )


async def find(tx: Tx, project_id: str, session_id: str) -> PlatformVisit | None:
    """The latest visit of a sign-in."""
    row = await tx.fetch_one(
        f"SELECT {_VISIT} FROM auth_platform_visits"
        " WHERE project_id = :project_id AND session_id = :session_id",
        {"project_id": project_id, "session_id": session_id},
    )
    return None if row is None else _visit(row)


async def find_by_state(tx: Tx, state_digest: str, browser_digest: str) -> PlatformVisit | None:
    """In any project, for the address has nothing but the state; of this browser alone."""
    row = await tx.fetch_one(
        f"SELECT {_VISIT} FROM auth_platform_visits"
        " WHERE state_digest = :state_digest AND browser_digest = :browser_digest",
        {"state_digest": state_digest, "browser_digest": browser_digest},
    )
    return None if row is None else _visit(row)


async def use_state(
    tx: Tx,
    state_digest: str,
    browser_digest: str,
    channel_key: str,
    *,
    sealed_code: str | None,
    failure: Failure | None,
    now_ms: int,
) -> PlatformVisit | None:
    """Records that the browser is back; None for a state that is unknown, used, expired, or of another
    browser or channel. Of concurrent calls one gets the visit."""
    row = await tx.fetch_one(
        "UPDATE auth_platform_visits SET status = :status, sealed_code = :sealed_code,"
        " failure = :failure WHERE state_digest = :state_digest AND browser_digest = :browser_digest"
        " AND channel_key = :channel_key AND status = 'away' AND expires_at_ms > :now_ms"
        f" RETURNING {_VISIT}",
        {
            "status": "checking" if failure is None else "failed",
            "sealed_code": sealed_code,
            "failure": failure,
            "state_digest": state_digest,
            "browser_digest": browser_digest,
            "channel_key": channel_key,
            "now_ms": now_ms,
        },
    )
    return None if row is None else _visit(row)


async def finish(tx: Tx, visit: PlatformVisit) -> bool:
    """Deletes a visit whose code was exchanged; False if another took its place."""
    return bool(
        await tx.execute(f"DELETE FROM auth_platform_visits WHERE {_CHECKED}", _key_of(visit))
    )


async def fail(tx: Tx, visit: PlatformVisit, failure: Failure) -> None:
    """Records why a visit came to nothing, unless another took its place."""
    await tx.execute(
        "UPDATE auth_platform_visits SET status = 'failed', failure = :failure, sealed_code = NULL"
        f" WHERE {_CHECKED}",
        {**_key_of(visit), "failure": failure},
    )


_CHECKED = (
    "project_id = :project_id AND session_id = :session_id AND visit_id = :visit_id"
    " AND status = 'checking'"
)


def _key_of(visit: PlatformVisit) -> dict[str, str]:
    return {
        "project_id": visit.project_id,
        "session_id": visit.session_id,
        "visit_id": visit.visit_id,
    }


def _visit(row: Row) -> PlatformVisit:
    return PlatformVisit(**{column: row[column] for column in _VISIT.split(", ")})
