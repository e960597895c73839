"""The SQL of the search for subscribers."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.subscribers.filters import by_id, passive_filter_of
from msgsvc_core.subscribers.models import Subscriber, SubscriberFilters
from msgsvc_core.subscribers.searching import COLUMNS, is_first, search_of
from msgsvc_core.subscribers.store import get_many

#: Names per query if many of the previous ones belonged to subscribers already found.
STEP = 500

_NAMES = ", ".join(COLUMNS.values())


async def search(
    tx: Tx,
    project_id: str,
    text: str,
    filters: SubscriberFilters,
    after: tuple[str, str] | None,
    limit: int,
) -> list[Subscriber]:
    """Subscribers with a name that starts with `text`, ordered by that name; `after` is the previous
    page's cursor."""
    asked_for = await by_id(tx, project_id, filters)
    where, params = passive_filter_of(project_id, asked_for, tx.dialect)
    keys: list[tuple[str, str]] = []
    most, may_follow = limit, True
    while may_follow and len(keys) < limit:
        conditions, searched = search_of(text, after)
        rows = await _named(tx, where, conditions, {**params, **searched, "most": most})
        for row in rows:
            if is_first(text, row["place"], [row[column] for column in COLUMNS.values()]):
                keys.append((project_id, row["subscriber_id"]))
            after = row["found"], row["subscriber_id"]
        may_follow, most = len(rows) == most, STEP
    people = await get_many(tx, keys[:limit])
    return [people[key] for key in keys[:limit] if key in people]


async def _named(
    tx: Tx, where: str, conditions: Mapping[str, str], params: Mapping[str, Any]
) -> list[Row]:
    """The next names, each with its subscriber and all their names."""
    branches = " UNION ALL ".join(
        f"SELECT * FROM (SELECT s.{column} AS found, s.subscriber_id, {place} AS place, {_NAMES}"
        f" FROM core_subscribers s WHERE {where} AND {condition}"
        f" ORDER BY s.{column}, s.subscriber_id LIMIT :most) AS by_{column}"
        for place, (column, condition) in enumerate(conditions.items())
    )
    return await tx.fetch_all(
        f"{branches} ORDER BY found, subscriber_id, place LIMIT :most", params
    )
