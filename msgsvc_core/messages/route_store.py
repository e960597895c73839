"""The SQL of messages that are sent by a route: their moves, and their copies. Each move is one conditional
UPDATE."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from msgsvc_core.db import Row, Tx, WriteBatch
from msgsvc_core.db.sql import array_param, in_array, in_query, key_params, key_table
from msgsvc_core.messages import store
from msgsvc_core.messages.fields import CopyStatus
from msgsvc_core.messages.models import FinalStatus, Message, MessageCopy
from msgsvc_core.routing.models import Until

_COPY = (
    "step, channel, subscriber_id, bot, status, reason, error, message_ref, finished_at_ms,"
    " delivered_at_ms, read_at_ms"
)

#: The states of a message at a step, before a move: its call is not over; it is queued; it waits for a
#: report or an answer; any of them.
State = Literal["calling", "queued", "waiting", "open"]
_STATES: Mapping[State, str] = {
    "calling": "m.status IN ('queued', 'sending') AND m.waits_for IS NULL",
    "queued": "m.status = 'queued'",
    "waiting": "m.status = 'sending' AND m.waits_for IS NOT NULL",
    "open": "m.status IN ('queued', 'sending')",
}

_THIS = "project_id = :project_id AND message_id = :message_id"


async def change(tx: Tx, message: Message, state: State, fields: Mapping[str, Any]) -> bool:
    """Sets columns of a message that is in this state at its step; False if it is not."""
    columns = ", ".join(f"{name} = :new_{name}" for name in fields)
    changed = await tx.execute(
        f"UPDATE core_messages AS m SET {columns}"
        f" WHERE {_THIS} AND route_step = :step AND {_STATES[state]}",
        {
            **_key(message),
            "step": message.route_step,
            **{f"new_{name}": value for name, value in fields.items()},
        },
    )
    return changed > 0


async def finish_calls(
    tx: Tx, ended: Sequence[tuple[Message, MessageCopy]], now_ms: int
) -> set[tuple[str, str]]:
    """Ends messages whose call at their step is over as their copies are; returns the keys of those that were
    there."""
    return await _change_many(
        tx,
        "calling",
        ("status", "reason", "error", "ref"),
        [
            (
                message,
                (
                    copy.status,
                    copy.reason if copy.status in {"failed", "unknown"} else None,
                    copy.error,
                    copy.message_ref,
                ),
            )
            for message, copy in ended
        ],
        "status = keys.status, reason = keys.reason, error = keys.error, message_ref = keys.ref,"
        " waits_for = NULL, finished_at_ms = :now_ms",
        {"now_ms": now_ms},
    )


async def await_reports(
    tx: Tx, sent: Sequence[tuple[Message, Until, MessageCopy]]
) -> set[tuple[str, str]]:
    """Messages whose call at their step is over wait for a report or an answer; returns the keys of those
    that were there."""
    return await _change_many(
        tx,
        "calling",
        ("until", "ref"),
        [(message, (until, copy.message_ref)) for message, until, copy in sent],
        "status = 'sending', waits_for = keys.until, message_ref = keys.ref",
    )


async def move(
    tx: Tx, moves: Sequence[tuple[Message, Message]], state: State
) -> set[tuple[str, str]]:
    """Takes messages in this state from their step to another, each given as it was and as it is there;
    returns the keys of those that were there."""
    return await _change_many(
        tx,
        state,
        ("following", "subscriber", "new_channel", "new_bot"),
        [
            (
                message,
                (str(there.route_step), there.subscriber_id, there.channel, there.bot),
            )
            for message, there in moves
        ],
        "status = 'queued', route_step = CAST(keys.following AS integer),"
        " subscriber_id = keys.subscriber, channel = keys.new_channel, bot = keys.new_bot,"
        " waits_for = NULL, message_ref = NULL, attempts = 0, reason = NULL, error = NULL",
    )


async def _change_many(
    tx: Tx,
    state: State,
    columns: Sequence[str],
    rows: Sequence[tuple[Message, tuple[str | None, ...]]],
    assignments: str,
    params: Mapping[str, Any] | None = None,
) -> set[tuple[str, str]]:
    """As `change`, of many messages: the values of `columns` are `keys`' in the assignments."""
    if not rows:
        return set()
    known = ("project", "message", "at_step", *columns)
    changed = await tx.fetch_all(
        f"UPDATE core_messages AS m SET {assignments} FROM {key_table(known, tx.dialect)}"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message"
        f" AND m.route_step = CAST(keys.at_step AS integer) AND {_STATES[state]}"
        " RETURNING project_id, message_id",
        {
            **key_params(
                [(*message.key, str(message.route_step), *values) for message, values in rows],
                tx.dialect,
            ),
            **(params or {}),
        },
    )
    return {(row["project_id"], row["message_id"]) for row in changed}


def add_copy(unit: WriteBatch, message: Message, copy: MessageCopy) -> None:
    """Adds a step that was passed over before the message was accepted."""
    unit.insert("core_message_copies", {**_key(message), **_values(copy)})


async def add_ended(
    tx: Tx,
    endings: Sequence[FinalStatus],
    past: Mapping[str, Sequence[MessageCopy]],
    now_ms: int,
) -> None:
    """Adds the steps of new messages that have ended: the last one, and those before it in `past`, by
    subscriber."""
    rows = []
    for end in endings:
        message = end.message
        if message.route_step is None:
            continue
        last = MessageCopy(
            step=message.route_step,
            channel=message.channel,
            subscriber_id=message.subscriber_id,
            bot=message.bot,
            status=cast(CopyStatus, end.status),
            reason=end.reason,
            error=end.error,
            message_ref=end.ref,
            finished_at_ms=now_ms,
        )
        rows += [
            {**_key(message), **_values(copy)}
            for copy in (*past.get(message.subscriber_id, ()), last)
        ]
    if rows:
        await tx.insert_deferred("core_message_copies", rows)


async def put_copies(tx: Tx, copies: Sequence[tuple[Message, MessageCopy, str | None]]) -> None:
    """Records what became of steps, each with the user whose answer ends the route."""
    if not copies:
        return
    names = _COPY.split(", ")
    numbers = {"step", *(name for name in names if name.endswith("_ms"))}
    values = ", ".join(
        f"CAST(keys.new_{name} AS bigint)" if name in numbers else f"keys.new_{name}"
        for name in names
    )
    columns = ("project", "message", "person", *(f"new_{name}" for name in names))
    await tx.execute(
        f"INSERT INTO core_message_copies (project_id, message_id, answerer, {_COPY})"
        f" SELECT keys.project, keys.message, keys.person, {values}"
        # Without a condition, SQLite takes ON for that of a join.
        f" FROM {key_table(columns, tx.dialect)} WHERE true"
        " ON CONFLICT (project_id, message_id, step) DO UPDATE SET status = excluded.status,"
        " reason = excluded.reason, error = excluded.error, message_ref = excluded.message_ref,"
        " answerer = excluded.answerer",
        key_params(
            [
                (*message.key, answerer, *(_text(value) for value in _values(copy).values()))
                for message, copy, answerer in copies
            ],
            tx.dialect,
        ),
    )


async def find_copies(tx: Tx, message: Message) -> list[MessageCopy]:
    """The steps of a message that are over, in their order."""
    rows = await tx.fetch_all(
        f"SELECT {_COPY} FROM core_message_copies WHERE {_THIS} ORDER BY step", _key(message)
    )
    return [_copy(row) for row in rows]


async def with_past_steps(tx: Tx, messages: Sequence[Message]) -> list[Message]:
    """The messages, those with a route with their steps."""
    keys = [message.key for message in messages if message.route_id is not None]
    if not keys:
        return list(messages)
    columns = ", ".join(f"c.{column}" for column in _COPY.split(", "))
    rows = await tx.fetch_all(
        f"SELECT c.project_id, c.message_id, {columns}"
        f" FROM {key_table(('project', 'message'), tx.dialect)} CROSS JOIN core_message_copies c"
        " WHERE c.project_id = keys.project AND c.message_id = keys.message ORDER BY c.step",
        key_params(keys, tx.dialect),
    )
    found: dict[tuple[str, str], list[MessageCopy]] = defaultdict(list)
    for row in rows:
        found[row["project_id"], row["message_id"]].append(_copy(row))
    return [
        replace(message, past_steps=tuple(found[message.key])) if message.key in found else message
        for message in messages
    ]


async def merge_people(tx: Tx, project_id: str, external_id: str, into: str) -> None:
    """Waiting messages for a person are for the one whose id stays."""
    # The first condition is that of the index by status.
    await tx.execute(
        "UPDATE core_messages SET external_id = :into WHERE project_id = :project_id"
        " AND status <> 'sent' AND status IN ('queued', 'sending') AND external_id = :external_id",
        {"project_id": project_id, "external_id": external_id, "into": into},
    )


async def find_people(tx: Tx, messages: Sequence[Message]) -> dict[tuple[str, str], str | None]:
    """The `external_id` of each message that has one, as it is now, by the messages' keys."""
    keys = [message.key for message in messages if message.external_id is not None]
    if not keys:
        return {}
    rows = await tx.fetch_all(
        "SELECT m.project_id, m.message_id, m.external_id"
        f" FROM {key_table(('project', 'message'), tx.dialect)} CROSS JOIN core_messages m"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["message_id"]): row["external_id"] for row in rows}


async def find_by_ref(tx: Tx, bot: str, message_ref: str) -> list[tuple[str, str, int]]:
    """The steps at which a bot sent what the platform knows by this id: projects, messages and steps."""
    rows = await tx.fetch_all(
        "SELECT project_id, message_id, step FROM core_message_copies"
        " WHERE bot = :bot AND message_ref = :message_ref",
        {"bot": bot, "message_ref": message_ref},
    )
    return [(row["project_id"], row["message_id"], row["step"]) for row in rows]


async def find_earlier(
    tx: Tx, sent: store.SentEarlier, column: Literal["delivered_at_ms", "read_at_ms"]
) -> list[tuple[str, str, int]]:
    """The steps at which a bot has sent a person something, of which that is not recorded, as in
    `find_by_ref`."""
    rows = await tx.fetch_all(
        "SELECT project_id, message_id, step FROM core_message_copies"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id AND bot = :bot"
        f" AND message_id > :after AND status = 'sent' AND {column} IS NULL"
        " AND finished_at_ms <= :until_ms ORDER BY message_id DESC LIMIT :most",
        {
            "project_id": sent.project_id,
            "subscriber_id": sent.subscriber_id,
            "bot": sent.bot,
            "after": sent.after,
            "until_ms": sent.until_ms,
            "most": sent.most,
        },
    )
    return [(row["project_id"], row["message_id"], row["step"]) for row in rows]


async def find_by_answerer(tx: Tx, bot: str, user_id: str) -> list[tuple[str, str, int]]:
    """The steps at which a bot has sent what this user's answer ends, as in `find_by_ref`."""
    rows = await tx.fetch_all(
        "SELECT project_id, message_id, step FROM core_message_copies"
        " WHERE bot = :bot AND answerer = :user_id",
        {"bot": bot, "user_id": user_id},
    )
    return [(row["project_id"], row["message_id"], row["step"]) for row in rows]


async def mark_copy(
    tx: Tx,
    message: Message,
    step: int,
    column: Literal["delivered_at_ms", "read_at_ms"],
    at_ms: int,
) -> None:
    """Records the first report of a copy."""
    await tx.execute(
        f"UPDATE core_message_copies SET {column} = COALESCE({column}, :at_ms)"
        f" WHERE {_THIS} AND step = :step",
        {**_key(message), "step": step, "at_ms": at_ms},
    )


async def fail_copy(tx: Tx, message: Message, step: int, reason: str, error: str) -> bool:
    """Records that a copy which the platform had accepted has failed; False if it has reported otherwise."""
    changed = await tx.execute(
        "UPDATE core_message_copies SET status = 'failed', reason = :reason, error = :error,"
        f" answerer = NULL WHERE {_THIS} AND step = :step AND status = 'sent'"
        " AND delivered_at_ms IS NULL AND read_at_ms IS NULL",
        {**_key(message), "step": step, "reason": reason, "error": error},
    )
    return changed > 0


async def forget_answerers(tx: Tx, message: Message) -> None:
    """The route has ended: no answer is waited for any more."""
    await tx.execute(
        f"UPDATE core_message_copies SET answerer = NULL WHERE {_THIS} AND answerer IS NOT NULL",
        _key(message),
    )


async def delete_of_subscriber(tx: Tx, project_id: str, subscriber_id: str) -> int:
    """Deletes the copies that a subscriber got, but for those of messages that have not ended, whose texts it
    empties; returns how many are left."""
    params = {"project_id": project_id, "subscriber_id": subscriber_id}
    of_them = "project_id = :project_id AND subscriber_id = :subscriber_id"
    await tx.execute(
        f"DELETE FROM core_message_copies WHERE {of_them} AND NOT {_is_open('core_message_copies')}",
        params,
    )
    return await tx.execute(
        f"UPDATE core_message_copies SET error = NULL, answerer = NULL WHERE {of_them}", params
    )


async def delete_of_ended(tx: Tx, project_id: str, message_ids: Sequence[str]) -> None:
    """Deletes the copies of those messages that have ended."""
    these = in_array("message_id", "ids", tx.dialect)
    await tx.execute(
        f"DELETE FROM core_message_copies WHERE project_id = :project_id AND {these}"
        f" AND NOT {_is_open('core_message_copies')}",
        {"project_id": project_id, "ids": array_param(message_ids, tx.dialect)},
    )


async def delete_before(
    tx: Tx, project_id: str, before: str, limit: int, *, table: str = "core_message_copies"
) -> int:
    """Deletes up to `limit` copies of ended messages with ids below `before`; returns how many."""
    these = in_query(
        "message_id",
        f"SELECT message_id FROM {table} WHERE project_id = :project_id AND message_id < :before"
        f" AND NOT {_is_open(table)} ORDER BY message_id LIMIT :most",
        tx.dialect,
    )
    return await tx.execute(
        f"DELETE FROM {table} WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, "before": before, "most": limit},
    )


async def has_sent_copy(tx: Tx, message: Message) -> bool:
    """Whether a messenger has accepted the message at a step that is over."""
    found = await tx.fetch_val(
        f"SELECT 1 AS one FROM core_message_copies WHERE {_THIS} AND status = 'sent' LIMIT 1",
        _key(message),
    )
    return found is not None


def _is_open(table: str) -> str:
    """Whether the message of a copy has not ended: it may end by the copy yet."""
    return (
        f"EXISTS (SELECT 1 FROM core_messages m WHERE m.project_id = {table}.project_id"
        f" AND m.message_id = {table}.message_id AND m.status IN ('queued', 'sending'))"
    )


def _key(message: Message) -> dict[str, Any]:
    return {"project_id": message.project_id, "message_id": message.message_id}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _values(copy: MessageCopy) -> dict[str, Any]:
    return {name: getattr(copy, name) for name in _COPY.split(", ")}


def _copy(row: Row) -> MessageCopy:
    return MessageCopy(**{name: row[name] for name in _COPY.split(", ")})
