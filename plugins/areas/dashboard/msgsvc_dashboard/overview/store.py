"""The SQL of daily counts."""

from collections.abc import Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of, key_params, key_table

#: (project_id, day since 1970, event).
Key = tuple[str, int, str]


async def add(tx: Tx, counts: Mapping[Key, int]) -> None:
    """Adds to the counts of this connection, which runs one transaction at a time, so no transactions wait
    for each other."""
    await _add(tx, counts, "pg_backend_pid()" if tx.dialect == "postgresql" else "0")


async def by_day(
    tx: Tx, project_id: str, events: Sequence[str], since: int
) -> dict[tuple[int, str], int]:
    """The number of each event, by day, from the day `since` on."""
    condition, params = any_of("event", "events", events, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT day, event, CAST(SUM(count) AS BIGINT) AS n FROM dashboard_counts"
        f" WHERE project_id = :project_id AND day >= :since AND {condition} GROUP BY day, event",
        {"project_id": project_id, "since": since, **params},
    )
    return {(row["day"], row["event"]): row["n"] for row in rows}


async def happened(tx: Tx, project_id: str, events: Sequence[str]) -> set[str]:
    """The events that have ever occurred, as far as counts are kept."""
    condition, params = any_of("event", "events", events, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT DISTINCT event FROM dashboard_counts"
        f" WHERE project_id = :project_id AND {condition}",
        {"project_id": project_id, **params},
    )
    return {row["event"] for row in rows}


async def fold(tx: Tx, before: int) -> None:
    """Merges the rows of days before that one to one per project, day and event."""
    rows = await tx.fetch_all(
        "DELETE FROM dashboard_counts WHERE day < :before AND share <> 0"
        " RETURNING project_id, day, event, count",
        {"before": before},
    )
    counts: dict[Key, int] = {}
    for row in rows:
        key = (row["project_id"], row["day"], row["event"])
        counts[key] = counts.get(key, 0) + row["count"]
    if counts:
        await _add(tx, counts, "0")


async def purge(tx: Tx, before: int) -> None:
    """Deletes the days before that one."""
    await tx.execute("DELETE FROM dashboard_counts WHERE day < :before", {"before": before})


async def _add(tx: Tx, counts: Mapping[Key, int], share: str) -> None:
    rows = [(project, str(day), event, str(n)) for (project, day, event), n in counts.items()]
    columns = ("project_id", "day", "event", "count")
    await tx.execute(
        "INSERT INTO dashboard_counts (project_id, day, event, share, count)"
        f" SELECT keys.project_id, CAST(keys.day AS INTEGER), keys.event, {share},"
        f" CAST(keys.count AS BIGINT) FROM {key_table(columns, tx.dialect)}"
        # SQLite takes the ON of an upsert for that of a join, without a WHERE before it.
        " WHERE true ON CONFLICT (project_id, day, event, share)"
        " DO UPDATE SET count = dashboard_counts.count + excluded.count",
        key_params(rows, tx.dialect),
    )
