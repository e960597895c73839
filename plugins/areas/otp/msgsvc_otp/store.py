"""The SQL of one-time codes."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, in_list, limited_delete
from msgsvc_core.kernel.values import value_object
from msgsvc_otp.models import OneTimeCode

_CODE = (
    "project_id, otp_id, status, purpose, subscriber_id, channel, lang, length, ttl_minutes,"
    " max_attempts, attempts, created_at_ms, issued_at_ms, expires_at_ms, code_hash, sent_at_ms, reason,"
    " route_id, steps, step, sealed"
)


def _of_people(people: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Condition: the codes of these subscribers, those of routes included, and its parameters. `people` is
    not empty."""
    who, params = in_list("subscriber", people)
    of = f"WHERE project_id = :project_id AND subscriber_id IN {who}"
    codes = f"SELECT otp_id FROM otp_codes {of} UNION SELECT otp_id FROM otp_recipients {of}"
    return f"project_id = :project_id AND otp_id IN ({codes})", params


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
            "route_id": code.route_id,
            "steps": code.steps,
            "step": code.step,
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
    tx: Tx, project_id: str, people: Sequence[str], purpose: str
) -> OneTimeCode | None:
    """The latest code of any of these subscribers for the purpose. `people` is not empty."""
    of_people, params = _of_people(people)
    row = await tx.fetch_one(
        f"SELECT {_CODE} FROM otp_codes WHERE {of_people}"
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
    tx: Tx, project_id: str, people: Sequence[str], *, since_ms: int, limit: int
) -> list[Issued]:
    """The subscribers' codes after that time, newest first, up to `limit`. `people` is not empty."""
    of_people, params = _of_people(people)
    rows = await tx.fetch_all(
        f"SELECT purpose, issued_at_ms FROM otp_codes WHERE {of_people}"
        " AND issued_at_ms > :since_ms ORDER BY issued_at_ms DESC LIMIT :most",
        {"project_id": project_id, "since_ms": since_ms, "most": limit, **params},
    )
    return [Issued(row["purpose"], row["issued_at_ms"]) for row in rows]


async def supersede(
    tx: Tx, project_id: str, people: Sequence[str], purpose: str, *, now_ms: int
) -> None:
    """Ends the active codes of the subscribers and purpose. `people` is not empty."""
    of_people, params = _of_people(people)
    await tx.execute(
        "UPDATE otp_codes SET code_hash = NULL, sealed = NULL,"
        " status = CASE WHEN expires_at_ms > :now_ms THEN 'superseded' ELSE 'expired' END"
        f" WHERE {of_people} AND purpose = :purpose AND status = 'active'",
        {"project_id": project_id, "purpose": purpose, "now_ms": now_ms, **params},
    )


async def issue(
    tx: Tx,
    code: OneTimeCode,
    *,
    subscriber_id: str,
    code_hash: str,
    now_ms: int,
    expires_at_ms: int,
    sealed: str | None = None,
) -> OneTimeCode | None:
    """The request with its code, active from now on; None if it is not pending any more."""
    return await _change(
        tx,
        code,
        "status = 'active', subscriber_id = :subscriber_id, code_hash = :code_hash,"
        " issued_at_ms = :now_ms, expires_at_ms = :expires_at_ms, sealed = :sealed",
        "status = 'waiting'",
        {
            "subscriber_id": subscriber_id,
            "code_hash": code_hash,
            "now_ms": now_ms,
            "expires_at_ms": expires_at_ms,
            "sealed": sealed,
        },
    )


async def insert_recipients(tx: Tx, code: OneTimeCode, people: Sequence[str]) -> None:
    """The subscribers of the person to whom a code is sent by a route."""
    for subscriber_id in people:
        await tx.insert(
            "otp_recipients",
            {
                "project_id": code.project_id,
                "otp_id": code.otp_id,
                "subscriber_id": subscriber_id,
            },
        )


async def list_people(tx: Tx, code: OneTimeCode) -> list[str]:
    """The subscribers whose code it is, in order: all of a person's, if it is sent by a route."""
    if code.route_id is None:
        return [] if code.subscriber_id is None else [code.subscriber_id]
    rows = await tx.fetch_all(
        "SELECT subscriber_id FROM otp_recipients WHERE project_id = :project_id"
        " AND otp_id = :otp_id ORDER BY subscriber_id",
        {"project_id": code.project_id, "otp_id": code.otp_id},
    )
    return [row["subscriber_id"] for row in rows]


async def list_reached(tx: Tx, code: OneTimeCode) -> list[str]:
    """The subscribers to whom a code by a route went out, or may have."""
    rows = await tx.fetch_all(
        "SELECT subscriber_id FROM otp_recipients WHERE project_id = :project_id"
        " AND otp_id = :otp_id AND step IS NOT NULL AND (reason IS NULL OR reason = 'unknown')",
        {"project_id": code.project_id, "otp_id": code.otp_id},
    )
    return [row["subscriber_id"] for row in rows]


async def move(
    tx: Tx, code: OneTimeCode, *, step: int, subscriber_id: str, is_last: bool, now_ms: int
) -> OneTimeCode | None:
    """The code at a further step of its route; None if it is over, or has been moved. After the last step
    nothing is kept of it."""
    moved = await _change(
        tx,
        code,
        "step = :step, subscriber_id = :subscriber_id" + (", sealed = NULL" if is_last else ""),
        "status = 'active' AND expires_at_ms > :now_ms AND step = :before",
        {"step": step, "subscriber_id": subscriber_id, "before": code.step, "now_ms": now_ms},
    )
    if moved is not None:
        await tx.execute(
            "UPDATE otp_recipients SET step = :step WHERE project_id = :project_id"
            " AND otp_id = :otp_id AND subscriber_id = :subscriber_id",
            {
                "step": step,
                "project_id": code.project_id,
                "otp_id": code.otp_id,
                "subscriber_id": subscriber_id,
            },
        )
    return moved


async def forget_secret(tx: Tx, code: OneTimeCode) -> None:
    """No further step follows."""
    await _change(tx, code, "sealed = NULL", "step = :step", {"step": code.step})


async def mark_step_sent(
    tx: Tx, project_id: str, otp_id: str, step: int, *, now_ms: int
) -> str | None:
    """Whom a code was sent to by a step; None if that was recorded before, or they are gone."""
    found: str | None = await tx.fetch_val(
        "UPDATE otp_recipients SET sent_at_ms = :now_ms WHERE project_id = :project_id"
        " AND otp_id = :otp_id AND step = :step AND sent_at_ms IS NULL RETURNING subscriber_id",
        {"project_id": project_id, "otp_id": otp_id, "step": step, "now_ms": now_ms},
    )
    return found


async def mark_step_failed(tx: Tx, project_id: str, otp_id: str, step: int, reason: str) -> None:
    await tx.execute(
        "UPDATE otp_recipients SET reason = :reason WHERE project_id = :project_id"
        " AND otp_id = :otp_id AND step = :step AND sent_at_ms IS NULL",
        {"project_id": project_id, "otp_id": otp_id, "step": step, "reason": reason},
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
    tx: Tx, project_id: str, people: Sequence[str], *, since_ms: int
) -> list[Guessed]:
    """The subscribers' codes with attempts after that time, the oldest last attempt first. `people` is not
    empty."""
    of_people, params = _of_people(people)
    rows = await tx.fetch_all(
        "SELECT attempts - CASE status WHEN 'verified' THEN 1 ELSE 0 END AS wrong,"
        f" last_attempt_at_ms FROM otp_codes WHERE {of_people}"
        " AND last_attempt_at_ms > :since_ms ORDER BY last_attempt_at_ms",
        {"project_id": project_id, "since_ms": since_ms, **params},
    )
    return [Guessed(row["wrong"], row["last_attempt_at_ms"]) for row in rows]


async def consume(tx: Tx, code: OneTimeCode) -> OneTimeCode | None:
    """Marks the code as verified; None if it is not active any more. Of concurrent calls, one succeeds."""
    return await _change(
        tx, code, "status = 'verified', code_hash = NULL, sealed = NULL", "status = 'active'", {}
    )


async def exhaust(tx: Tx, code: OneTimeCode) -> OneTimeCode | None:
    """Ends the code after too many wrong attempts; None if it is not active any more, or allows another."""
    return await _change(
        tx,
        code,
        "status = 'max_attempts_reached', code_hash = NULL, sealed = NULL",
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
        route_id=row["route_id"],
        steps=row["steps"],
        step=row["step"],
        sealed=row["sealed"],
    )
