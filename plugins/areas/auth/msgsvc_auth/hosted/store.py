"""The SQL of sign-ins started on the hosted page."""

from msgsvc_core.db import Tx


async def find_session_id(
    tx: Tx, project_id: str, browser_digest: str, token_digest: str
) -> str | None:
    """The session of that browser; its token must match the one in the browser's cookie."""
    found: str | None = await tx.fetch_val(
        "SELECT session_id FROM auth_sessions WHERE project_id = :project_id"
        " AND browser_digest = :browser_digest AND token_digest = :token_digest",
        {
            "project_id": project_id,
            "browser_digest": browser_digest,
            "token_digest": token_digest,
        },
    )
    return found


async def set_lang(tx: Tx, project_id: str, session_id: str, lang: str) -> None:
    await tx.execute(
        "UPDATE auth_sessions SET lang = :lang"
        " WHERE project_id = :project_id AND session_id = :session_id",
        {"project_id": project_id, "session_id": session_id, "lang": lang},
    )
