"""The SQL of the list of a mailing's recipients: along the ledger for common statuses, else by an index.

Waiting recipients are found without reading the others, from the position of the shards.
"""

from typing import Any, get_args

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of
from msgsvc_core.mailings import store
from msgsvc_core.mailings.models import (
    Mailing,
    NotSent,
    OutcomeReason,
    Recipient,
    RecipientStatus,
)

_COLUMNS = "subscriber_id, bot, status, attempts, message_id, reason, error, step"
_OF_MAILING = "project_id = :project_id AND job_id = :job_id"
#: The rows that stand for people: of each person with a route, the one that they are at.
_IS_PERSON = "status NOT IN ('standby', 'passed', 'doubted')"

#: A condition and its parameters.
Part = tuple[str, dict[str, Any]]


#: The outcomes that have reasons.
NOT_SENT: tuple[NotSent, ...] = ("failed", "unknown", "skipped")


async def count_reasons(tx: Tx, mailing: Mailing, limit: int) -> list[OutcomeReason]:
    """Why recipients did not get it, the most frequent reason of each outcome first; of at most `limit`
    recipients of an outcome."""
    reasons: list[OutcomeReason] = []
    for status in NOT_SENT:
        # The platform's words differ from one recipient to the next; why somebody was skipped is in ours.
        why = "error" if status == "skipped" else "reason"
        rows = await tx.fetch_all(
            f"SELECT these.why, COUNT(*) AS count FROM (SELECT {why} AS why FROM core_recipients"
            f" WHERE {_OF_MAILING} AND not_sent = :status LIMIT :most) AS these GROUP BY these.why"
            " ORDER BY count DESC, these.why",
            {
                "project_id": mailing.project_id,
                "job_id": mailing.job_id,
                "status": status,
                "most": limit,
            },
        )
        reasons += [OutcomeReason(status, row["why"], row["count"]) for row in rows]
    return reasons


async def find(tx: Tx, mailing: Mailing, subscriber_id: str) -> Recipient | None:
    """A recipient of a mailing; None if there is none, also once they are no longer stored."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_recipients WHERE {_OF_MAILING}"
        f" AND subscriber_id = :subscriber_id AND {_IS_PERSON}",
        {
            "project_id": mailing.project_id,
            "job_id": mailing.job_id,
            "subscriber_id": subscriber_id,
        },
    )
    return None if row is None else _recipient(row, ended=mailing.finished_at_ms is not None)


async def list_page(
    tx: Tx,
    mailing: Mailing,
    status: str | None,
    after: str | None,
    limit: int,
    reason: str | None = None,
) -> list[Recipient]:
    """Newest subscribers first; `after` is the last id of the previous page."""
    found: dict[str, Row] = {}
    for part, params in await _parts(tx, mailing, status, reason):
        column = _column(tx, part)
        conditions = f"{_OF_MAILING} AND {part}"
        if after is not None:
            conditions += f" AND {column} < :after"
        rows = await tx.fetch_all(
            f"SELECT {_COLUMNS} FROM core_recipients WHERE {conditions}"
            f" ORDER BY {column} DESC LIMIT :most",
            {
                **params,
                "project_id": mailing.project_id,
                "job_id": mailing.job_id,
                "most": limit,
                **({} if after is None else {"after": after}),
            },
        )
        found |= {row["subscriber_id"]: row for row in rows}
    newest = sorted(found, reverse=True)[:limit]
    return [_recipient(found[each], ended=mailing.finished_at_ms is not None) for each in newest]


async def _parts(tx: Tx, mailing: Mailing, status: str | None, reason: str | None) -> list[Part]:
    """Conditions that together select the recipients of an API status and reason."""
    if reason is not None:
        # In the order of one index for each, and of recipients who did not get it alone.
        return [
            ("not_sent = :status AND reason = :reason", {"status": each, "reason": reason})
            for each in NOT_SENT
            if status in {None, each}
        ]
    if status is None:
        return [(_IS_PERSON if mailing.route_id is not None else "1 = 1", {})]
    assert status in get_args(RecipientStatus), "others are refused"
    has_ended = mailing.finished_at_ms is not None
    if status == "queued":
        return [] if has_ended or not _some_wait(mailing) else await _waiting(tx, mailing)
    if status == "sent" and (mailing.experiment is not None or mailing.route_id is not None):
        # The shards may have restarted, or people have come to them who are before their position.
        return [("status = 'sent'", {})] if mailing.sent else []
    if status == "sent":
        # Recipients after the shards' position have no outcome, and would be read first.
        reached = f"SELECT MAX(walked_to) FROM core_mailing_ways WHERE {_OF_MAILING}"
        return [(f"status = 'sent' AND subscriber_id <= ({reached})", {})] if mailing.sent else []
    parts: list[Part] = [("not_sent = :status", {"status": status})]
    if status == "skipped" and mailing.status == "cancelled" and has_ended:
        # Recipients waiting when it was cancelled count as skipped.
        parts += await _waiting(tx, mailing)
    return parts


async def _waiting(tx: Tx, mailing: Mailing) -> list[Part]:
    """Recipients not reached yet, those to be retried, and those in flight."""
    shards = await store.list_shards(tx, *mailing.key)
    walked_to = min((shard.walked_to for shard in shards), default="")
    if mailing.experiment is not None:
        # The first stage passes over whom the second reaches.
        walked_to = ""
    parts: list[Part] = [("status = 'queued' AND subscriber_id > :walked", {"walked": walked_to})]
    if bots := [shard.bot for shard in shards]:
        by_bot, params = any_of("bot", "bots", bots, tx.dialect)
        parts.append((f"status = 'queued' AND {_AGAIN} AND {by_bot}", params))
    if in_flight := [each for shard in shards for each in shard.in_flight]:
        these, params = any_of("subscriber_id", "in_flight", in_flight, tx.dialect)
        parts.append((f"status = 'queued' AND {these}", params))
    return parts


_AGAIN = "run_at_ms IS NOT NULL"


def _column(tx: Tx, part: str) -> str:
    """The column of the condition. With a plus, SQLite uses the index of retries, which are few, and not
    the one in this order."""
    return "+subscriber_id" if tx.dialect == "sqlite" and _AGAIN in part else "subscriber_id"


def _some_wait(mailing: Mailing) -> bool:
    """Whether some recipients have no outcome yet; otherwise the whole ledger would be read in vain."""
    return mailing.expanded_to is not None or mailing.done < mailing.total


def _recipient(row: Row, *, ended: bool) -> Recipient:
    values = {column: row[column] for column in _COLUMNS.split(", ")}
    if ended and values["status"] == "queued":
        values |= {"status": "skipped", "error": "cancelled"}
    return Recipient(**values)
