"""The SQL of subscribers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.counting import Count, count_walked
from msgsvc_core.db.sql import (
    any_of,
    for_no_key_update,
    for_update,
    in_query,
    key_params,
    key_table,
    string_agg,
)
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.subscribers.filters import by_id, filter_of, led_filter_of
from msgsvc_core.subscribers.models import (
    PersonSubscription,
    Recipient,
    Status,
    Subscriber,
    SubscriberFilters,
)
from msgsvc_core.subscribers.searching import columns_of

#: In the order of `Subscriber`'s fields, since rows are converted by position.
_COLUMNS = (
    "project_id, subscriber_id, channel, bot, user_id, chat_id, first_name, username, lang,"
    " external_id, status, source, created_at_ms, last_seen_at_ms"
)
#: Fields that may be empty.
_LATER = ("attributes", "locale")

_COLUMN_NAMES = (*_COLUMNS.split(", "), *_LATER)
#: The name of a tag that a subscriber has as `t`.
_TAG_NAME = (
    "(SELECT g.name FROM core_tags g WHERE g.project_id = t.project_id AND g.tag_id = t.tag_id)"
)
_SELECTED = ", ".join(f"s.{column}" for column in _COLUMN_NAMES)


async def insert_if_new(tx: Tx, subscriber: Subscriber) -> bool:
    """False if the user is a subscriber of that channel and project already."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_subscribers ({_COLUMNS}, locale, search_name, search_username)"
            " VALUES (:project_id, :subscriber_id,"
            " :channel, :bot, :user_id, :chat_id, :first_name, :username, :lang, NULL, :status,"
            " :source, :now_ms, :now_ms, :locale, :search_name, :search_username)"
            " ON CONFLICT (project_id, channel, user_id) DO NOTHING",
            {
                **columns_of(first_name=subscriber.first_name, username=subscriber.username),
                "project_id": subscriber.project_id,
                "subscriber_id": subscriber.subscriber_id,
                "channel": subscriber.channel,
                "bot": subscriber.bot,
                "user_id": subscriber.user_id,
                "chat_id": subscriber.chat_id,
                "first_name": subscriber.first_name,
                "username": subscriber.username,
                "lang": subscriber.lang,
                "locale": subscriber.locale,
                "status": subscriber.status,
                "source": subscriber.source,
                "now_ms": subscriber.created_at_ms,
            },
        )
    )


async def refresh(tx: Tx, seen: Subscriber) -> tuple[str, bool] | None:
    """Updates name, bot, chat and time of a known user: returns their id, and whether they were not
    active. None if they are not known. An empty name tells nothing, as of an address."""
    key = {
        "project_id": seen.project_id,
        "channel": seen.channel,
        "user_id": seen.user_id,
    }
    where = "project_id = :project_id AND channel = :channel AND user_id = :user_id"
    names: dict[str, str | None] = {"username": seen.username}
    if seen.first_name:
        names["first_name"] = seen.first_name
    named = {**names, **columns_of(**names)}
    subscriber_id: str | None = await tx.fetch_val(
        f"UPDATE core_subscribers SET {', '.join(f'{column} = :{column}' for column in named)},"
        f" bot = :bot, chat_id = :chat_id, last_seen_at_ms = :now_ms WHERE {where}"
        " RETURNING subscriber_id",
        {
            **key,
            **named,
            "bot": seen.bot,
            "chat_id": seen.chat_id,
            "now_ms": seen.last_seen_at_ms,
        },
    )
    if subscriber_id is None:
        return None
    was_away = await tx.execute(
        f"UPDATE core_subscribers SET status = 'active' WHERE {where} AND status <> 'active'", key
    )
    return subscriber_id, bool(was_away)


async def find(tx: Tx, project_id: str, subscriber_id: str) -> Subscriber | None:
    return await _find_one(tx, project_id, "subscriber_id = :value", subscriber_id)


async def find_recipients(
    tx: Tx, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Recipient]:
    """Recipients by (project_id, subscriber_id), of several projects."""
    return {key: found[0] for key, found in (await _recipients(tx, "subscriber_id", keys)).items()}


async def find_recipients_by_external_id(
    tx: Tx, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Recipient]]:
    """Holders of an id, at most one per channel, by (project_id, external_id)."""
    return await _recipients(tx, "external_id", keys)


async def _recipients(
    tx: Tx, column: str, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Recipient]]:
    rows = await tx.fetch_all(
        "SELECT s.project_id, s.subscriber_id, s.external_id, s.channel, s.bot, s.status,"
        f" s.last_seen_at_ms, s.lang FROM {key_table(('project_id', 'id'), tx.dialect)}"
        f" CROSS JOIN core_subscribers s WHERE s.project_id = keys.project_id AND s.{column} = keys.id",
        key_params(keys, tx.dialect),
    )
    found: dict[tuple[str, str], list[Recipient]] = {}
    for row in rows:
        receiver = Recipient(
            row["subscriber_id"],
            row["channel"],
            row["bot"],
            row["status"],
            row["last_seen_at_ms"],
            row["lang"],
            row["external_id"],
        )
        found.setdefault((row["project_id"], row[column]), []).append(receiver)
    return found


async def find_by_user(tx: Tx, project_id: str, channel: str, user_id: str) -> Subscriber | None:
    return await _find_one(
        tx, project_id, "channel = :channel AND user_id = :value", user_id, channel=channel
    )


async def list_by_user(tx: Tx, bot: str, user_id: str) -> list[PersonSubscription]:
    """A user's subscriptions by this bot, in all projects, oldest first."""
    rows = await tx.fetch_all(
        "SELECT project_id, subscriber_id, status FROM core_subscribers"
        " WHERE bot = :bot AND user_id = :user_id ORDER BY subscriber_id",
        {"bot": bot, "user_id": user_id},
    )
    return [PersonSubscription(*row) for row in rows]


async def lock_existing(
    tx: Tx, keys: Sequence[tuple[str, str]], *, skip_locked: bool
) -> dict[tuple[str, str], Status]:
    """The status of those of `keys`, which are (project_id, subscriber_id), that exist."""
    locking = ""
    if tx.dialect == "postgresql":
        locking = " FOR KEY SHARE OF s" + (" SKIP LOCKED" if skip_locked else "")
    rows = await tx.fetch_all(
        "SELECT s.project_id, s.subscriber_id, s.status"
        f" FROM {key_table(('project', 'subscriber'), tx.dialect)} CROSS JOIN core_subscribers s"
        " WHERE s.project_id = keys.project AND s.subscriber_id = keys.subscriber"
        f" ORDER BY s.project_id, s.subscriber_id{locking}",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["subscriber_id"]): row["status"] for row in rows}


async def get_many(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Subscriber]:
    """Subscribers by (project_id, subscriber_id), of several projects."""
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


async def find_selected(
    tx: Tx, project_id: str, ids: str, params: Mapping[str, Any]
) -> list[Subscriber]:
    """Subscribers of a project whose ids are selected by the query `ids`, in the order of their ids."""
    found = await _select(
        tx,
        f"s.project_id = :project_id AND {in_query('s.subscriber_id', ids, tx.dialect)}",
        {**params, "project_id": project_id},
    )
    return sorted(found, key=lambda subscriber: subscriber.subscriber_id)


async def list_page(
    tx: Tx,
    project_id: str,
    query: SubscriberFilters,
    after: str | None,
    limit: int,
    *,
    ascending: bool = False,
) -> list[Subscriber]:
    """Newest first, or oldest first; `after` is the last id of the previous page, in that order."""
    if ascending and query.created_after is not None:
        after = max(after or "", earliest_id("sub", query.created_after))
    selected = filter_of(project_id, await by_id(tx, project_id, query), after, ascending=ascending)
    found = await _select(
        tx,
        f"{selected.condition} ORDER BY {selected.order} {'ASC' if ascending else 'DESC'} LIMIT :most",
        {**selected.params, "most": limit},
        source=selected.source,
    )
    # Ids increase with time: after the first that is too old, all are older.
    since_ms = -1 if query.created_after is None else query.created_after
    return [subscriber for subscriber in found if subscriber.created_at_ms > since_ms]


async def count_active(tx: Tx, project_id: str, at_most: int) -> int:
    """Active subscribers, counted in their index up to `at_most`."""
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) FROM (SELECT 1 FROM core_subscribers WHERE project_id = :project_id"
        " AND status = 'active' LIMIT :at_most) AS counted",
        {"project_id": project_id, "at_most": at_most},
    )
    return found


async def active_by_project(tx: Tx) -> dict[str, int]:
    """Active subscribers of each project that has any. Reads an index of all subscribers."""
    rows = await tx.fetch_all(
        "SELECT project_id, COUNT(*) AS n FROM core_subscribers WHERE status = 'active'"
        " GROUP BY project_id"
    )
    return {row["project_id"]: row["n"] for row in rows}


async def count(tx: Tx, project_id: str, query: SubscriberFilters, limit: int) -> Count:
    """How many there are, of at most `limit` looked at."""
    selected = led_filter_of(project_id, await by_id(tx, project_id, query))
    needed = ["s.created_at_ms"]
    if selected.also:
        needed += ["s.subscriber_id", "s.channel", "s.status", "s.lang"]
    return await count_walked(
        tx,
        selected.source,
        led_by=selected.led_by,
        order=selected.order,
        columns=needed,
        also=selected.also,
        params=selected.params,
        limit=limit,
        since_ms=query.created_after,
    )


async def has_channel(tx: Tx, project_id: str, channel: str) -> bool:
    """Whether a project has a subscriber of a channel."""
    found = await tx.fetch_one(
        "SELECT 1 AS one FROM core_subscribers WHERE project_id = :project_id AND channel = :channel"
        " LIMIT 1",
        {"project_id": project_id, "channel": channel},
    )
    return found is not None


async def lock_subscriptions(tx: Tx, bot: str, user_ids: Collection[str]) -> None:
    """Locks the subscriptions of users by a bot, in all projects, until `tx` ends.

    In a fixed order, to avoid deadlocks.
    """
    these, params = any_of("user_id", "user_ids", list(user_ids), tx.dialect)
    await tx.fetch_all(
        f"SELECT 1 AS one FROM core_subscribers WHERE bot = :bot AND {these}"
        f" ORDER BY user_id, project_id{for_no_key_update(tx.dialect)}",
        {"bot": bot, **params},
    )


async def set_chat(tx: Tx, bot: str, user_id: str, chat_id: str) -> None:
    """Sets the chat in which a bot reaches a user, in all projects."""
    await tx.execute(
        "UPDATE core_subscribers SET chat_id = :chat_id WHERE (project_id, subscriber_id) IN"
        " (SELECT project_id, subscriber_id FROM core_subscribers WHERE bot = :bot"
        " AND user_id = :user_id AND chat_id <> :chat_id"
        f" ORDER BY project_id{for_no_key_update(tx.dialect)})",
        {"bot": bot, "user_id": user_id, "chat_id": chat_id},
    )


async def move_chat(tx: Tx, bot: str, chat_id: str, new_chat_id: str) -> None:
    """Changes the id of a chat for all users reached in it."""
    await tx.execute(
        "UPDATE core_subscribers SET chat_id = :new_chat_id WHERE (project_id, subscriber_id) IN"
        " (SELECT project_id, subscriber_id FROM core_subscribers WHERE bot = :bot"
        " AND chat_id = :chat_id"
        f" ORDER BY user_id, project_id{for_no_key_update(tx.dialect)})",
        {"bot": bot, "chat_id": chat_id, "new_chat_id": new_chat_id},
    )


async def set_user(tx: Tx, bot: str, user_id: str, new_user_id: str) -> None:
    """Changes a user's id in all projects in which the new one has no subscription yet."""
    await tx.execute(
        "UPDATE core_subscribers SET user_id = :new_user_id WHERE (project_id, subscriber_id) IN"
        " (SELECT s.project_id, s.subscriber_id FROM core_subscribers s WHERE s.bot = :bot"
        " AND s.user_id = :user_id AND NOT EXISTS (SELECT 1 FROM core_subscribers there"
        " WHERE there.project_id = s.project_id AND there.channel = s.channel"
        " AND there.user_id = :new_user_id)"
        f" ORDER BY s.project_id{for_update(tx.dialect)})",
        {"bot": bot, "user_id": user_id, "new_user_id": new_user_id},
    )


async def find_language(tx: Tx, bot: str, user_id: str) -> str | None:
    """The language of a user's subscription by a bot; of several, the one seen last."""
    lang: str | None = await tx.fetch_val(
        "SELECT lang FROM core_subscribers WHERE bot = :bot AND user_id = :user_id"
        " ORDER BY last_seen_at_ms DESC LIMIT 1",
        {"bot": bot, "user_id": user_id},
    )
    return lang


async def set_language(tx: Tx, bot: str, user_id: str, lang: str) -> None:
    """Sets the language that a user chose for the messages of projects by a bot."""
    await tx.execute(
        "UPDATE core_subscribers SET lang = :lang, locale = :lang WHERE bot = :bot AND user_id = :user_id",
        {"lang": lang, "bot": bot, "user_id": user_id},
    )


async def next_locale(tx: Tx, after: tuple[str, str]) -> tuple[str, str] | None:
    """The first pair of a kept tag and the language of texts for it after another, of all people."""
    row = await tx.fetch_one(
        "SELECT locale, lang FROM core_subscribers WHERE locale IS NOT NULL"
        " AND (locale, lang) > (:locale, :lang) ORDER BY locale, lang LIMIT 1",
        {"locale": after[0], "lang": after[1]},
    )
    return None if row is None else (row["locale"], row["lang"])


async def map_locale(tx: Tx, locale: str, before: str, lang: str, most: int) -> int:
    """Sets the language of texts for at most that many people with a tag and another one; returns how many
    they were. Those whom another transaction holds are left out."""
    lock = " FOR NO KEY UPDATE SKIP LOCKED" if tx.dialect == "postgresql" else ""
    return await tx.execute(
        "UPDATE core_subscribers SET lang = :lang WHERE (project_id, subscriber_id) IN"
        " (SELECT project_id, subscriber_id FROM core_subscribers WHERE locale = :locale"
        f" AND lang = :before LIMIT :most{lock})",
        {"locale": locale, "before": before, "lang": lang, "most": most},
    )


async def find_bots_of_others(
    tx: Tx, user_id: str, bots: Collection[str], subscriber_id: str
) -> set[str]:
    """Those of `bots` by which a user has a subscription other than `subscriber_id`."""
    these, params = any_of("bot", "bots", sorted(bots), tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT DISTINCT bot FROM core_subscribers WHERE {these} AND user_id = :user_id"
        " AND subscriber_id <> :subscriber_id",
        {"user_id": user_id, "subscriber_id": subscriber_id, **params},
    )
    return {row["bot"] for row in rows}


async def has_bot(tx: Tx, project_id: str, bot: str) -> bool:
    """Whether a project has a subscriber whom the bot reaches."""
    found = await tx.fetch_val(
        "SELECT 1 AS found FROM core_subscribers WHERE project_id = :project_id AND bot = :bot"
        " LIMIT 1",
        {"project_id": project_id, "bot": bot},
    )
    return found is not None


async def block_all(
    tx: Tx, bot: str, user_id: str, *, by_failure: bool, chat_id: str | None = None
) -> list[tuple[str, str]]:
    """Ends a user's active subscriptions by a bot, with `chat_id` those in that chat; returns (project_id,
    subscriber_id) of each. `by_failure` are restored by `restore_reached`."""
    in_chat = "" if chat_id is None else " AND chat_id = :chat_id"
    rows = await tx.fetch_all(
        "UPDATE core_subscribers SET status = 'blocked', status_before_failure = :before"
        " WHERE (project_id, subscriber_id) IN"
        " (SELECT project_id, subscriber_id FROM core_subscribers WHERE bot = :bot"
        f" AND user_id = :user_id AND status = 'active'{in_chat}"
        f" ORDER BY project_id{for_no_key_update(tx.dialect)}) RETURNING project_id, subscriber_id",
        {"before": "active" if by_failure else None, "bot": bot, "user_id": user_id}
        | ({} if chat_id is None else {"chat_id": chat_id}),
    )
    return [(row["project_id"], row["subscriber_id"]) for row in rows]


async def block_unsubscribed(tx: Tx, bot: str, user_id: str, *, by_failure: bool) -> None:
    """Marks a user's ended subscriptions by a bot as blocked."""
    await tx.execute(
        "UPDATE core_subscribers SET status = 'blocked', status_before_failure = :before"
        " WHERE bot = :bot AND user_id = :user_id AND status = 'unsubscribed'",
        {"before": "unsubscribed" if by_failure else None, "bot": bot, "user_id": user_id},
    )


async def forget_failure(tx: Tx, bot: str, user_id: str) -> None:
    """Leaves to the person alone what a failure has ended."""
    await tx.execute(
        "UPDATE core_subscribers SET status_before_failure = NULL WHERE bot = :bot"
        " AND user_id = :user_id AND status_before_failure IS NOT NULL",
        {"bot": bot, "user_id": user_id},
    )


async def restore_reached(tx: Tx, bot: str, user_id: str) -> list[tuple[str, str]]:
    """Makes a user's subscriptions that a failure has blocked what they were before; returns (project_id,
    subscriber_id) of those that are active now."""
    rows = await tx.fetch_all(
        "UPDATE core_subscribers SET status = status_before_failure, status_before_failure = NULL"
        " WHERE (project_id, subscriber_id) IN"
        " (SELECT project_id, subscriber_id FROM core_subscribers WHERE bot = :bot"
        " AND user_id = :user_id AND status = 'blocked' AND status_before_failure IS NOT NULL"
        f" ORDER BY project_id{for_no_key_update(tx.dialect)})"
        " RETURNING project_id, subscriber_id, status",
        {"bot": bot, "user_id": user_id},
    )
    return [(row["project_id"], row["subscriber_id"]) for row in rows if row["status"] == "active"]


async def deactivate(tx: Tx, project_id: str, subscriber_id: str, status: str) -> bool:
    """Ends one active subscription; False if there is none to end."""
    return bool(
        await tx.execute(
            "UPDATE core_subscribers SET status = :status WHERE project_id = :project_id"
            " AND subscriber_id = :subscriber_id AND status = 'active'",
            {"status": status, "project_id": project_id, "subscriber_id": subscriber_id},
        )
    )


async def reactivate(
    tx: Tx, project_id: str, subscriber_id: str, status: Status = "unsubscribed"
) -> bool:
    """Reactivates a person of this status; False for those of another."""
    return bool(
        await tx.execute(
            "UPDATE core_subscribers SET status = 'active' WHERE project_id = :project_id"
            " AND subscriber_id = :subscriber_id AND status = :status",
            {"project_id": project_id, "subscriber_id": subscriber_id, "status": status},
        )
    )


async def clear_blocked(tx: Tx, bot: str, user_id: str) -> None:
    """Makes blocked subscriptions `unsubscribed` when the person unblocks the bot: they may resubscribe."""
    await tx.execute(
        "UPDATE core_subscribers SET status = 'unsubscribed' WHERE bot = :bot"
        " AND user_id = :user_id AND status = 'blocked'",
        {"bot": bot, "user_id": user_id},
    )


async def set_external_id(tx: Tx, project_id: str, subscriber_id: str, external_id: str) -> bool:
    """Binds the project's own id, unless the subscriber has one or it is taken on the channel."""
    return bool(
        await tx.execute(
            "UPDATE core_subscribers SET external_id = :external_id,"
            " search_external_id = :search_external_id"
            " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
            " AND external_id IS NULL AND NOT EXISTS (SELECT 1 FROM core_subscribers other"
            " WHERE other.project_id = :project_id AND other.external_id = :external_id"
            " AND other.channel = core_subscribers.channel)",
            {
                "project_id": project_id,
                "subscriber_id": subscriber_id,
                "external_id": external_id,
                **columns_of(external_id=external_id),
            },
        )
    )


async def update(tx: Tx, project_id: str, subscriber_id: str, given: Mapping[str, Any]) -> bool:
    """Writes `external_id`, `lang`, `locale` and `attributes` if they are given.

    Locks the subscriber until the transaction ends, even if nothing is given. False if there is no such
    subscriber, or `external_id` is in use on their channel.
    """
    if "external_id" in given:
        given = {**given, **columns_of(external_id=given["external_id"])}
    params = {"project_id": project_id, "subscriber_id": subscriber_id, **given}
    # The first assignment changes nothing and locks the row.
    assignments = ["status = status", *(f"{column} = :{column}" for column in given)]
    free = ""
    if given.get("external_id") is not None:
        free = (
            " AND NOT EXISTS (SELECT 1 FROM core_subscribers other"
            " WHERE other.project_id = :project_id AND other.external_id = :external_id"
            " AND other.channel = core_subscribers.channel"
            " AND other.subscriber_id <> core_subscribers.subscriber_id)"
        )
    if "attributes" in given:
        params["attributes"] = to_json(given["attributes"]) if given["attributes"] else None
    return bool(
        await tx.execute(
            f"UPDATE core_subscribers SET {', '.join(assignments)}"
            f" WHERE project_id = :project_id AND subscriber_id = :subscriber_id{free}",
            params,
        )
    )


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
    of_this = "t.project_id = s.project_id AND t.subscriber_id = s.subscriber_id"
    rows = await tx.fetch_all(
        # With tags and permissions: separate queries would be two more for every send.
        f"SELECT {_SELECTED},"
        f" (SELECT {string_agg(_TAG_NAME, tx.dialect)} FROM core_subscriber_tags t WHERE {of_this}) AS tags,"
        f" (SELECT {string_agg('t.permission', tx.dialect)} FROM core_subscriber_permissions t"
        f" WHERE {of_this}) AS permissions"
        f" FROM {source} WHERE {condition}",
        params,
    )
    return [_subscriber(row) for row in rows]


def _subscriber(row: Row) -> Subscriber:
    *values, attributes, locale, tags, permissions = row
    read = None if attributes is None else from_json(attributes)
    values += read, locale, _split(tags), _split(permissions)
    return Subscriber(*values)


def _split(names: str | None) -> tuple[str, ...]:
    """Names of tags and permissions have no commas (see `TagName`, `PermissionKey`)."""
    return tuple(sorted(names.split(","))) if names else ()
