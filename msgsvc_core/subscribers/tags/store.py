"""The SQL of tags. Subscribers refer to a tag's id, so renaming and deleting change one row.

A deleted tag has no name, and is no longer found; `purge` removes it from its subscribers.
"""

from collections.abc import Collection, Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of, array_param, for_key_share, in_array, limited_delete
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.subscribers.tags.models import Tag

_SELECT = (
    "SELECT t.project_id, t.name, t.created_at_ms, (SELECT COUNT(*) FROM core_subscriber_tags s"
    " WHERE s.project_id = t.project_id AND s.tag_id = t.tag_id) AS subscribers FROM core_tags t"
    " WHERE t.project_id = :project_id AND t.name IS NOT NULL"
)


async def find(tx: Tx, project_id: str, name: str) -> Tag | None:
    row = await tx.fetch_one(
        f"{_SELECT} AND t.name = :name", {"project_id": project_id, "name": name}
    )
    return None if row is None else _tag(row)


async def list_page(
    tx: Tx, project_id: str, after: tuple[int, str] | None, limit: int
) -> list[Tag]:
    """Newest first; `after` is time and name of the last one of the previous page."""
    params: dict[str, object] = {"project_id": project_id, "most": limit}
    condition = ""
    if after is not None:
        condition = " AND (t.created_at_ms, t.name) < (:after_ms, :after_name)"
        params.update(after_ms=after[0], after_name=after[1])
    rows = await tx.fetch_all(
        f"{_SELECT}{condition} ORDER BY t.created_at_ms DESC, t.name DESC LIMIT :most", params
    )
    return [_tag(row) for row in rows]


async def list_all(tx: Tx, project_id: str, limit: int) -> list[Tag]:
    """By name, each with its subscribers counted up to `limit`.

    In index order, which PostgreSQL would not use on its own for a rare tag.
    """
    rows = await tx.fetch_all(
        "SELECT t.project_id, t.name, t.created_at_ms, (SELECT COUNT(*) FROM (SELECT 1"
        " FROM core_subscriber_tags s WHERE s.project_id = t.project_id AND s.tag_id = t.tag_id"
        " ORDER BY s.subscriber_id LIMIT :most) AS found) AS subscribers FROM core_tags t"
        " WHERE t.project_id = :project_id AND t.name IS NOT NULL ORDER BY t.name",
        {"project_id": project_id, "most": limit},
    )
    return [_tag(row) for row in rows]


async def exists(tx: Tx, project_id: str, name: str) -> bool:
    return bool(
        await tx.fetch_val(
            "SELECT 1 AS found FROM core_tags WHERE project_id = :project_id AND name = :name",
            {"project_id": project_id, "name": name},
        )
    )


async def lock_missing(tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
    """Those of `names` that are not tags of the project; the tags are locked until `tx` ends."""
    known, params = any_of("name", "names", sorted(set(names)), tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT name FROM core_tags WHERE project_id = :project_id AND {known}{for_key_share(tx.dialect)}",
        {"project_id": project_id, **params},
    )
    return sorted(set(names) - {row["name"] for row in rows})


async def count(tx: Tx, project_id: str, besides: Collection[str]) -> int:
    """How many tags the project would have with `besides` added."""
    rows = await tx.fetch_all(
        "SELECT name FROM core_tags WHERE project_id = :project_id AND name IS NOT NULL",
        {"project_id": project_id},
    )
    return len({row["name"] for row in rows}.union(besides))


async def insert_missing(tx: Tx, project_id: str, names: Sequence[str], now_ms: int) -> int:
    """Creates missing tags; returns how many."""
    made = 0
    for name in names:
        made += await tx.execute(
            "INSERT INTO core_tags (project_id, tag_id, name, created_at_ms)"
            " VALUES (:project_id, :tag_id, :name, :now_ms) ON CONFLICT DO NOTHING",
            {"project_id": project_id, "tag_id": new_id("tag"), "name": name, "now_ms": now_ms},
        )
    return made


async def rename(tx: Tx, project_id: str, name: str, new_name: str) -> bool:
    """Renames a tag, also for its subscribers and links. False if there is no such tag, or the new name is
    in use."""
    return bool(
        await tx.execute(
            "UPDATE core_tags SET name = :new_name WHERE project_id = :project_id AND name = :name"
            " AND NOT EXISTS (SELECT 1 FROM core_tags other"
            " WHERE other.project_id = :project_id AND other.name = :new_name)",
            {"project_id": project_id, "name": name, "new_name": new_name},
        )
    )


async def ids_of(tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
    """The ids of those of the tags that exist."""
    known, params = any_of("name", "names", sorted(set(names)), tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT tag_id FROM core_tags WHERE project_id = :project_id AND {known}",
        {"project_id": project_id, **params},
    )
    return [row["tag_id"] for row in rows]


async def names_of(tx: Tx, project_id: str, tag_ids: Sequence[str]) -> list[str]:
    """The names of those of the tags that exist; locked until the transaction ends."""
    known, params = any_of("tag_id", "tag_ids", sorted(set(tag_ids)), tx.dialect)
    rows = await tx.fetch_all(
        "SELECT name FROM core_tags WHERE project_id = :project_id AND name IS NOT NULL"
        f" AND {known}{for_key_share(tx.dialect)}",
        {"project_id": project_id, **params},
    )
    return [row["name"] for row in rows]


async def labels(tx: Tx, project_id: str, tag_ids: Sequence[str]) -> dict[str, str]:
    """The names of those of the tags that exist, by their ids."""
    known, params = any_of("tag_id", "tag_ids", sorted(set(tag_ids)), tx.dialect)
    rows = await tx.fetch_all(
        "SELECT tag_id, name FROM core_tags WHERE project_id = :project_id AND name IS NOT NULL"
        f" AND {known}",
        {"project_id": project_id, **params},
    )
    return {row["tag_id"]: row["name"] for row in rows}


async def delete(tx: Tx, project_id: str, name: str) -> str | None:
    """Marks a tag as deleted: it has no subscribers any more, and its name is free. Returns its id, for
    `purge`; None if there is no such tag."""
    tag_id: str | None = await tx.fetch_val(
        "UPDATE core_tags SET name = NULL WHERE project_id = :project_id AND name = :name"
        " RETURNING tag_id",
        {"project_id": project_id, "name": name},
    )
    return tag_id


async def purge(tx: Tx, project_id: str, tag_id: str, most: int) -> int:
    """Removes a deleted tag from up to `most` subscribers; returns from how many. After the last one,
    deletes the tag."""
    params = {"project_id": project_id, "tag_id": tag_id}
    these = limited_delete(
        "core_subscriber_tags", "project_id = :project_id AND tag_id = :tag_id", tx.dialect
    )
    found = await tx.execute(
        f"DELETE FROM core_subscriber_tags WHERE {these}", {**params, "most": most}
    )
    if found < most:
        await tx.execute(
            "DELETE FROM core_tags WHERE project_id = :project_id AND tag_id = :tag_id AND name IS NULL",
            params,
        )
    return found


async def assign(tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]) -> list[str]:
    """Assigns those of the tags that exist, if the subscriber exists; returns the new ones."""
    rows = await tx.fetch_all(
        "INSERT INTO core_subscriber_tags (project_id, subscriber_id, tag_id)"
        " SELECT s.project_id, s.subscriber_id, t.tag_id FROM core_subscribers s"
        " JOIN core_tags t ON t.project_id = s.project_id"
        " WHERE s.project_id = :project_id AND s.subscriber_id = :subscriber_id"
        f" AND {in_array('t.name', 'names', tx.dialect)}{for_key_share(tx.dialect)} ON CONFLICT DO NOTHING"
        " RETURNING (SELECT g.name FROM core_tags g WHERE g.project_id = core_subscriber_tags.project_id"
        " AND g.tag_id = core_subscriber_tags.tag_id) AS name",
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "names": array_param(names, tx.dialect),
        },
    )
    return [row["name"] for row in rows]


async def remove(tx: Tx, project_id: str, subscriber_id: str, name: str) -> bool:
    """False if the subscriber does not have the tag."""
    return bool(
        await tx.execute(
            "DELETE FROM core_subscriber_tags WHERE project_id = :project_id"
            " AND subscriber_id = :subscriber_id AND tag_id = (SELECT tag_id FROM core_tags"
            " WHERE project_id = :project_id AND name = :name)",
            {"project_id": project_id, "subscriber_id": subscriber_id, "name": name},
        )
    )


async def remove_except(tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]) -> None:
    await tx.execute(
        "DELETE FROM core_subscriber_tags WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND tag_id NOT IN (SELECT tag_id FROM core_tags"
        f" WHERE project_id = :project_id AND {in_array('name', 'names', tx.dialect)})",
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "names": array_param(names, tx.dialect),
        },
    )


def _tag(row: Row) -> Tag:
    return Tag(row["project_id"], row["name"], row["created_at_ms"], row["subscribers"])
