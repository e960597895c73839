"""The SQL of people."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import for_no_key_update, key_params, key_table
from msgsvc_core.subscribers.searching import columns_of


async def list_external_ids(tx: Tx, project_id: str, after: str | None, limit: int) -> list[str]:
    """The ids of a project's people, in the order of the index, from after one of them."""
    condition = "external_id IS NOT NULL" if after is None else "external_id > :after"
    params = {"project_id": project_id, "most": limit}
    rows = await tx.fetch_all(
        "SELECT DISTINCT external_id FROM core_subscribers WHERE project_id = :project_id"
        f" AND {condition} ORDER BY external_id LIMIT :most",
        params if after is None else {**params, "after": after},
    )
    return [row["external_id"] for row in rows]


async def list_members(
    tx: Tx, project_id: str, external_ids: Sequence[str]
) -> list[tuple[str, str]]:
    """The (`external_id`, `subscriber_id`) of the subscribers with these ids, by channel."""
    rows = await tx.fetch_all(
        "SELECT s.external_id, s.subscriber_id, s.channel"
        f" FROM {key_table(('project_id', 'id'), tx.dialect)} CROSS JOIN core_subscribers s"
        " WHERE s.project_id = keys.project_id AND s.external_id = keys.id ORDER BY s.channel",
        key_params([(project_id, one) for one in external_ids], tx.dialect),
    )
    return [(row["external_id"], row["subscriber_id"]) for row in rows]


async def lock_channels(tx: Tx, project_id: str, external_id: str) -> list[str]:
    """The channels of a person, whose subscribers nobody else changes until `tx` ends."""
    rows = await tx.fetch_all(
        "SELECT channel FROM core_subscribers WHERE project_id = :project_id"
        f" AND external_id = :external_id ORDER BY subscriber_id{for_no_key_update(tx.dialect)}",
        {"project_id": project_id, "external_id": external_id},
    )
    return sorted(row["channel"] for row in rows)


async def move(tx: Tx, project_id: str, external_id: str, into: str) -> int:
    """Gives all subscribers of a person, and the personal links that are still open, the other id."""
    params = {"project_id": project_id, "external_id": external_id, "into": into}
    moved = await tx.execute(
        "UPDATE core_subscribers SET external_id = :into, search_external_id = :search_external_id"
        " WHERE project_id = :project_id AND external_id = :external_id",
        {**params, **columns_of(external_id=into)},
    )
    await tx.execute(
        "UPDATE core_links SET external_id = :into"
        " WHERE project_id = :project_id AND external_id = :external_id",
        params,
    )
    return moved
