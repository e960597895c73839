"""The sandbox's tables: people, their chats and messages.

Every change raises the person's revision in its own transaction. The row stays locked until the commit, so
revisions become visible in order and a page that polls for newer ones misses none.
"""

from collections.abc import Iterable
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_sandbox.models import Chat, Message, MessageBody, NewPerson, Person, PersonChange

_MESSAGE = "position, channel, author, kind, body, sent_at_ms, edited_at_ms, deleted, revision"


async def people(tx: Tx) -> list[Person]:
    """All people, in the order of their creation."""
    return [_person(row) for row in await tx.fetch_all("SELECT * FROM sandbox_people ORDER BY 1")]


async def person(tx: Tx, person_id: str) -> Person | None:
    row = await tx.fetch_one(
        "SELECT * FROM sandbox_people WHERE person_id = :person_id", {"person_id": person_id}
    )
    return _person(row) if row else None


async def add_person(tx: Tx, person_id: str, new: NewPerson, now_ms: int) -> None:
    await tx.insert(
        "sandbox_people",
        {
            "person_id": person_id,
            "name": new.name,
            "username": new.username.lstrip("@"),
            "lang": new.lang,
            "revision": 1,
            "created_at_ms": now_ms,
        },
    )


async def change_person(tx: Tx, person_id: str, change: PersonChange) -> None:
    """Writes the fields that are given."""
    values = change.model_dump(exclude_none=True)
    if "username" in values:
        values["username"] = values["username"].lstrip("@")
    for column, value in values.items():
        await tx.execute(
            f"UPDATE sandbox_people SET {column} = :value WHERE person_id = :person_id",
            {"value": value, "person_id": person_id},
        )


async def delete_person(tx: Tx, person_id: str) -> bool:
    """Deletes the person with chats and messages; False if there was none."""
    return bool(
        await tx.execute(
            "DELETE FROM sandbox_people WHERE person_id = :person_id", {"person_id": person_id}
        )
    )


async def revision(tx: Tx, person_id: str) -> int | None:
    """The person's newest revision; None if there is no such person."""
    found: int | None = await tx.fetch_val(
        "SELECT revision FROM sandbox_people WHERE person_id = :person_id",
        {"person_id": person_id},
    )
    return found


async def raise_revision(tx: Tx, person_id: str) -> int | None:
    """A new revision for what this transaction writes; None if there is no such person."""
    found: int | None = await tx.fetch_val(
        "UPDATE sandbox_people SET revision = revision + 1 WHERE person_id = :person_id"
        " RETURNING revision",
        {"person_id": person_id},
    )
    return found


async def raise_every_revision(tx: Tx) -> None:
    """For a change that every page shows."""
    await tx.execute("UPDATE sandbox_people SET revision = revision + 1")


async def chats(tx: Tx, person_id: str) -> list[Chat]:
    rows = await tx.fetch_all(
        "SELECT * FROM sandbox_chats WHERE person_id = :person_id ORDER BY channel",
        {"person_id": person_id},
    )
    return [_chat(row) for row in rows]


async def chat(tx: Tx, person_id: str, channel: str) -> Chat | None:
    row = await tx.fetch_one(
        "SELECT * FROM sandbox_chats WHERE person_id = :person_id AND channel = :channel",
        {"person_id": person_id, "channel": channel},
    )
    return _chat(row) if row else None


async def open_chat(tx: Tx, person_id: str, channel: str) -> None:
    """Creates the chat, or unblocks the bot."""
    await tx.execute(
        "INSERT INTO sandbox_chats (person_id, channel, blocked, unread, notice, notice_revision)"
        " VALUES (:person_id, :channel, 0, 0, '', 0)"
        " ON CONFLICT (person_id, channel) DO UPDATE SET blocked = 0",
        {"person_id": person_id, "channel": channel},
    )


async def change_chat(tx: Tx, person_id: str, channel: str, **values: int | str) -> None:
    """Writes the given columns of a chat."""
    assignments = ", ".join(f"{column} = :{column}" for column in values)
    await tx.execute(
        f"UPDATE sandbox_chats SET {assignments}"
        " WHERE person_id = :person_id AND channel = :channel",
        {"person_id": person_id, "channel": channel, **values},
    )


async def count_unread(tx: Tx, person_id: str, channel: str) -> None:
    await tx.execute(
        "UPDATE sandbox_chats SET unread = unread + 1"
        " WHERE person_id = :person_id AND channel = :channel",
        {"person_id": person_id, "channel": channel},
    )


async def ref_of_key(tx: Tx, person_id: str, channel: str, send_key: str) -> str | None:
    """The `ref` of the message that a bot sent with this key; None if there is none."""
    position = await tx.fetch_val(
        "SELECT position FROM sandbox_messages WHERE person_id = :person_id AND channel = :channel"
        " AND send_key = :send_key",
        {"person_id": person_id, "channel": channel, "send_key": send_key},
    )
    return None if position is None else str(position)


async def add_message(
    tx: Tx, person_id: str, message: Message, send_key: str | None = None
) -> None:
    await tx.insert(
        "sandbox_messages",
        {
            "person_id": person_id,
            "position": int(message.ref),
            "channel": message.channel,
            "author": message.author,
            "kind": message.kind,
            "send_key": send_key,
            "body": _body(message),
            "sent_at_ms": message.sent_at_ms,
            "edited_at_ms": None,
            "deleted": 0,
            "revision": message.revision,
        },
    )


async def message(tx: Tx, person_id: str, channel: str, ref: str) -> Message | None:
    """A message in the chat that was not deleted."""
    if not ref.isascii() or not ref.isdigit() or len(ref) > 18:
        return None
    row = await tx.fetch_one(
        f"SELECT {_MESSAGE} FROM sandbox_messages WHERE person_id = :person_id"
        " AND position = :position AND channel = :channel AND deleted = 0",
        {"person_id": person_id, "position": int(ref), "channel": channel},
    )
    return _message(row) if row else None


async def change_message(tx: Tx, person_id: str, message: Message) -> None:
    """Writes an edit or a deletion."""
    await tx.execute(
        "UPDATE sandbox_messages SET body = :body, edited_at_ms = :edited_at_ms,"
        " deleted = :deleted, revision = :revision"
        " WHERE person_id = :person_id AND position = :position",
        {
            "person_id": person_id,
            "position": int(message.ref),
            "body": _body(message),
            "edited_at_ms": message.edited_at_ms,
            "deleted": int(message.deleted),
            "revision": message.revision,
        },
    )


async def newest_messages(tx: Tx, person_id: str, per_chat: int) -> list[Message]:
    """The last messages of every chat, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM (SELECT {_MESSAGE}, ROW_NUMBER() OVER"
        " (PARTITION BY channel ORDER BY position DESC) AS age"
        " FROM sandbox_messages WHERE person_id = :person_id AND deleted = 0) AS aged"
        " WHERE age <= :per_chat ORDER BY position",
        {"person_id": person_id, "per_chat": per_chat},
    )
    return _messages(rows)


async def earlier_messages(
    tx: Tx, person_id: str, channel: str, before: int, limit: int
) -> list[Message]:
    """The messages of a chat before a position, the newest of them first."""
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM sandbox_messages WHERE person_id = :person_id"
        " AND channel = :channel AND deleted = 0 AND position < :before"
        " ORDER BY position DESC LIMIT :limit",
        {"person_id": person_id, "channel": channel, "before": before, "limit": limit},
    )
    return _messages(rows)


async def changed_messages(tx: Tx, person_id: str, since: int, limit: int) -> list[Message]:
    """Messages that are new, edited or removed since a revision, in the order of the changes."""
    rows = await tx.fetch_all(
        f"SELECT {_MESSAGE} FROM sandbox_messages"
        " WHERE person_id = :person_id AND revision > :since ORDER BY revision LIMIT :limit",
        {"person_id": person_id, "since": since, "limit": limit},
    )
    return _messages(rows)


def _person(row: Row) -> Person:
    return Person(
        person_id=row["person_id"],
        name=row["name"],
        username=row["username"],
        lang=row["lang"],
        created_at_ms=row["created_at_ms"],
    )


def _chat(row: Row) -> Chat:
    return Chat(
        channel=row["channel"],
        blocked=bool(row["blocked"]),
        unread=row["unread"],
        notice=row["notice"],
        notice_revision=row["notice_revision"],
    )


def _messages(rows: Iterable[Row]) -> list[Message]:
    return [_message(row) for row in rows]


def _message(row: Row) -> Message:
    body = MessageBody.model_validate_json(row["body"])
    fields: dict[str, Any] = {
        "ref": str(row["position"]),
        "channel": row["channel"],
        "author": row["author"],
        "kind": row["kind"],
        "sent_at_ms": row["sent_at_ms"],
        "edited_at_ms": row["edited_at_ms"],
        "deleted": bool(row["deleted"]),
        "revision": row["revision"],
    }
    return Message(**fields, **dict(body))


def _body(message: Message) -> str:
    fields = set(MessageBody.model_fields)
    return message.model_dump_json(include=fields)
