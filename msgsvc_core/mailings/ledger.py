"""The SQL of a mailing's ledger: the next recipients, and their outcomes."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect, any_of, key_params, key_table
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings.models import Mailing, MailingShard, RecipientStatus
from msgsvc_core.messages.models import FinalStatus

_OF_MAILING = "project_id = :project_id AND job_id = :job_id"

#: The key of a ledger's row, see also `_open_rows`.
_KEY = ("project", "subscriber", "job")


@value_object
class RecipientOutcome:
    """The outcome of a recipient; with `run_at_ms` they stay `queued` until then.

    `tries` is added to their attempts.
    """

    subscriber_id: str
    status: RecipientStatus
    tries: int = 0
    message_id: str | None = None
    reason: str | None = None
    error: str | None = None
    run_at_ms: int | None = None
    refused_from_ms: int | None = None
    #: When their step of a route began, in Unix milliseconds.
    began_ms: int | None = None


@value_object
class DueRecipient:
    """A recipient who is due, with their previous attempts, and the time of the platform's first request
    to wait, in Unix milliseconds. `in_doubt` is whether an earlier attempt may have reached them."""

    subscriber_id: str
    attempts: int = 0
    refused_from_ms: int | None = None
    in_doubt: bool = False
    #: The number of the variant that they get; None for what the others get.
    variant: int | None = None
    #: When their step of a route began, in Unix milliseconds; None if it begins now.
    began_ms: int | None = None


async def due_retries(
    tx: Tx, mailing: Mailing, bot: str, now_ms: int, limit: int
) -> list[DueRecipient]:
    """Recipients whose retry is due."""
    rows = await tx.fetch_all(
        "SELECT subscriber_id, attempts, refused_from_ms, reason,"
        # Who has come from another channel is due since then, and has not been tried.
        " CASE WHEN began_ms < run_at_ms THEN began_ms END AS began_ms FROM core_recipients"
        f" WHERE {_OF_MAILING} AND bot = :bot"
        " AND run_at_ms IS NOT NULL AND run_at_ms <= :now_ms ORDER BY run_at_ms LIMIT :limit",
        {**_key(mailing), "bot": bot, "now_ms": now_ms, "limit": limit},
    )
    return [
        DueRecipient(
            subscriber_id,
            attempts,
            refused_from_ms,
            in_doubt=reason is not None,
            began_ms=began_ms,
        )
        for subscriber_id, attempts, refused_from_ms, reason, began_ms in rows
    ]


async def next_retry_ms(tx: Tx, mailing: Mailing, bot: str) -> int | None:
    """When the next retry is due; None if there is none."""
    due_ms: int | None = await tx.fetch_val(
        f"SELECT MIN(run_at_ms) AS due FROM core_recipients WHERE {_OF_MAILING} AND bot = :bot"
        " AND run_at_ms IS NOT NULL",
        {**_key(mailing), "bot": bot},
    )
    return due_ms


async def find_waiting(
    tx: Tx, mailing: Mailing, shard: MailingShard, after: str, limit: int
) -> list[DueRecipient]:
    """Up to `limit` recipients who wait for a shard, and are not in flight, in the order of their ids. While
    variants are tried, only those who get one."""
    others, params = any_of("subscriber_id", "in_flight", shard.in_flight, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT subscriber_id, attempts, refused_from_ms, reason, variant FROM core_recipients"
        f" WHERE {_OF_MAILING} AND subscriber_id > :after AND bot = :bot AND status = 'queued'"
        f" AND NOT ({others}){_TESTED[mailing.is_testing]} ORDER BY subscriber_id LIMIT :limit",
        {**_key(mailing), **params, "bot": shard.bot, "after": after, "limit": limit},
    )
    return [
        DueRecipient(
            row["subscriber_id"],
            row["attempts"],
            row["refused_from_ms"],
            in_doubt=row["reason"] is not None,
            variant=row["variant"],
        )
        for row in rows
    ]


async def claim_retries(tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]) -> None:
    """Marks retries as in flight."""
    if subscriber_ids:
        await tx.execute(
            f"UPDATE core_recipients AS r SET run_at_ms = NULL FROM {key_table(_KEY, tx.dialect)}"
            f" WHERE {_open_rows(tx.dialect)}",
            {
                **key_params(_keys(mailing, subscriber_ids), tx.dialect),
                **_range_params(mailing, subscriber_ids),
            },
        )


#: The recipients of the first stage of an experiment; of the second, and of all else, everybody.
_TESTED = {True: " AND variant IS NOT NULL", False: ""}

#: With a route, people come to a shard ahead of its position. They are due like retries, and not found twice.
_NOT_MOVED = " AND began_ms IS NULL"


def next_recipients(
    mailing: Mailing,
    shard: MailingShard,
    limit: int,
    excluded: tuple[str, dict[str, Any]] = ("", {}),
) -> tuple[str, dict[str, Any]]:
    """The query of the ids of a shard's next recipients, and its parameters. `excluded` is a further
    condition with its parameters."""
    condition, params = excluded
    query = (
        f"SELECT subscriber_id FROM core_recipients WHERE {_OF_MAILING} AND subscriber_id > :after"
        f" AND bot = :bot AND status = 'queued' AND run_at_ms IS NULL{_TESTED[mailing.is_testing]}"
        f"{'' if mailing.route_id is None else _NOT_MOVED}{condition}"
        # As a query, since PostgreSQL plans each execution anew where it sees the limit.
        " ORDER BY subscriber_id LIMIT (SELECT CAST(:limit AS bigint))"
    )
    position = {"bot": shard.bot, "after": shard.walked_to, "limit": limit}
    return query, {**_key(mailing), **position, **params}


async def has_next(tx: Tx, mailing: Mailing, shard: MailingShard) -> bool:
    """Whether recipients of a shard have not been claimed yet."""
    return bool(await tx.fetch_all(*next_recipients(mailing, shard, 1)))


async def record_outcomes(
    tx: Tx, mailing: Mailing, outcomes: Sequence[RecipientOutcome]
) -> set[str]:
    """Writes outcomes; returns the ids of recipients that are still in the ledger and had none yet."""
    sent = [each for each in outcomes if each.status == "sent"]
    others = [each for each in outcomes if each.status != "sent"]
    return {*await _record_sent(tx, mailing, sent), *await _record_others(tx, mailing, others)}


async def correct(tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]) -> dict[str, str]:
    """Corrects recipients from `unknown` to `sent`; returns the ids of their messages, by recipient."""
    if not subscriber_ids:
        return {}
    rows = await tx.fetch_all(
        "UPDATE core_recipients AS r SET status = 'sent', reason = NULL, error = NULL"
        f" FROM {key_table(_KEY, tx.dialect)} WHERE r.project_id = keys.project"
        " AND r.subscriber_id = keys.subscriber AND r.job_id = keys.job"
        " AND r.status = 'unknown' RETURNING subscriber_id, message_id",
        key_params(_keys(mailing, subscriber_ids), tx.dialect),
    )
    return {row["subscriber_id"]: row["message_id"] for row in rows}


async def fail_sent(tx: Tx, end: FinalStatus) -> bool:
    """Corrects a recipient from `sent` to `failed`; False if they were not sent this message."""
    message = end.message
    return (
        await tx.execute(
            "UPDATE core_recipients SET status = 'failed', reason = :reason, error = :error"
            f" WHERE {_OF_MAILING} AND subscriber_id = :subscriber_id AND message_id = :message_id"
            " AND status = 'sent'",
            {
                "project_id": message.project_id,
                "job_id": message.job_id,
                "subscriber_id": message.subscriber_id,
                "message_id": message.message_id,
                "reason": end.reason,
                "error": end.error,
            },
        )
        > 0
    )


async def _record_sent(tx: Tx, mailing: Mailing, outcomes: Sequence[RecipientOutcome]) -> list[str]:
    """The most common outcome: only the message id differs."""
    if not outcomes:
        return []
    ids = [each.subscriber_id for each in outcomes]
    messages = [each.message_id for each in outcomes]
    ending = (
        "attempts = r.attempts + 1, reason = NULL, error = NULL, run_at_ms = NULL,"
        " refused_from_ms = NULL"
    )
    if tx.dialect == "postgresql":
        # No join: PostgreSQL plans one well only with statistics of the table.
        statement = (
            "UPDATE core_recipients AS r SET status = 'sent', message_id ="
            f" (:messages::text[])[array_position(:ids::text[], r.subscriber_id)], {ending}"
            f" WHERE {_IN_RANGE} AND r.status = 'queued' RETURNING subscriber_id"
        )
        params = {**_range_params(mailing, ids), "messages": messages}
    else:
        statement = (
            f"UPDATE core_recipients AS r SET status = 'sent', message_id = keys.message, {ending}"
            f" FROM {key_table((*_KEY, 'message'), tx.dialect)}"
            f" WHERE {_open_rows(tx.dialect)} RETURNING subscriber_id"
        )
        keys = [(*key, message) for key, message in zip(_keys(mailing, ids), messages, strict=True)]
        params = key_params(keys, tx.dialect)
    return [row["subscriber_id"] for row in await tx.fetch_all(statement, params)]


async def _record_others(
    tx: Tx, mailing: Mailing, outcomes: Sequence[RecipientOutcome]
) -> list[str]:
    if not outcomes:
        return []
    columns = (
        *_KEY,
        *("status", "tries", "message", "reason", "error", "run_at", "refused_from", "began"),
    )
    rows = await tx.fetch_all(
        "UPDATE core_recipients AS r SET status = keys.status, message_id = keys.message,"
        " attempts = r.attempts + CAST(keys.tries AS integer), reason = keys.reason,"
        " error = keys.error, run_at_ms = CAST(keys.run_at AS bigint),"
        " refused_from_ms = CAST(keys.refused_from AS bigint),"
        " began_ms = COALESCE(CAST(keys.began AS bigint), r.began_ms)"
        f" FROM {key_table(columns, tx.dialect)} WHERE {_open_rows(tx.dialect)} RETURNING subscriber_id",
        {
            **key_params([_values(mailing, outcome) for outcome in outcomes], tx.dialect),
            **_range_params(mailing, [each.subscriber_id for each in outcomes]),
        },
    )
    return [row["subscriber_id"] for row in rows]


#: Rows of a mailing by recipient, for PostgreSQL. Its statistics of a ledger are from when it was empty or
#: had other mailings, so it would read all of it; with both ends of the range, it reads only that. Where it
#: sees the ends it plans each execution anew, which takes as long as the update.
_IN_RANGE = (
    "r.project_id = :project_id AND r.job_id = :job_id"
    " AND r.subscriber_id BETWEEN (SELECT CAST(:first AS text)) AND (SELECT CAST(:last AS text))"
    " AND r.subscriber_id = ANY(:ids)"
)


def in_range(
    mailing: Mailing, subscriber_ids: Sequence[str], dialect: Dialect
) -> tuple[str, dict[str, Any]]:
    """A further condition on rows `r` of these recipients, for PostgreSQL's plan, and its parameters.
    `subscriber_ids` is not empty."""
    if dialect != "postgresql":
        return "", {}
    return f" AND {_IN_RANGE}", _range_params(mailing, subscriber_ids)


def _range_params(mailing: Mailing, subscriber_ids: Sequence[str]) -> dict[str, Any]:
    """The parameters of `_IN_RANGE`; `subscriber_ids` is not empty."""
    ids = list(subscriber_ids)
    return {**_key(mailing), "first": min(ids), "last": max(ids), "ids": ids}


def _open_rows(dialect: Dialect) -> str:
    """The rows `r` of `keys` without an outcome; PostgreSQL needs the parameters of `_range_params` too.

    The complete key is from `keys`: with a separate condition on the project, SQLite reads all its rows.
    """
    these = (
        "r.project_id = keys.project AND r.subscriber_id = keys.subscriber AND r.job_id = keys.job"
        " AND r.status = 'queued'"
    )
    return f"{these} AND {_IN_RANGE}" if dialect == "postgresql" else these


def _keys(mailing: Mailing, subscriber_ids: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(mailing.project_id, each, mailing.job_id) for each in subscriber_ids]


def _values(mailing: Mailing, outcome: RecipientOutcome) -> tuple[str | None, ...]:
    return (
        mailing.project_id,
        outcome.subscriber_id,
        mailing.job_id,
        outcome.status,
        str(outcome.tries),
        outcome.message_id,
        outcome.reason,
        outcome.error,
        _text(outcome.run_at_ms),
        _text(outcome.refused_from_ms),
        _text(outcome.began_ms),
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


async def remove(tx: Tx, project_id: str, job_id: str, after: str, limit: int) -> str | None:
    """Deletes the next `limit` rows; returns the last of them, or None if there were none."""
    key = {"project_id": project_id, "job_id": job_id, "after": after}
    end: str | None = await tx.fetch_val(
        "SELECT MAX(subscriber_id) AS last FROM (SELECT subscriber_id FROM core_recipients"
        f" WHERE {_OF_MAILING} AND subscriber_id > :after ORDER BY subscriber_id LIMIT :limit) AS these",
        {**key, "limit": limit},
    )
    if end is not None:
        await tx.execute(
            f"DELETE FROM core_recipients WHERE {_OF_MAILING} AND subscriber_id > :after"
            " AND subscriber_id <= :until",
            {**key, "until": end},
        )
    return end


def _key(mailing: Mailing) -> dict[str, Any]:
    return {"project_id": mailing.project_id, "job_id": mailing.job_id}


async def list_added(tx: Tx, mailing: Mailing, after: str, until: str) -> list[str]:
    """The waiting recipients of one step of the expansion."""
    rows = await tx.fetch_all(
        f"SELECT subscriber_id FROM core_recipients WHERE {_OF_MAILING} AND subscriber_id > :after"
        " AND subscriber_id <= :until AND status = 'queued'",
        {**_key(mailing), "after": after, "until": until},
    )
    return [row["subscriber_id"] for row in rows]


async def set_variants(tx: Tx, mailing: Mailing, variants: Mapping[str, int | None]) -> None:
    """Sets the variants of recipients who have not been sent to."""
    if variants:
        keys = [
            (mailing.project_id, each, mailing.job_id, None if number is None else str(number))
            for each, number in variants.items()
        ]
        await tx.execute(
            "UPDATE core_recipients AS r SET variant = CAST(keys.variant AS smallint)"
            f" FROM {key_table((*_KEY, 'variant'), tx.dialect)} WHERE {_open_rows(tx.dialect)}",
            {**key_params(keys, tx.dialect), **_range_params(mailing, list(variants))},
        )


async def find_variants(
    tx: Tx, project_id: str, job_id: str, subscriber_ids: Sequence[str], status: str | None = None
) -> dict[str, int]:
    """The variants of recipients who have one, by subscriber; with a `status`, of those who have it."""
    if not subscriber_ids:
        return {}
    these, params = any_of("subscriber_id", "ids", subscriber_ids, tx.dialect)
    if status is not None:
        these += " AND status = :status"
        params["status"] = status
    rows = await tx.fetch_all(
        f"SELECT subscriber_id, variant FROM core_recipients WHERE {_OF_MAILING} AND {these}"
        " AND variant IS NOT NULL",
        {**params, "project_id": project_id, "job_id": job_id},
    )
    return {row["subscriber_id"]: row["variant"] for row in rows}


async def count_by_variant(tx: Tx, mailing: Mailing) -> dict[tuple[int, str], int]:
    """How many recipients of each variant have which status. With a route, only one of a person's rows
    counts."""
    return await _count_by(tx, mailing, "variant")


async def count_by_step(tx: Tx, mailing: Mailing) -> dict[tuple[int, str], int]:
    """How many people stand at each step of the route, by status: one row of each person counts."""
    return await _count_by(tx, mailing, "step")


async def _count_by(tx: Tx, mailing: Mailing, column: str) -> dict[tuple[int, str], int]:
    rows = await tx.fetch_all(
        f"SELECT {column}, status, COUNT(*) AS count FROM core_recipients WHERE {_OF_MAILING}"
        f" AND {column} IS NOT NULL AND status NOT IN ('standby', 'passed', 'doubted')"
        f" GROUP BY {column}, status",
        _key(mailing),
    )
    return {(row[column], row["status"]): row["count"] for row in rows}
