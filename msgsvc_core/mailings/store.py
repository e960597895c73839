"""The SQL of mailings and their shards. Changes of status are conditional on the previous status."""

import json
from collections.abc import Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of, for_update
from msgsvc_core.kernel.json import to_json
from msgsvc_core.mailings.models import (
    PROJECT_DISABLED,
    LockedShard,
    Mailing,
    MailingShard,
    MailingStatus,
)

_COLUMNS = (
    "project_id, job_id, source, status, content, audience, permission, metadata, per_minute,"
    " expires_at_ms, send_at_ms, total, sent, failed, skipped, error, resend_of, created_at_ms,"
    " started_at_ms, finished_at_ms, expanded_to, next_us, timed_from_ms, timed_from, charged,"
    " purged_at_ms, unknown, name, experiment, stage, tested_at_ms, winner, decision, route_id,"
    " route_steps, chosen_to"
)
_KEY = "project_id = :project_id AND job_id = :job_id"
#: Columns of JSON, or null.
_JSON = ("metadata", "experiment", "decision")


async def insert(tx: Tx, mailing: Mailing) -> None:
    """Adds a new mailing."""
    values: dict[str, Any] = {name: getattr(mailing, name) for name in _COLUMNS.split(", ")}
    values["audience"] = to_json(mailing.audience)
    for name in _JSON:
        values[name] = None if values[name] is None else to_json(values[name])
    await tx.insert("core_mailings", values)


async def find(tx: Tx, project_id: str, job_id: str) -> Mailing | None:
    return await _find(tx, project_id, job_id, "")


async def find_any(tx: Tx, job_id: str) -> Mailing | None:
    """A mailing of any project: for operators."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_mailings WHERE job_id = :job_id", {"job_id": job_id}
    )
    return None if row is None else _mailing(row)


async def find_many(tx: Tx, project_id: str, job_ids: Sequence[str]) -> list[Mailing]:
    these, params = any_of("job_id", "job_ids", job_ids, tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_mailings WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, **params},
    )
    return [_mailing(row) for row in rows]


async def lock(tx: Tx, project_id: str, job_id: str) -> Mailing | None:
    """Locks the mailing until the transaction ends."""
    return await _find(tx, project_id, job_id, for_update(tx.dialect))


async def lock_shard(tx: Tx, project_id: str, job_id: str, bot: str) -> LockedShard | None:
    """Locks the mailing, and its shard of one bot; None if either does not exist.

    Shards change only in transactions that lock the job of the shard, apart from those of a mailing with a
    route: other shards and `RouteWatch` change them under the lock of the mailing alone. They are read again
    when it is held: a statement of PostgreSQL that had to wait for it returns the shard of before.
    """
    columns = ", ".join(f"m.{column}" for column in _COLUMNS.split(", "))
    row = await tx.fetch_one(
        f"SELECT {columns}, w.bot, w.walked_to, w.in_hand, w.is_done, w.is_rest, p.status AS project_status"
        " FROM core_mailings m JOIN core_projects p ON p.project_id = m.project_id"
        " JOIN core_mailing_ways w ON w.project_id = m.project_id AND w.job_id = m.job_id"
        " WHERE m.project_id = :project_id AND m.job_id = :job_id AND w.bot = :bot"
        f"{for_update(tx.dialect, of='m')}",
        {"project_id": project_id, "job_id": job_id, "bot": bot},
    )
    if row is None:
        return None
    mailing, shard = _mailing(row), _shard(row)
    if mailing.route_id is not None:
        shard = await find_shard(tx, project_id, job_id, bot) or shard
    return LockedShard(mailing, shard, row["project_status"] == "active")


async def _find(tx: Tx, project_id: str, job_id: str, ending: str) -> Mailing | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_mailings WHERE {_KEY}{ending}",
        {"project_id": project_id, "job_id": job_id},
    )
    return None if row is None else _mailing(row)


async def set_content(
    tx: Tx, project_id: str, job_id: str, content: str, experiment: dict[str, Any] | None
) -> None:
    """Replaces the content, also that of the variants in `experiment`."""
    await tx.execute(
        f"UPDATE core_mailings SET content = :content, experiment = :experiment WHERE {_KEY}",
        {
            "project_id": project_id,
            "job_id": job_id,
            "content": content,
            "experiment": None if experiment is None else to_json(experiment),
        },
    )


async def end_test(tx: Tx, project_id: str, job_id: str, now_ms: int) -> Mailing | None:
    """Ends the first stage of an experiment; None if it has ended, or must continue."""
    rows = await tx.fetch_all(
        f"UPDATE core_mailings SET stage = 'waiting', tested_at_ms = :now_ms WHERE {_KEY}"
        " AND finished_at_ms IS NULL AND status = 'running' AND stage = 'test'"
        " AND expanded_to IS NULL AND NOT EXISTS (SELECT 1 FROM core_mailing_ways w"
        " WHERE w.project_id = :project_id AND w.job_id = :job_id"
        f" AND (w.in_hand <> '[]' OR NOT w.is_done)) RETURNING {_COLUMNS}",
        {"project_id": project_id, "job_id": job_id, "now_ms": now_ms},
    )
    return _mailing(rows[0]) if rows else None


async def choose(
    tx: Tx, project_id: str, job_id: str, winner: int, decision: dict[str, Any], now_ms: int
) -> Mailing | None:
    """Begins the second stage of an experiment, with the number of the variant that the rest gets; None if
    it has begun, or the mailing has ended. Restarts the measurement of the rate."""
    rows = await tx.fetch_all(
        "UPDATE core_mailings SET stage = 'rest', winner = :winner, decision = :decision,"
        " timed_from_ms = :now_ms, timed_from = sent + failed + skipped,"
        " next_us = CASE WHEN next_us > :now_us THEN next_us ELSE :now_us END"
        f" WHERE {_KEY} AND finished_at_ms IS NULL AND status <> 'cancelled'"
        f" AND stage IN ('test', 'waiting') RETURNING {_COLUMNS}",
        {
            "project_id": project_id,
            "job_id": job_id,
            "winner": winner,
            "decision": to_json(decision),
            "now_ms": now_ms,
            "now_us": now_ms * 1000,
        },
    )
    return _mailing(rows[0]) if rows else None


async def list_page(
    tx: Tx,
    project_id: str,
    source: str,
    status: str | None,
    after: str | None,
    limit: int,
    *,
    ascending: bool = False,
) -> list[Mailing]:
    """Mailings of one source, newest first, or oldest first; `after` is the last id of the previous page, in
    that order."""
    conditions = ["project_id = :project_id", "source = :source"]
    params: dict[str, Any] = {"project_id": project_id, "source": source, "most": limit}
    if status is not None:
        conditions.append("status = :status")
        params["status"] = status
    if after is not None:
        conditions.append(f"job_id {'>' if ascending else '<'} :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_mailings WHERE {' AND '.join(conditions)}"
        f" ORDER BY job_id {'ASC' if ascending else 'DESC'} LIMIT :most",
        params,
    )
    return [_mailing(row) for row in rows]


async def list_any(tx: Tx, *, ended: bool, limit: int) -> list[Mailing]:
    """Mailings of all projects, newest first; with `ended` also finished ones: for operators."""
    condition = "" if ended else " WHERE finished_at_ms IS NULL"
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_mailings{condition} ORDER BY job_id DESC LIMIT :most",
        {"most": limit},
    )
    return [_mailing(row) for row in rows]


async def start(tx: Tx, project_id: str, job_id: str, now_ms: int) -> bool:
    """Starts a scheduled mailing; False if it is no longer scheduled."""
    return bool(
        await tx.execute(
            "UPDATE core_mailings SET status = 'running', started_at_ms = :now_ms, total = 0"
            f" WHERE {_KEY} AND status = 'scheduled'",
            {"project_id": project_id, "job_id": job_id, "now_ms": now_ms},
        )
    )


async def expanded(
    tx: Tx, project_id: str, job_id: str, *, more: int, skipped: int, expanded_to: str
) -> None:
    """Records the progress of the expansion: `more` rows, `skipped` of which are skipped from the start."""
    await tx.execute(
        "UPDATE core_mailings SET total = total + :more, skipped = skipped + :skipped,"
        f" expanded_to = :expanded_to WHERE {_KEY}",
        {
            "project_id": project_id,
            "job_id": job_id,
            "more": more,
            "skipped": skipped,
            "expanded_to": expanded_to,
        },
    )


async def chosen(tx: Tx, project_id: str, job_id: str, *, people: int, chosen_to: str) -> None:
    """Records the progress of choosing the first channel of each of `people`."""
    await tx.execute(
        f"UPDATE core_mailings SET total = total + :people, chosen_to = :chosen_to WHERE {_KEY}",
        {"project_id": project_id, "job_id": job_id, "people": people, "chosen_to": chosen_to},
    )


async def fixed(tx: Tx, mailing: Mailing, now_ms: int, *, missing: int) -> None:
    """Records that the expansion is complete, and sending may start. `missing` were given by id, and don't
    exist.

    From then on the ledger is the audience, so the given ids are deleted: an erased subscriber is only
    removed from the ledger.
    """
    await tx.execute(
        "UPDATE core_mailings SET audience = :audience, expanded_to = NULL,"
        " total = total + :missing, skipped = skipped + :missing,"
        " timed_from = sent + failed + skipped + :missing,"
        f" timed_from_ms = :now_ms, next_us = :next_us WHERE {_KEY}",
        {
            "project_id": mailing.project_id,
            "job_id": mailing.job_id,
            "audience": to_json(mailing.shown_audience),
            "now_ms": now_ms,
            "next_us": now_ms * 1000,
            "missing": missing,
        },
    )


async def set_status(
    tx: Tx,
    project_id: str,
    job_id: str,
    status: MailingStatus,
    before: Sequence[MailingStatus],
    *,
    now_ms: int,
    error: str | None = None,
) -> bool:
    """Changes the status if it is one of `before`; restarts the measurement of the rate."""
    names = ", ".join(f"'{each}'" for each in before)
    return bool(
        await tx.execute(
            f"UPDATE core_mailings SET status = '{status}', error = :error,"
            " timed_from_ms = :now_ms, timed_from = sent + failed + skipped,"
            " next_us = CASE WHEN next_us > :now_us THEN next_us ELSE :now_us END"
            f" WHERE {_KEY} AND finished_at_ms IS NULL AND status IN ({names})",
            {
                "project_id": project_id,
                "job_id": job_id,
                "error": error,
                "now_ms": now_ms,
                "now_us": now_ms * 1000,
            },
        )
    )


async def pause_if_disabled(tx: Tx, project_id: str, job_id: str, now_ms: int) -> None:
    """Pauses a running mailing of a disabled project. It is not resumed automatically: its content may be
    outdated by then."""
    await tx.execute(
        f"UPDATE core_mailings SET status = 'paused', error = '{PROJECT_DISABLED}',"
        f" timed_from_ms = :now_ms, timed_from = sent + failed + skipped WHERE {_KEY}"
        " AND status = 'running' AND EXISTS (SELECT 1 FROM core_projects p"
        " WHERE p.project_id = :project_id AND p.status <> 'active')",
        {"project_id": project_id, "job_id": job_id, "now_ms": now_ms},
    )


async def set_audience(tx: Tx, mailing: Mailing) -> None:
    """Reduces the audience to what the API shows of it."""
    await tx.execute(
        f"UPDATE core_mailings SET audience = :audience WHERE {_KEY}",
        {
            "project_id": mailing.project_id,
            "job_id": mailing.job_id,
            "audience": to_json(mailing.shown_audience),
        },
    )


async def count(
    tx: Tx, mailing: Mailing, *, sent: int = 0, failed: int = 0, unknown: int = 0, skipped: int = 0
) -> None:
    """Adds to the counts; `failed` includes `unknown`."""
    await tx.execute_deferred(
        "UPDATE core_mailings SET sent = sent + :sent, failed = failed + :failed,"
        f" unknown = unknown + :unknown, skipped = skipped + :skipped WHERE {_KEY}",
        {
            "project_id": mailing.project_id,
            "job_id": mailing.job_id,
            "sent": sent,
            "failed": failed,
            "unknown": unknown,
            "skipped": skipped,
        },
        table="core_mailings",
    )


async def count_failed(tx: Tx, project_id: str, job_id: str) -> None:
    """Counts a recipient as failed who was counted as sent."""
    await tx.execute(
        f"UPDATE core_mailings SET sent = sent - 1, failed = failed + 1 WHERE {_KEY}",
        {"project_id": project_id, "job_id": job_id},
    )


async def set_next(tx: Tx, mailing: Mailing, next_us: int) -> None:
    """Records when the next message is due by the mailing's pace."""
    await tx.execute(
        f"UPDATE core_mailings SET next_us = :next_us WHERE {_KEY}",
        {"project_id": mailing.project_id, "job_id": mailing.job_id, "next_us": next_us},
    )


async def finish(
    tx: Tx, project_id: str, job_id: str, status: MailingStatus, now_ms: int
) -> Mailing | None:
    """Ends a mailing that has no recipient in flight; None if it has ended, or must continue.

    Recipients erased meanwhile, or not reached before a cancel, are `skipped`, so that the counts add up.
    """
    before = "'running'" if status == "completed" else "'cancelled'"
    rows = await tx.fetch_all(
        f"UPDATE core_mailings SET status = '{status}', skipped = total - sent - failed,"
        f" finished_at_ms = :now_ms WHERE {_KEY} AND finished_at_ms IS NULL AND status = {before}"
        f" AND {_ENDS[status]}"
        " AND NOT EXISTS (SELECT 1 FROM core_mailing_ways w WHERE w.project_id = :project_id"
        f" AND w.job_id = :job_id AND (w.in_hand <> '[]' OR {_OPEN[status]}))"
        f" RETURNING {_COLUMNS}",
        {"project_id": project_id, "job_id": job_id, "now_ms": now_ms},
    )
    return _mailing(rows[0]) if rows else None


#: The state of a shard that prevents an end with that status.
_OPEN = {
    "completed": "NOT w.is_done OR (core_mailings.stage = 'rest' AND NOT w.is_rest)",
    "cancelled": "FALSE",
}
#: The state of a mailing that allows an end with that status: if the variants have reached everybody, there
#: is no second stage.
_ENDS = {
    "completed": "(stage IS NULL OR stage = 'rest' OR sent + failed + skipped >= total)",
    "cancelled": "1 = 1",
}


async def find_to_purge(tx: Tx, before_ms: int) -> tuple[str, str] | None:
    """The project and id of a mailing that ended before then, and still has a ledger."""
    row = await tx.fetch_one(
        "SELECT project_id, job_id FROM core_mailings WHERE finished_at_ms IS NOT NULL"
        " AND purged_at_ms IS NULL AND finished_at_ms < :before_ms ORDER BY finished_at_ms LIMIT 1",
        {"before_ms": before_ms},
    )
    return None if row is None else (row["project_id"], row["job_id"])


async def purged(tx: Tx, project_id: str, job_id: str, now_ms: int) -> None:
    """Records that the ledger was deleted, and deletes what depends on it."""
    key = {"project_id": project_id, "job_id": job_id}
    await tx.execute(f"DELETE FROM core_mailing_ways WHERE {_KEY}", key)
    await tx.execute(
        f"UPDATE core_mailings SET purged_at_ms = :now_ms WHERE {_KEY}", {**key, "now_ms": now_ms}
    )


async def was_resent(tx: Tx, project_id: str, job_id: str) -> bool:
    """Whether another mailing was sent to the recipients of this one with an unknown outcome."""
    found = await tx.fetch_all(
        "SELECT 1 AS found FROM core_mailings WHERE project_id = :project_id"
        " AND resend_of = :job_id LIMIT 1",
        {"project_id": project_id, "job_id": job_id},
    )
    return bool(found)


async def add_shards(tx: Tx, project_id: str, job_id: str, bots: Sequence[str]) -> None:
    """Adds the shards of a mailing, which start with nobody in flight."""
    await tx.insert_many(
        "core_mailing_ways",
        [
            {
                "project_id": project_id,
                "job_id": job_id,
                "bot": bot,
                "walked_to": "",
                "in_hand": "[]",
                "is_done": False,
                "is_rest": False,
            }
            for bot in bots
        ],
    )


async def reopen_shards(tx: Tx, mailing: Mailing, bots: Sequence[str]) -> None:
    """Has the shards of these bots continue: there are recipients for them."""
    these, params = any_of("bot", "bots", bots, tx.dialect)
    await tx.execute(
        f"UPDATE core_mailing_ways SET is_done = FALSE WHERE {_KEY} AND is_done AND {these}",
        {"project_id": mailing.project_id, "job_id": mailing.job_id, **params},
    )


async def list_shards(tx: Tx, project_id: str, job_id: str) -> list[MailingShard]:
    """A mailing's shards."""
    rows = await tx.fetch_all(
        f"SELECT bot, walked_to, in_hand, is_done, is_rest FROM core_mailing_ways WHERE {_KEY}"
        " ORDER BY bot",
        {"project_id": project_id, "job_id": job_id},
    )
    return [_shard(row) for row in rows]


async def list_waiting(tx: Tx, bot: str) -> list[Mailing]:
    """Running mailings of all projects that have something to do for a bot, the oldest first."""
    columns = ", ".join(f"m.{column}" for column in _COLUMNS.split(", "))
    rows = await tx.fetch_all(
        f"SELECT {columns} FROM core_mailings m JOIN core_mailing_ways w"
        " ON w.project_id = m.project_id AND w.job_id = m.job_id AND w.bot = :bot AND NOT w.is_done"
        " WHERE m.finished_at_ms IS NULL AND m.status = 'running' ORDER BY m.job_id",
        {"bot": bot},
    )
    return [_mailing(row) for row in rows]


async def find_shard(tx: Tx, project_id: str, job_id: str, bot: str) -> MailingShard | None:
    """The shard of one bot."""
    found = await list_shards(tx, project_id, job_id)
    return next((shard for shard in found if shard.bot == bot), None)


async def set_shard(tx: Tx, project_id: str, job_id: str, shard: MailingShard) -> None:
    """Records a shard's progress, and its recipients in flight."""
    await tx.execute_deferred(
        "UPDATE core_mailing_ways SET walked_to = :walked_to, in_hand = :in_hand,"
        f" is_done = :is_done, is_rest = :is_rest WHERE {_KEY} AND bot = :bot",
        {
            "project_id": project_id,
            "job_id": job_id,
            "bot": shard.bot,
            "walked_to": shard.walked_to,
            "in_hand": to_json(shard.in_flight),
            "is_done": shard.is_done,
            "is_rest": shard.is_rest,
        },
        table="core_mailing_ways",
    )


def _shard(row: Row) -> MailingShard:
    return MailingShard(
        row["bot"],
        row["walked_to"],
        json.loads(row["in_hand"]),
        bool(row["is_done"]),
        bool(row["is_rest"]),
    )


def _mailing(row: Row) -> Mailing:
    values = {column: row[column] for column in _COLUMNS.split(", ")}
    values["audience"] = json.loads(values["audience"])
    for name in _JSON:
        if values[name] is not None:
            values[name] = json.loads(values[name])
    return Mailing(**values)
