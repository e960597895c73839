"""The SQL of sessions and static links."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_auth.codes import IssuedCode
from msgsvc_auth.models import CodeKind, NewSession, Session, StaticLink
from msgsvc_core.channels import Identity
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import key_params, key_table, limited_delete

_SESSION = (
    "project_id, session_id, status, state, callback_url, channel, lang, created_at_ms,"
    " expires_at_ms, client_ip, client_agent, match_number, subscriber_id, nonce, code_hash,"
    " confirmed_at_ms, code_expires_at_ms, source, source_id, request_id, requester_name, requester_url,"
    " on_platform, must_prove, proves"
)
_SESSION_IN_JOIN = ", ".join(f"s.{column}" for column in _SESSION.split(", "))
_KEY = ("project_id", "session_id")
_CODE = ("project_id", "code_hash")
_OF_KIND: Mapping[CodeKind, str] = {
    "site": "source IS NULL",
    "plugin": "request_id IS NOT NULL",
}
_LINK = "project_id, link_id, slug, name, callback_url, number_matching, must_prove, created_at_ms"


async def insert_session(tx: Tx, new: NewSession, token_digest: str) -> None:
    session = new.session
    await tx.insert(
        "auth_sessions",
        {
            "project_id": session.project_id,
            "session_id": session.session_id,
            "token_digest": token_digest,
            "status": session.stored_status,
            "state": session.state,
            "callback_url": session.callback_url,
            "channel": session.channel,
            "lang": session.lang,
            "created_at_ms": session.created_at_ms,
            "expires_at_ms": session.expires_at_ms,
            "client_ip": session.client_ip,
            "client_agent": session.client_agent,
            "match_number": session.match_number,
            "subscriber_id": session.subscriber_id,
            "source": session.source,
            "source_id": session.source_id,
            "request_id": session.request_id,
            "requester_name": session.requester_name,
            "requester_url": session.requester_url,
            "browser_digest": new.browser_digest,
            "must_prove": " ".join(session.must_prove),
        },
    )


async def find_sessions(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Session]:
    """Existing sessions, by (project_id, session_id). `keys` is not empty."""
    rows = await tx.fetch_all(
        f"SELECT {_SESSION_IN_JOIN} FROM {key_table(_KEY, tx.dialect)}"
        " CROSS JOIN auth_sessions s"
        " WHERE s.project_id = keys.project_id AND s.session_id = keys.session_id",
        key_params(keys, tx.dialect),
    )
    sessions = map(_as_session, rows)
    return {(session.project_id, session.session_id): session for session in sessions}


async def list_sessions(
    tx: Tx, project_id: str, after: tuple[int, str] | None, limit: int
) -> list[Session]:
    """Newest first, from before that time and id."""
    at_ms, session_id = after or (None, None)
    older = "" if after is None else " AND (created_at_ms, session_id) < (:at_ms, :session_id)"
    rows = await tx.fetch_all(
        f"SELECT {_SESSION} FROM auth_sessions WHERE project_id = :project_id{older}"
        " ORDER BY created_at_ms DESC, session_id DESC LIMIT :most",
        {
            "project_id": project_id,
            "most": limit,
            **({} if after is None else {"at_ms": at_ms, "session_id": session_id}),
        },
    )
    return [_as_session(row) for row in rows]


async def find_decided(
    tx: Tx, keys: Sequence[tuple[str, str]], *, now_ms: int
) -> list[tuple[str, str]]:
    """Sessions that no longer wait for an answer, or do not exist. `keys` is not empty."""
    rows = await tx.fetch_all(
        f"SELECT keys.project_id, keys.session_id FROM {key_table(_KEY, tx.dialect)}"
        " LEFT JOIN auth_sessions s"
        " ON s.project_id = keys.project_id AND s.session_id = keys.session_id"
        " WHERE s.status IS NULL OR s.status <> 'pending' OR s.expires_at_ms <= :now_ms",
        {**key_params(keys, tx.dialect), "now_ms": now_ms},
    )
    return [(row["project_id"], row["session_id"]) for row in rows]


async def find_session_by_token(tx: Tx, token_digest: str) -> Session | None:
    """In any project: a start link and a button have only the token."""
    row = await tx.fetch_one(
        f"SELECT {_SESSION} FROM auth_sessions WHERE token_digest = :token_digest",
        {"token_digest": token_digest},
    )
    return _session(row)


async def confirm(
    tx: Tx,
    session: Session,
    code: IssuedCode,
    *,
    now_ms: int,
    code_expires_at_ms: int,
    proves: Identity,
    on_platform: bool = False,
) -> Session | None:
    """Confirms a session and sets its code; None if it is not pending any more. Of concurrent calls, one
    succeeds."""
    return await _change_pending(
        tx,
        session,
        "status = 'confirmed', nonce = :nonce, code_hash = :code_hash,"
        " confirmed_at_ms = :now_ms, code_expires_at_ms = :code_expires_at_ms,"
        " on_platform = :on_platform, proves = :proves",
        {
            "nonce": code.nonce,
            "code_hash": code.hash,
            "now_ms": now_ms,
            "code_expires_at_ms": code_expires_at_ms,
            "on_platform": on_platform,
            "proves": proves,
        },
    )


async def require_number(tx: Tx, session: Session, number: int, *, now_ms: int) -> Session | None:
    """Sets the number of a session that has none; None if it is not pending any more."""
    return await _change_pending(
        tx,
        session,
        "match_number = COALESCE(match_number, :number)",
        {"number": number, "now_ms": now_ms},
    )


async def deny(tx: Tx, session: Session, *, now_ms: int) -> Session | None:
    """Denies a session; None if it is not pending any more."""
    return await _change_pending(tx, session, "status = 'denied'", {"now_ms": now_ms})


async def set_subscriber(tx: Tx, session: Session, subscriber_id: str) -> None:
    await tx.execute(
        "UPDATE auth_sessions SET subscriber_id = :subscriber_id"
        " WHERE project_id = :project_id AND session_id = :session_id",
        {
            "project_id": session.project_id,
            "session_id": session.session_id,
            "subscriber_id": subscriber_id,
        },
    )


async def consume(
    tx: Tx, codes: Sequence[tuple[str, str]], kind: CodeKind, *, now_ms: int
) -> dict[tuple[str, str], Session]:
    """Consumes codes of that kind; returns the sessions of valid ones by (project_id, code_hash).

    Of concurrent calls with the same code one gets its session. `codes` is not empty.
    """
    rows = await tx.fetch_all(
        f"UPDATE auth_sessions SET status = 'consumed' WHERE {_of_codes(tx, kind)}"
        f" AND status = 'confirmed' AND code_expires_at_ms > :now_ms RETURNING {_SESSION}",
        {**key_params(codes, tx.dialect), "now_ms": now_ms},
    )
    return _by_code(rows)


async def find_sessions_by_code(
    tx: Tx, codes: Sequence[tuple[str, str]], kind: CodeKind
) -> dict[tuple[str, str], Session]:
    """Existing sessions of that kind, by (project_id, code_hash). `codes` is not empty."""
    rows = await tx.fetch_all(
        f"SELECT {_SESSION} FROM auth_sessions WHERE {_of_codes(tx, kind)}",
        key_params(codes, tx.dialect),
    )
    return _by_code(rows)


async def take(tx: Tx, project_id: str, session_id: str, *, now_ms: int) -> Session | None:
    """Consumes a plugin's question that was answered by Yes; None for any other session. Of concurrent calls,
    one succeeds."""
    row = await tx.fetch_one(
        "UPDATE auth_sessions SET status = 'consumed'"
        " WHERE project_id = :project_id AND session_id = :session_id"
        " AND source IS NOT NULL AND request_id IS NULL"
        f" AND status = 'confirmed' AND code_expires_at_ms > :now_ms RETURNING {_SESSION}",
        {"project_id": project_id, "session_id": session_id, "now_ms": now_ms},
    )
    return _session(row)


async def list_pending_question_ends(
    tx: Tx, project_id: str, subscriber_id: str, *, now_ms: int
) -> list[int]:
    """When the plugins' questions run out that wait for this subscriber's answer, soonest first."""
    rows = await tx.fetch_all(
        "SELECT expires_at_ms FROM auth_sessions"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
        " AND source IS NOT NULL AND request_id IS NULL"
        " AND status = 'pending' AND expires_at_ms > :now_ms ORDER BY expires_at_ms",
        {"project_id": project_id, "subscriber_id": subscriber_id, "now_ms": now_ms},
    )
    return [row["expires_at_ms"] for row in rows]


async def purge_sessions(tx: Tx, opened_before_ms: int, limit: int) -> int:
    """Deletes some old sessions of all projects; returns how many."""
    old = limited_delete("auth_sessions", "created_at_ms < :opened_before_ms", tx.dialect)
    params = {"opened_before_ms": opened_before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM auth_sessions WHERE {old}", params)


async def insert_link(tx: Tx, link: StaticLink) -> bool:
    """False if the slug is in use, in any project."""
    return bool(
        await tx.execute(
            f"INSERT INTO auth_links ({_LINK}) VALUES (:project_id, :link_id, :slug, :name,"
            " :callback_url, :number_matching, :must_prove, :created_at_ms) ON CONFLICT (slug) DO NOTHING",
            {
                "project_id": link.project_id,
                "link_id": link.link_id,
                "slug": link.slug,
                "name": link.name,
                "callback_url": link.callback_url,
                "number_matching": link.number_matching,
                "must_prove": " ".join(link.must_prove),
                "created_at_ms": link.created_at_ms,
            },
        )
    )


async def find_link(tx: Tx, project_id: str, slug: str) -> StaticLink | None:
    row = await tx.fetch_one(
        f"SELECT {_LINK} FROM auth_links WHERE project_id = :project_id AND slug = :slug",
        {"project_id": project_id, "slug": slug},
    )
    return _link(row)


async def find_link_of_any_project(tx: Tx, slug: str) -> StaticLink | None:
    """For a start payload, which has only the slug."""
    row = await tx.fetch_one(f"SELECT {_LINK} FROM auth_links WHERE slug = :slug", {"slug": slug})
    return _link(row)


async def list_links(tx: Tx, project_id: str, after: str | None, limit: int) -> list[StaticLink]:
    """Newest first; `after` is the last `link_id` of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_LINK} FROM auth_links WHERE project_id = :project_id"
        + (" AND link_id < :after" if after is not None else "")
        + " ORDER BY link_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_as_link(row) for row in rows]


async def update_link(
    tx: Tx,
    project_id: str,
    slug: str,
    *,
    name: str | None,
    callback_url: str | None,
    number_matching: bool | None,
    must_prove: Sequence[Identity] | None,
) -> StaticLink | None:
    """Changes what is not None; returns the link, or None if there is no such link."""
    row = await tx.fetch_one(
        "UPDATE auth_links SET name = COALESCE(:name, name),"
        " callback_url = COALESCE(:callback_url, callback_url),"
        " number_matching = COALESCE(:number_matching, number_matching),"
        " must_prove = COALESCE(:must_prove, must_prove)"
        f" WHERE project_id = :project_id AND slug = :slug RETURNING {_LINK}",
        {
            "project_id": project_id,
            "slug": slug,
            "name": name,
            "callback_url": callback_url,
            "number_matching": number_matching,
            "must_prove": None if must_prove is None else " ".join(must_prove),
        },
    )
    return _link(row)


async def delete_link(tx: Tx, project_id: str, slug: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM auth_links WHERE project_id = :project_id AND slug = :slug",
            {"project_id": project_id, "slug": slug},
        )
    )


async def has_callback(tx: Tx, project_id: str, callback_url: str) -> bool:
    """Whether one of the project's links has this callback."""
    row = await tx.fetch_one(
        "SELECT 1 AS found FROM auth_links"
        " WHERE project_id = :project_id AND callback_url = :callback_url LIMIT 1",
        {"project_id": project_id, "callback_url": callback_url},
    )
    return row is not None


async def _change_pending(
    tx: Tx, session: Session, change: str, params: Mapping[str, Any]
) -> Session | None:
    row = await tx.fetch_one(
        f"UPDATE auth_sessions SET {change}"
        " WHERE project_id = :project_id AND session_id = :session_id"
        f" AND status = 'pending' AND expires_at_ms > :now_ms RETURNING {_SESSION}",
        {"project_id": session.project_id, "session_id": session.session_id, **params},
    )
    return _session(row)


def _of_codes(tx: Tx, kind: CodeKind) -> str:
    table = key_table(_CODE, tx.dialect)
    keys = f"SELECT keys.project_id, keys.code_hash FROM {table}"
    return f"(project_id, code_hash) IN ({keys}) AND {_OF_KIND[kind]}"


def _by_code(rows: Sequence[Row]) -> dict[tuple[str, str], Session]:
    return {(row["project_id"], row["code_hash"]): _as_session(row) for row in rows}


def _session(row: Row | None) -> Session | None:
    if row is None:
        return None
    return _as_session(row)


def _as_session(row: Row) -> Session:
    return Session(
        project_id=row["project_id"],
        session_id=row["session_id"],
        stored_status=row["status"],
        state=row["state"],
        callback_url=row["callback_url"],
        channel=row["channel"],
        lang=row["lang"],
        created_at_ms=row["created_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        client_ip=row["client_ip"],
        client_agent=row["client_agent"],
        match_number=row["match_number"],
        subscriber_id=row["subscriber_id"],
        nonce=row["nonce"],
        code_hash=row["code_hash"],
        confirmed_at_ms=row["confirmed_at_ms"],
        code_expires_at_ms=row["code_expires_at_ms"],
        source=row["source"],
        source_id=row["source_id"],
        request_id=row["request_id"],
        requester_name=row["requester_name"],
        requester_url=row["requester_url"],
        # SQLite keeps 0 and 1.
        on_platform=bool(row["on_platform"]),
        must_prove=tuple(row["must_prove"].split()),
        proves=row["proves"],
    )


def _link(row: Row | None) -> StaticLink | None:
    if row is None:
        return None
    return _as_link(row)


def _as_link(row: Row) -> StaticLink:
    fields = {column: row[column] for column in _LINK.split(", ")}
    # SQLite keeps 0 and 1.
    fields["number_matching"] = bool(fields["number_matching"])
    fields["must_prove"] = tuple(fields["must_prove"].split())
    return StaticLink(**fields)
