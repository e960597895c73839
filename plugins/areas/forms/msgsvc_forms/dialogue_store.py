"""The SQL of conversations in messengers."""

from typing import Any, Literal, get_args

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, limited_delete
from msgsvc_core.kernel.values import value_object

#: `replaced`: by another form or a restart; `gone`: the form was deleted.
DialogueStatus = Literal["active", "submitted", "cancelled", "replaced", "expired", "gone"]

_NAMES = (
    "project_id",
    "dialogue_id",
    "channel",
    "chat_id",
    "subscriber_id",
    "form_id",
    "version",
    "status",
    "state",
    "revision",
    "aside_at_ms",
    "created_at_ms",
    "updated_at_ms",
    "thread",
)
_COLUMNS = ", ".join(_NAMES)


@value_object
class Dialogue:
    """A row: `state` is JSON, see `dialogue.State`; of an ended one, only the references of its messages."""

    project_id: str
    dialogue_id: str
    channel: str
    chat_id: str
    subscriber_id: str
    form_id: str
    version: int
    status: DialogueStatus
    state: str
    revision: int
    aside_at_ms: int | None
    created_at_ms: int
    updated_at_ms: int
    #: Where in the chat it goes on; None for the chat itself.
    thread: str | None = None


async def insert(tx: Tx, dialogue: Dialogue) -> bool:
    """False if another conversation is active in the chat."""
    return bool(
        await tx.execute(
            f"INSERT INTO forms_dialogues ({_COLUMNS})"
            f" VALUES ({', '.join(f':{name}' for name in _NAMES)})"
            " ON CONFLICT (channel, chat_id) WHERE status = 'active' DO NOTHING",
            {name: getattr(dialogue, name) for name in _NAMES},
        )
    )


async def lock_active(tx: Tx, channel: str, chat_id: str) -> Dialogue | None:
    """Locks the chat's active conversation."""
    where = "channel = :channel AND chat_id = :chat_id AND status = 'active'"
    return await _lock(tx, where, channel=channel, chat_id=chat_id)


async def lock(tx: Tx, project_id: str, dialogue_id: str) -> Dialogue | None:
    """Locks a conversation by its id; it may have ended."""
    where = "project_id = :project_id AND dialogue_id = :dialogue_id"
    return await _lock(tx, where, project_id=project_id, dialogue_id=dialogue_id)


async def lock_with_file(
    tx: Tx, project_id: str, subscriber_id: str, file_id: str
) -> Dialogue | None:
    """Locks a subscriber's active conversation that has this file, on any bot."""
    where = (
        "project_id = :project_id AND subscriber_id = :subscriber_id AND status = 'active'"
        " AND state LIKE :file_id"
    )
    return await _lock(
        tx,
        where,
        project_id=project_id,
        subscriber_id=subscriber_id,
        file_id=f"%{file_id}%",
    )


async def _lock(tx: Tx, where: str, **values: Any) -> Dialogue | None:
    sql = f"SELECT {_COLUMNS} FROM forms_dialogues WHERE {where}" + for_update(tx.dialect)
    return _dialogue(await tx.fetch_one(sql, values))


async def find_last_submitted(tx: Tx, channel: str, chat_id: str) -> Dialogue | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM forms_dialogues WHERE channel = :channel AND chat_id = :chat_id"
        " AND status = 'submitted' ORDER BY updated_at_ms DESC LIMIT 1",
        {"channel": channel, "chat_id": chat_id},
    )
    return _dialogue(row)


async def change(
    tx: Tx, dialogue: Dialogue, state: str, *, status: DialogueStatus = "active", now_ms: int
) -> bool:
    """False if it was changed, or ended, since `dialogue` was read."""
    return bool(
        await tx.execute(
            "UPDATE forms_dialogues SET state = :state, status = :status,"
            " revision = revision + 1, updated_at_ms = :now_ms"
            " WHERE project_id = :project_id AND dialogue_id = :dialogue_id"
            " AND revision = :revision AND status = 'active'",
            {
                "state": state,
                "status": status,
                "now_ms": now_ms,
                "project_id": dialogue.project_id,
                "dialogue_id": dialogue.dialogue_id,
                "revision": dialogue.revision,
            },
        )
    )


async def move(tx: Tx, dialogue: Dialogue, thread: str | None) -> None:
    """It goes on in another thread of the chat."""
    await tx.execute(
        "UPDATE forms_dialogues SET thread = :thread"
        " WHERE project_id = :project_id AND dialogue_id = :dialogue_id",
        {
            "thread": thread,
            "project_id": dialogue.project_id,
            "dialogue_id": dialogue.dialogue_id,
        },
    )


async def record_interruption(tx: Tx, dialogue: Dialogue, now_ms: int) -> None:
    await tx.execute(
        "UPDATE forms_dialogues SET aside_at_ms = :now_ms"
        " WHERE project_id = :project_id AND dialogue_id = :dialogue_id",
        {
            "now_ms": now_ms,
            "project_id": dialogue.project_id,
            "dialogue_id": dialogue.dialogue_id,
        },
    )


async def lock_abandoned(tx: Tx, before_ms: int, limit: int) -> list[Dialogue]:
    """Locks conversations without activity since `before_ms`, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM forms_dialogues"
        " WHERE status = 'active' AND updated_at_ms < :before_ms"
        " ORDER BY updated_at_ms LIMIT :most"
        + (" FOR UPDATE SKIP LOCKED" if tx.dialect == "postgresql" else ""),
        {"before_ms": before_ms, "most": limit},
    )
    return [_of(row) for row in rows]


async def purge(tx: Tx, before_ms: int, limit: int) -> int:
    """Deletes some of those that ended before; returns how many."""
    # One by one, and not as what is not active: so the index by status and age finds them.
    statuses = ", ".join(f"'{status}'" for status in get_args(DialogueStatus) if status != "active")
    ended = f"status IN ({statuses}) AND updated_at_ms < :before_ms"
    old = limited_delete("forms_dialogues", ended, tx.dialect)
    params = {"before_ms": before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM forms_dialogues WHERE {old}", params)


def _dialogue(row: Row | None) -> Dialogue | None:
    return None if row is None else _of(row)


def _of(row: Row) -> Dialogue:
    fields: dict[str, Any] = {name: row[name] for name in _NAMES}
    return Dialogue(**fields)
