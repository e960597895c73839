"""The SQL of whom a bulk action is about."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_core.subscribers.filters import filter_of
from msgsvc_core.subscribers.models import SubscriberFilters


async def select(
    tx: Tx, project_id: str, filters: SubscriberFilters, after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """The ids of the next subscribers who match, newest first, and the last one that was looked at; None if
    there are no more. `filters` name a tag by its id."""
    selected = filter_of(project_id, filters, after)
    rows = await tx.fetch_all(
        f"SELECT s.subscriber_id, s.created_at_ms FROM {selected.source} WHERE {selected.condition}"
        f" ORDER BY {selected.order} DESC LIMIT :most",
        {**selected.params, "most": limit},
    )
    since_ms = -1 if filters.created_after is None else filters.created_after
    found = [row["subscriber_id"] for row in rows if row["created_at_ms"] > since_ms]
    is_last = len(found) < limit
    return found, None if is_last else found[-1]


async def existing(tx: Tx, project_id: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids whose subscribers exist."""
    rows = await tx.fetch_all(
        f"SELECT s.subscriber_id FROM {key_table(('project', 'subscriber'), tx.dialect)}"
        " CROSS JOIN core_subscribers s"
        " WHERE s.project_id = keys.project AND s.subscriber_id = keys.subscriber",
        key_params([(project_id, one) for one in ids], tx.dialect),
    )
    return {row["subscriber_id"] for row in rows}
