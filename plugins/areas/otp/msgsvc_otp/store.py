"""The SQL of one-time codes."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, in_list, limited_delete
from msgsvc_core.kernel.values import value_object
from msgsvc_otp.models import OneTimeCode

_CODE = (
    "project_id, otp_id, status, purpose, subscriber_id, channel, lang, length, ttl_minutes,"
    " max_attempts, attempts, created_at_ms, issued_at_ms, expires_at_ms, code_hash, sent_at_ms, reason"
)


@value_object
class Issued:
    """Time and purpose of a subscriber's code."""

    purpose: str
    at_ms: int


@value_object
class Guessed:
    """Wrong attempts of a code, and the time of the last one."""

    wrong: int
    at_ms: int


async def insert(tx: Tx, code: OneTimeCode, token_digest: str | None = None) -> None:
    await tx.insert(
        "otp_codes",
        {
            "project_id": code.project_id,
            "otp_id": code.otp_id,
            "status": code.stored_status,
            "purpose": code.purpose,
            "subscriber_id": code.subscriber_id,
            "token_digest": token_digest,
            "channel": code.channel,
            "lang": code.lang,
            "length": code.length,
            "ttl_minutes": code.ttl_minutes,
            "max_attempts": code.max_attempts,
            "attempts": code.attempts,
            "created_at_ms": code.created_at_ms,
            "expires_at_ms": code.expires_at_ms,
        },
    )


async def find(tx: Tx, project_id: str, otp_id: str) -> OneTimeCode | None:
    row = await tx.fetch_one(
        f"SELECT {_CODE} FROM otp_codes WHERE project_id = :project_id AND otp_id = :otp_id",
        {"project_id": project_id, "otp_id": otp_id},
    )
    return _code(row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[OneTimeCode]:
    """Newest first, from before `after`."""
    older = "" if after is None else " AND otp_id < :after"
    rows = await tx.fetch_all(
        f"SELECT {_CODE} FROM otp_codes WHERE project_id = :project_id{older}"
        " ORDER BY otp_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_found(row) for row in rows]


async def find_last(
    tx: Tx, project_id: str, subscriber_ids: Sequence[str], purpose: str
) -> OneTimeCode | None:
    """The latest code of any of these for the purpose. `subscriber_ids` is not empty."""
    who, params = in_list("subscriber", subscriber_ids)
    row = await tx.fetch_one(
        f"SELECT {_CODE} FROM otp_codes WHERE project_id = :project_id AND subscriber_id IN {who}"
        " AND purpose = :purpose AND issued_at_ms IS NOT NULL"
        # Two may be of one millisecond; of one person, the active one is the later.
        " ORDER BY issued_at_ms DESC, CASE status WHEN 'active' THEN 0 ELSE 1 END LIMIT 1",
        {"project_id": project_id, "purpose": purpose, **params},
    )
    return _code(row)


async def lock_by_token(tx: Tx, token_digest: str) -> OneTimeCode | None:
    """Of any project: a start link contains only the token. A concurrent opening of the link waits until
    the transaction ends."""
    row = await tx.fetch_one(
        f"SELECT {_CODE} FROM otp_codes WHERE token_digest = :token_digest"
        + for_update(tx.dialect),
        {"token_digest": token_digest},
    )
    return _code(row)


async def list_issued(
    tx: Tx, project_id: str, subscriber_id: str, *, since_ms: int, limit: int
) -> list[Issued]:
    """The subscriber's codes after that time, newest first, up to `limit`."""
    rows = await tx.fetch_all(
        "SELECT purpose, issued_at_ms FROM otp_codes"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
        " AND issued_at_ms > :since_ms ORDER BY issued_at_ms DESC LIMIT :most",
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "since_ms": since_ms,
            "most": limit,
        },
    )
    return [Issued(row["purpose"], row["issued_at_ms"]) for row in rows]


async def supersede(
    tx: Tx, project_id: str, subscriber_id: str, purpose: str, *, now_ms: int
) -> None:
    """Ends the active code of the subscriber and purpose, if there is one."""
    await tx.execute(
        "UPDATE otp_codes SET code_hash = NULL,"
        " status = CASE WHEN expires_at_ms > :now_ms THEN 'superseded' ELSE 'expired' END"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
        " AND purpose = :purpose AND status = 'active'",
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "purpose": purpose,
            "now_ms": now_ms,
        },
    )


async def issue(
    tx: Tx,
    code: OneTimeCode,
    *,
    subscriber_id: str,
    code_hash: str,
    now_ms: int,
    expires_at_ms: int,
) -> OneTimeCode | None:
    """The request with its code, active from now on; None if it is not pending any more."""
    return await _change(
        tx,
        code,
        "status = 'active', subscriber_id = :subscriber_id, code_hash = :code_hash,"
        " issued_at_ms = :now_ms, expires_at_ms = :expires_at_ms",
        "status = 'waiting'",
        {
            "subscriber_id": subscriber_id,
            "code_hash": code_hash,
            "now_ms": now_ms,
            "expires_at_ms": expires_at_ms,
        },
    )


async def count_attempt(tx: Tx, code: OneTimeCode, *, now_ms: int) -> OneTimeCode | None:
    """The code with one more attempt; None if it allows no more."""
    return await _change(
        tx,
        code,
        "attempts = attempts + 1, last_attempt_at_ms = :now_ms",
        "status = 'active' AND attempts < max_attempts AND expires_at_ms > :now_ms",
        {"now_ms": now_ms},
    )


async def list_guessed(
    tx: Tx, project_id: str, subscriber_id: str, *, since_ms: int
) -> list[Guessed]:
    """The subscriber's codes with attempts after that time, the oldest last attempt first."""
    rows = await tx.fetch_all(
        "SELECT attempts - CASE status WHEN 'verified' THEN 1 ELSE 0 END AS wrong,"
        " last_attempt_at_ms FROM otp_codes"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
        " AND last_attempt_at_ms > :since_ms ORDER BY last_attempt_at_ms",
        {"project_id": project_id, "subscriber_id": subscriber_id, "since_ms": since_ms},
    )
    return [Guessed(row["wrong"], row["last_attempt_at_ms"]) for row in rows]


async def consume(tx: Tx, code: OneTimeCode) -> OneTimeCode | None:
    """Marks the code as verified; None if it is not active any more. Of concurrent calls, one succeeds."""
    return await _change(tx, code, "status = 'verified', code_hash = NULL", "status = 'active'", {})


async def exhaust(tx: Tx, code: OneTimeCode) -> OneTimeCode | None:
    """Ends the code after too many wrong attempts; None if it is not active any more, or allows another."""
    return await _change(
        tx,
        code,
        "status = 'max_attempts_reached', code_hash = NULL",
        "status = 'active' AND attempts >= max_attempts",
        {},
    )


async def mark_sent(tx: Tx, project_id: str, otp_id: str, *, now_ms: int) -> OneTimeCode | None:
    """The code; None if it was marked before, or does not exist."""
    row = await tx.fetch_one(
        "UPDATE otp_codes SET sent_at_ms = :now_ms WHERE project_id = :project_id"
        f" AND otp_id = :otp_id AND sent_at_ms IS NULL RETURNING {_CODE}",
        {"project_id": project_id, "otp_id": otp_id, "now_ms": now_ms},
    )
    return _code(row)


async def mark_failed(tx: Tx, project_id: str, otp_id: str, reason: str) -> None:
    await tx.execute(
        "UPDATE otp_codes SET reason = :reason WHERE project_id = :project_id"
        " AND otp_id = :otp_id AND sent_at_ms IS NULL",
        {"project_id": project_id, "otp_id": otp_id, "reason": reason},
    )


async def purge(tx: Tx, created_before_ms: int, limit: int) -> int:
    """Deletes some old codes of all projects; returns how many."""
    old = limited_delete("otp_codes", "created_at_ms < :created_before_ms", tx.dialect)
    params = {"created_before_ms": created_before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM otp_codes WHERE {old}", params)


async def _change(
    tx: Tx, code: OneTimeCode, change: str, condition: str, params: Mapping[str, Any]
) -> OneTimeCode | None:
    row = await tx.fetch_one(
        f"UPDATE otp_codes SET {change} WHERE project_id = :project_id AND otp_id = :otp_id"
        f" AND {condition} RETURNING {_CODE}",
        {"project_id": code.project_id, "otp_id": code.otp_id, **params},
    )
    return _code(row)


def _code(row: Row | None) -> OneTimeCode | None:
    return None if row is None else _found(row)


def _found(row: Row) -> OneTimeCode:
    return OneTimeCode(
        project_id=row["project_id"],
        otp_id=row["otp_id"],
        stored_status=row["status"],
        purpose=row["purpose"],
        subscriber_id=row["subscriber_id"],
        channel=row["channel"],
        lang=row["lang"],
        length=row["length"],
        ttl_minutes=row["ttl_minutes"],
        max_attempts=row["max_attempts"],
        attempts=row["attempts"],
        created_at_ms=row["created_at_ms"],
        issued_at_ms=row["issued_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        code_hash=row["code_hash"],
        sent_at_ms=row["sent_at_ms"],
        reason=row["reason"],
    )
