"""The SQL of subscribers, their tags and subscription links."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import joined, key_params, key_table
from msgsvc_core.subscribers.models import Receiver, Subscriber, SubscriberQuery

_COLUMNS = (
    "project_id, subscriber_id, channel, bot, user_id, chat_id, first_name, username, lang,"
    " external_id, status, source, created_at_ms, last_seen_at_ms"
)

_COLUMN_NAMES = tuple(_COLUMNS.split(", "))
_SELECTED = ", ".join(f"s.{column}" for column in _COLUMN_NAMES)


async def insert_if_new(tx: Tx, subscriber: Subscriber) -> bool:
    """False if the person is a subscriber of that channel and project already."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_subscribers ({_COLUMNS}) VALUES (:project_id, :subscriber_id,"
            " :channel, :bot, :user_id, :chat_id, :first_name, :username, :lang, NULL, :status,"
            " :source, :now_ms, :now_ms) ON CONFLICT (project_id, channel, user_id) DO NOTHING",
            {
                "project_id": subscriber.project_id,
                "subscriber_id": subscriber.subscriber_id,
                "channel": subscriber.channel,
                "bot": subscriber.bot,
                "user_id": subscriber.user_id,
                "chat_id": subscriber.chat_id,
                "first_name": subscriber.first_name,
                "username": subscriber.username,
                "lang": subscriber.lang,
                "status": subscriber.status,
                "source": subscriber.source,
                "now_ms": subscriber.created_at_ms,
            },
        )
    )


async def refresh(tx: Tx, seen: Subscriber) -> bool:
    """Brings name, bot, chat and time of a known person up to date; True if they were not active."""
    key = {
        "project_id": seen.project_id,
        "channel": seen.channel,
        "user_id": seen.user_id,
    }
    where = "project_id = :project_id AND channel = :channel AND user_id = :user_id"
    await tx.execute(
        "UPDATE core_subscribers SET first_name = :first_name, username = :username,"
        f" bot = :bot, chat_id = :chat_id, last_seen_at_ms = :now_ms WHERE {where}",
        {
            **key,
            "first_name": seen.first_name,
            "username": seen.username,
            "bot": seen.bot,
            "chat_id": seen.chat_id,
            "now_ms": seen.last_seen_at_ms,
        },
    )
    return bool(
        await tx.execute(
            f"UPDATE core_subscribers SET status = 'active' WHERE {where} AND status <> 'active'",
            key,
        )
    )


async def find(tx: Tx, project_id: str, subscriber_id: str) -> Subscriber | None:
    return await _find_one(tx, project_id, "subscriber_id = :value", subscriber_id)


async def find_receivers(
    tx: Tx, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Receiver]:
    """Receivers by (project_id, subscriber_id), of several projects at once."""
    return {key: found[0] for key, found in (await _receivers(tx, "subscriber_id", keys)).items()}


async def find_receivers_by_external_id(
    tx: Tx, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Receiver]]:
    """Those that carry an id, one a channel at most, by (project_id, external_id)."""
    return await _receivers(tx, "external_id", keys)


async def _receivers(
    tx: Tx, column: str, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Receiver]]:
    rows = await tx.fetch_all(
        "SELECT s.project_id, s.subscriber_id, s.external_id, s.channel, s.bot, s.status,"
        f" s.last_seen_at_ms FROM {key_table(('project_id', 'id'), tx.dialect)}"
        f" CROSS JOIN core_subscribers s WHERE s.project_id = keys.project_id AND s.{column} = keys.id",
        key_params(keys, tx.dialect),
    )
    found: dict[tuple[str, str], list[Receiver]] = {}
    for row in rows:
        receiver = Receiver(
            row["subscriber_id"], row["channel"], row["bot"], row["status"], row["last_seen_at_ms"]
        )
        found.setdefault((row["project_id"], row[column]), []).append(receiver)
    return found


async def find_by_user(tx: Tx, project_id: str, channel: str, user_id: str) -> Subscriber | None:
    return await _find_one(
        tx, project_id, "channel = :channel AND user_id = :value", user_id, channel=channel
    )


async def find_many(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Subscriber]:
    """Subscribers by (project_id, subscriber_id), of several projects at once."""
    if not keys:
        return {}
    found = await _select(
        tx,
        "s.project_id = keys.project_id AND s.subscriber_id = keys.subscriber_id",
        key_params(keys, tx.dialect),
        source=f"{key_table(('project_id', 'subscriber_id'), tx.dialect)}"
        " CROSS JOIN core_subscribers s",
    )
    return {(subscriber.project_id, subscriber.subscriber_id): subscriber for subscriber in found}


async def list_page(
    tx: Tx, project_id: str, query: SubscriberQuery, after: str | None, limit: int
) -> list[Subscriber]:
    """Newest first; `after` is the last id of the page before."""
    conditions = ["project_id = :project_id"]
    params: dict[str, Any] = {"project_id": project_id, "most": limit}
    for column in ("channel", "status", "external_id"):
        value = getattr(query, column)
        if value is not None:
            conditions.append(f"{column} = :{column}")
            params[column] = value
    if query.tag is not None:
        conditions.append(
            "subscriber_id IN (SELECT subscriber_id FROM core_subscriber_tags"
            " WHERE project_id = :project_id AND tag = :tag)"
        )
        params["tag"] = query.tag
    if after is not None:
        conditions.append("subscriber_id < :after")
        params["after"] = after
    return await _select(
        tx, " AND ".join(conditions) + " ORDER BY subscriber_id DESC LIMIT :most", params
    )


async def end_active(tx: Tx, bot: str, user_id: str, status: str) -> list[tuple[str, str]]:
    """Ends a person's active subscriptions by a bot; returns (project_id, subscriber_id) of each."""
    rows = await tx.fetch_all(
        "UPDATE core_subscribers SET status = :status WHERE bot = :bot"
        " AND user_id = :user_id AND status = 'active' RETURNING project_id, subscriber_id",
        {"status": status, "bot": bot, "user_id": user_id},
    )
    return [(row["project_id"], row["subscriber_id"]) for row in rows]


async def set_external_id(tx: Tx, project_id: str, subscriber_id: str, external_id: str) -> bool:
    """Binds the project's own id, unless the subscriber has one or it is taken on the channel."""
    return bool(
        await tx.execute(
            "UPDATE core_subscribers SET external_id = :external_id"
            " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
            " AND external_id IS NULL AND NOT EXISTS (SELECT 1 FROM core_subscribers other"
            " WHERE other.project_id = :project_id AND other.external_id = :external_id"
            " AND other.channel = core_subscribers.channel)",
            {
                "project_id": project_id,
                "subscriber_id": subscriber_id,
                "external_id": external_id,
            },
        )
    )


async def count_tags(tx: Tx, project_id: str, besides: Iterable[str]) -> int:
    """How many tags the project would have with `besides` added."""
    rows = await tx.fetch_all(
        "SELECT name FROM core_tags WHERE project_id = :project_id", {"project_id": project_id}
    )
    return len({row["name"] for row in rows} | set(besides))


async def add_tags(
    tx: Tx, project_id: str, subscriber_id: str | None, tags: Iterable[str], now_ms: int
) -> None:
    """Makes the tags exist, and gives them to the subscriber if one is named."""
    for tag in tags:
        await tx.execute(
            "INSERT INTO core_tags (project_id, name, created_at_ms)"
            " VALUES (:project_id, :tag, :now_ms) ON CONFLICT DO NOTHING",
            {"project_id": project_id, "tag": tag, "now_ms": now_ms},
        )
        if subscriber_id is not None:
            await tx.execute(
                "INSERT INTO core_subscriber_tags (project_id, subscriber_id, tag)"
                " VALUES (:project_id, :subscriber_id, :tag) ON CONFLICT DO NOTHING",
                {"project_id": project_id, "subscriber_id": subscriber_id, "tag": tag},
            )


async def insert_link(
    tx: Tx,
    project_id: str,
    digest: str,
    *,
    tags: Sequence[str],
    external_id: str | None,
    expires_at_ms: int,
) -> None:
    await tx.insert(
        "core_links",
        {
            "project_id": project_id,
            "digest": digest,
            "tags": json.dumps(tags, ensure_ascii=False),
            "external_id": external_id,
            "expires_at_ms": expires_at_ms,
        },
    )


async def find_link(tx: Tx, digest: str, now_ms: int) -> Mapping[str, Any] | None:
    """`project_id`, `tags` and `external_id` of a link that still works."""
    row = await tx.fetch_one(
        "SELECT project_id, tags, external_id FROM core_links"
        " WHERE digest = :digest AND expires_at_ms > :now_ms",
        {"digest": digest, "now_ms": now_ms},
    )
    if row is None:
        return None
    return {
        "project_id": row["project_id"],
        "tags": json.loads(row["tags"]),
        "external_id": row["external_id"],
    }


async def _find_one(
    tx: Tx, project_id: str, condition: str, value: str, **params: Any
) -> Subscriber | None:
    found = await _select(
        tx,
        f"project_id = :project_id AND {condition}",
        {"project_id": project_id, "value": value, **params},
    )
    return found[0] if found else None


async def _select(
    tx: Tx, condition: str, params: Mapping[str, Any], source: str = "core_subscribers s"
) -> list[Subscriber]:
    """Subscribers of `source`, where their table is `s`."""
    rows = await tx.fetch_all(
        # The tags come along: a query of their own would be one more on every send.
        f"SELECT {_SELECTED}, (SELECT {joined('t.tag', tx.dialect)} FROM core_subscriber_tags t"
        " WHERE t.project_id = s.project_id AND t.subscriber_id = s.subscriber_id) AS tags"
        f" FROM {source} WHERE {condition}",
        params,
    )
    return [
        Subscriber(
            **{column: row[column] for column in _COLUMN_NAMES},
            # A tag holds no comma (see `TagName`).
            tags=tuple(sorted(row["tags"].split(","))) if row["tags"] else (),
        )
        for row in rows
    ]
