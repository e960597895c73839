"""The SQL of messages. Changes of status are conditional on the previous status."""

from collections.abc import Sequence
from typing import Literal

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Row, Tx, WriteBatch
from msgsvc_core.db.counting import Count, count_walked
from msgsvc_core.db.sql import for_update, in_query, key_params, key_table
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.messages.filters import led_of, page_of, places_of_subscriber
from msgsvc_core.messages.models import FinalStatus, Message

#: In the order of `Message`'s fields, since rows are converted by position.
_COLUMNS = (
    "project_id, message_id, subscriber_id, channel, bot, status, content, metadata, reason, error,"
    " attempts, message_ref, created_at_ms, expires_at_ms, finished_at_ms,"
    " permission, batch_id, edited_at_ms, deleted_at_ms, shown, job_id, trace_id, delivered_at_ms,"
    " read_at_ms, route_id, route_steps, route_step, waits_for, external_id"
)

_COLUMN_NAMES = tuple(_COLUMNS.split(", "))
_CONTENT, _METADATA, _SHOWN = map(_COLUMN_NAMES.index, ("content", "metadata", "shown"))
_SELECTED = ", ".join(f"m.{column}" for column in _COLUMN_NAMES)
#: Whether the row is at the step of `keys`, which is empty without a route.
_SAME_STEP = "COALESCE(CAST(m.route_step AS text), '') = keys.step"
#: The columns of `keys`; named unlike the table's, which RETURNING on PostgreSQL could not tell apart.
_KEY = ("project", "message")


def add(unit: WriteBatch, message: Message) -> None:
    """Adds a new message."""
    row = {
        "project_id": message.project_id,
        "message_id": message.message_id,
        "subscriber_id": message.subscriber_id,
        "channel": message.channel,
        "bot": message.bot,
        "status": message.status,
        "content": to_json(message.content.to_payload()),
        "metadata": None if message.metadata is None else to_json(message.metadata),
        "attempts": 0,
        "created_at_ms": message.created_at_ms,
        "expires_at_ms": message.expires_at_ms,
        "permission": message.permission,
        "batch_id": message.batch_id,
    }
    if message.trace_id is not None:
        row["trace_id"] = message.trace_id
    if message.route_id is not None:
        row["route_id"] = message.route_id
        row["route_steps"] = message.route_steps
        row["route_step"] = message.route_step
        row["external_id"] = message.external_id
    unit.insert("core_messages", row)


async def add_ended(tx: Tx, endings: Sequence[FinalStatus], now_ms: int) -> None:
    """Adds messages of mailings, which have their outcome already."""
    contents: dict[int, str] = {}
    rows = []
    for end in endings:
        message = end.message
        # A text without variables is the same object for all.
        content = contents.get(id(message.content))
        if content is None:
            content = contents[id(message.content)] = to_json(message.content.to_payload())
        rows.append(
            {
                "project_id": message.project_id,
                "message_id": message.message_id,
                "subscriber_id": message.subscriber_id,
                "channel": message.channel,
                "bot": message.bot,
                "status": end.status,
                "content": content,
                "metadata": None if message.metadata is None else to_json(message.metadata),
                "reason": end.reason,
                "error": end.error,
                "attempts": message.attempts,
                "message_ref": end.ref,
                "created_at_ms": message.created_at_ms,
                "expires_at_ms": message.expires_at_ms,
                "finished_at_ms": now_ms,
                "permission": message.permission,
                "job_id": message.job_id,
            }
        )
    if any(end.message.trace_id for end in endings):
        for row, end in zip(rows, endings, strict=True):
            row["trace_id"] = end.message.trace_id
    if any(end.message.route_id for end in endings):
        for row, end in zip(rows, endings, strict=True):
            row["route_id"] = end.message.route_id
            row["route_steps"] = end.message.route_steps
            row["route_step"] = end.message.route_step
    await tx.insert_deferred("core_messages", rows)


async def find(tx: Tx, project_id: str, message_id: str) -> Message | None:
    found = await find_many(tx, [(project_id, message_id)])
    return found[0] if found else None


async def lock(tx: Tx, project_id: str, message_id: str) -> Message | None:
    """A message, which nothing changes until the transaction ends."""
    await tx.fetch_all(
        "SELECT 1 AS one FROM core_messages WHERE project_id = :project_id"
        f" AND message_id = :message_id{for_update(tx.dialect)}",
        {"project_id": project_id, "message_id": message_id},
    )
    return await find(tx, project_id, message_id)


async def find_many(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[Message]:
    """Messages by (project_id, message_id), of several projects at once."""
    if not keys:
        return []
    rows = await tx.fetch_all(
        f"SELECT {_SELECTED} FROM {key_table(_KEY, tx.dialect)} CROSS JOIN core_messages m"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message",
        key_params(keys, tx.dialect),
    )
    return [_message(row) for row in rows]


async def list_page(
    tx: Tx,
    project_id: str,
    query: MessageQuery,
    after: str | None,
    limit: int,
    *,
    ascending: bool = False,
) -> list[Message]:
    """Newest first, or oldest first; `after` is the last id of the previous page, in that order."""
    # Ids increase with time: after the first that is too old, all are older.
    since_ms = -1 if query.created_after is None else query.created_after
    if ascending and query.created_after is not None:
        after = max(after or "", earliest_id("msg", query.created_after))
    sql, params = page_of(_COLUMNS, project_id, query, after, tx.dialect, ascending=ascending)
    rows = await tx.fetch_all(sql, {**params, "most": limit})
    return [message for message in map(_message, rows) if message.created_at_ms > since_ms]


async def count(tx: Tx, project_id: str, query: MessageQuery, limit: int) -> Count:
    """How many there are, of at most `limit` looked at."""
    places, also, params = led_of(project_id, query, tx.dialect)
    needed = ["created_at_ms"]
    if also:
        needed += ["subscriber_id", "batch_id", "reason", "status", "channel"]
    counts = [
        await count_walked(
            tx,
            "core_messages",
            led_by=led_by,
            order="message_id",
            columns=needed,
            also=also,
            params=params,
            limit=limit,
            since_ms=query.created_after,
        )
        for led_by in places
    ]
    total = sum(each.number for each in counts)
    return Count(min(total, limit), total <= limit and all(each.is_exact for each in counts))


async def find_by_ref(tx: Tx, bot: str, message_ref: str) -> list[Message]:
    """Messages, to any recipient, with the platform's id `message_ref`: it is unique in a chat, but may
    occur in several."""
    rows = await tx.fetch_all(
        f"SELECT {_SELECTED} FROM core_messages m WHERE m.bot = :bot AND m.message_ref = :message_ref",
        {"bot": bot, "message_ref": message_ref},
    )
    return [_message(row) for row in rows]


async def lock_expired(tx: Tx, now_ms: int, limit: int) -> list[Message]:
    """Up to `limit` queued messages of all projects whose time is over, the earliest first; nobody changes
    them until the transaction ends. Those that somebody else is changing are left out."""
    locked = " FOR UPDATE SKIP LOCKED" if tx.dialect == "postgresql" else ""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_messages WHERE status = 'queued' AND expires_at_ms IS NOT NULL"
        " AND expires_at_ms <= :now_ms ORDER BY expires_at_ms LIMIT :most"
        f"{locked}",
        {"now_ms": now_ms, "most": limit},
    )
    return [_message(row) for row in rows]


async def mark_sending(
    tx: Tx, messages: Sequence[Message], *, repeats: bool = False
) -> dict[str, OutgoingMessage | None]:
    """Marks messages as `sending` before the platform is called: see `delivery`.

    Returns the ids of those that were `queued` until now, with their current content, since they may have
    been edited: only the caller that marked a message may send it. On a platform that drops duplicates,
    messages that a crashed runner had marked are marked again.
    """
    if not messages:
        return {}
    found = "'queued', 'sending'" if repeats else "'queued'"
    columns: Sequence[str] = _KEY
    keys: Sequence[tuple[str, ...]] = [message.key for message in messages]
    same_step = ""
    if any(message.route_id is not None for message in messages):
        # One with a route may have moved on meanwhile, and be queued for another bot.
        columns, keys = (*_KEY, "step"), [(*message.key, _step(message)) for message in messages]
        same_step = f" AND {_SAME_STEP} AND m.waits_for IS NULL"
    # Not `IS NOT NULL`: in RETURNING, SQLite 3.40 takes that for true of this column.
    rows = await tx.fetch_all(
        "UPDATE core_messages AS m SET status = 'sending', attempts = attempts + 1, shown = NULL"
        f" FROM {key_table(columns, tx.dialect)}"
        f" WHERE m.project_id = keys.project AND m.message_id = keys.message AND m.status IN ({found})"
        f"{same_step} RETURNING message_id, CASE WHEN edited_at_ms > 0 THEN content END AS edited",
        key_params(keys, tx.dialect),
    )
    return {row["message_id"]: _content(row["edited"]) for row in rows}


async def mark_queued(tx: Tx, refused: Sequence[tuple[Message, str, str | None]]) -> None:
    """Returns messages that the platform refused for now to the queue, each with the error, and with the
    reason `unknown` if it may have been delivered."""
    if refused:
        await tx.execute(
            "UPDATE core_messages AS m SET status = 'queued', error = keys.error,"
            " reason = COALESCE(keys.reason, m.reason)"
            f" FROM {key_table((*_KEY, 'error', 'reason'), tx.dialect)}"
            " WHERE m.project_id = keys.project AND m.message_id = keys.message"
            " AND m.status = 'sending'",
            key_params(
                [(*message.key, error, reason) for message, error, reason in refused], tx.dialect
            ),
        )


async def record_failed_try(tx: Tx, failed: Sequence[tuple[Message, str]]) -> None:
    """Counts an attempt of messages for which the platform was not called, and records why."""
    if failed:
        await tx.execute(
            "UPDATE core_messages AS m SET attempts = attempts + 1, error = keys.error"
            f" FROM {key_table((*_KEY, 'error'), tx.dialect)}"
            " WHERE m.project_id = keys.project AND m.message_id = keys.message"
            " AND m.status = 'queued'",
            key_params([(*message.key, error) for message, error in failed], tx.dialect),
        )


async def unmark_sending(tx: Tx, messages: Sequence[Message]) -> None:
    """Reverts `mark_sending`: the platform was not called."""
    if messages:
        await tx.execute(
            "UPDATE core_messages AS m SET status = 'queued', attempts = attempts - 1"
            f" FROM {key_table(_KEY, tx.dialect)}"
            " WHERE m.project_id = keys.project AND m.message_id = keys.message"
            " AND m.status = 'sending'",
            key_params([message.key for message in messages], tx.dialect),
        )


async def finish(tx: Tx, ends: Sequence[FinalStatus], now_ms: int) -> set[str]:
    """Sets the final status of messages; returns the ids of those that had none yet."""
    if not ends:
        return set()
    columns = (*_KEY, "status", "reason", "error", "message_ref")
    rows = await tx.fetch_all(
        "UPDATE core_messages AS m SET status = keys.status, finished_at_ms = :now_ms,"
        " reason = keys.reason, error = keys.error, message_ref = keys.message_ref"
        f" FROM {key_table(columns, tx.dialect)}"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message"
        " AND m.status IN ('queued', 'sending') RETURNING message_id",
        {
            **key_params(
                [(*end.message.key, end.status, end.reason, end.error, end.ref) for end in ends],
                tx.dialect,
            ),
            "now_ms": now_ms,
        },
    )
    return {row["message_id"] for row in rows}


async def correct(tx: Tx, ends: Sequence[FinalStatus]) -> set[str]:
    """Sets the real status of messages that ended as `unknown`; returns their ids."""
    if not ends:
        return set()
    columns = (*_KEY, "status", "reason", "error", "message_ref", "step")
    rows = await tx.fetch_all(
        "UPDATE core_messages AS m SET status = keys.status,"
        " reason = keys.reason, error = keys.error, message_ref = keys.message_ref"
        f" FROM {key_table(columns, tx.dialect)}"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message"
        f" AND m.status = 'unknown' AND {_SAME_STEP} RETURNING message_id",
        key_params(
            [
                (*end.message.key, end.status, end.reason, end.error, end.ref, _step(end.message))
                for end in ends
            ],
            tx.dialect,
        ),
    )
    return {row["message_id"] for row in rows}


#: A message that the platform has accepted, on this step of its route or an earlier one.
_ACCEPTED = "(status = 'sent' OR (route_id IS NOT NULL AND status IN ('queued', 'sending')))"


async def mark_delivered(tx: Tx, message: Message, at_ms: int) -> bool:
    """Records that a sent message arrived; False if that was recorded before, or it was not sent."""
    return (
        await tx.execute(
            "UPDATE core_messages SET delivered_at_ms = :at_ms WHERE project_id = :project_id"
            f" AND message_id = :message_id AND {_ACCEPTED} AND delivered_at_ms IS NULL",
            {**_params(message), "at_ms": at_ms},
        )
        > 0
    )


async def mark_read(tx: Tx, message: Message, at_ms: int) -> bool:
    """Records that a sent message was read; False if that was recorded before, or it was not sent."""
    return (
        await tx.execute(
            "UPDATE core_messages SET read_at_ms = :at_ms WHERE project_id = :project_id"
            f" AND message_id = :message_id AND {_ACCEPTED} AND read_at_ms IS NULL",
            {**_params(message), "at_ms": at_ms},
        )
        > 0
    )


@value_object
class SentEarlier:
    """What a bot has sent a person by a time, of their latest messages, and of those after an id."""

    project_id: str
    subscriber_id: str
    bot: str
    after: str
    until_ms: int
    most: int


async def mark_earlier(
    tx: Tx, sent: SentEarlier, column: Literal["delivered_at_ms", "read_at_ms"], at_ms: int
) -> list[Message]:
    """Records that sent messages arrived, or were read; returns those of which that was not recorded before.

    Without those with a route, whose times are those of their copies: see `route_store.find_earlier`.
    """
    latest = " UNION ALL ".join(
        "SELECT * FROM (SELECT message_id, bot, status, route_id, finished_at_ms, read_at_ms,"
        " delivered_at_ms FROM core_messages WHERE project_id = :project_id"
        f" AND subscriber_id = :subscriber_id AND message_id > :after{place}"
        " ORDER BY message_id DESC LIMIT :most) AS latest"
        for place in places_of_subscriber(tx.dialect)
    )
    rows = await tx.fetch_all(
        f"UPDATE core_messages SET {column} ="
        " CASE WHEN created_at_ms > :at_ms THEN created_at_ms ELSE :at_ms END"
        " WHERE project_id = :project_id AND message_id IN"
        f" (SELECT message_id FROM ({latest}) AS found WHERE bot = :bot AND status = 'sent'"
        f" AND route_id IS NULL AND {column} IS NULL AND finished_at_ms <= :until_ms)"
        f" AND status = 'sent' AND {column} IS NULL RETURNING {_COLUMNS}",
        {
            "project_id": sent.project_id,
            "subscriber_id": sent.subscriber_id,
            "bot": sent.bot,
            "after": sent.after,
            "until_ms": sent.until_ms,
            "most": sent.most,
            "at_ms": at_ms,
        },
    )
    return sorted((_message(row) for row in rows), key=lambda message: message.message_id)


async def fail_sent(tx: Tx, end: FinalStatus) -> bool:
    """Records that a message which the platform had accepted has failed; False unless it was `sent`, without
    a report that it arrived."""
    return (
        await tx.execute(
            "UPDATE core_messages SET status = 'failed', reason = :reason, error = :error"
            " WHERE project_id = :project_id AND message_id = :message_id AND status = 'sent'"
            " AND delivered_at_ms IS NULL AND read_at_ms IS NULL",
            {**_params(end.message), "reason": end.reason, "error": end.error},
        )
        > 0
    )


async def next_project(tx: Tx, after: str, *, table: str = "core_messages") -> str | None:
    """The first project behind `after` that has messages in `table`, which may be a partition; None if there
    is none."""
    found: str | None = await tx.fetch_val(
        f"SELECT MIN(project_id) AS found FROM {table} WHERE project_id > :after",
        {"after": after},
    )
    return found


async def delete_ended(
    tx: Tx, project_id: str, before: str, limit: int, *, table: str = "core_messages"
) -> int:
    """Deletes up to `limit` messages with ids below `before` whose delivery has ended from `table`, which may
    be a partition; returns how many."""
    these = in_query(
        "message_id",
        f"SELECT message_id FROM {table} WHERE project_id = :project_id"
        " AND message_id < :before AND status NOT IN ('queued', 'sending')"
        " ORDER BY message_id LIMIT :most",
        tx.dialect,
    )
    return await tx.execute(
        f"DELETE FROM {table} WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, "before": before, "most": limit},
    )


def _step(message: Message) -> str:
    return "" if message.route_step is None else str(message.route_step)


def _params(message: Message) -> dict[str, str]:
    return {"project_id": message.project_id, "message_id": message.message_id}


def _message(row: Row) -> Message:
    values = list(row)
    values[_CONTENT] = OutgoingMessage.from_payload(from_json(values[_CONTENT]))
    if values[_METADATA] is not None:
        values[_METADATA] = from_json(values[_METADATA])
    if values[_SHOWN] is not None:
        values[_SHOWN] = _content(values[_SHOWN])
    return Message(*values)


def _content(text: str | None) -> OutgoingMessage | None:
    return None if text is None else OutgoingMessage.from_payload(from_json(text))
