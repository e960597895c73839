"""The SQL of counts: recent ones by hour, older ones by day."""

from collections.abc import Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of, key_params, key_table

#: (project_id, hour since 1970, event).
Key = tuple[str, int, str]


async def add(tx: Tx, counts: Mapping[Key, int]) -> None:
    """Adds to the counts of this connection, which runs one transaction at a time, so no transactions wait
    for each other."""
    share = "pg_backend_pid()" if tx.dialect == "postgresql" else "0"
    rows = [(project, str(hour), event, str(n)) for (project, hour, event), n in counts.items()]
    columns = ("project_id", "hour", "event", "count")
    await tx.execute(
        "INSERT INTO dashboard_hours (project_id, hour, event, share, count)"
        f" SELECT keys.project_id, CAST(keys.hour AS INTEGER), keys.event, {share},"
        f" CAST(keys.count AS BIGINT) FROM {key_table(columns, tx.dialect)}"
        # SQLite takes the ON of an upsert for that of a join, without a WHERE before it.
        " WHERE true ON CONFLICT (project_id, hour, event, share)"
        " DO UPDATE SET count = dashboard_hours.count + excluded.count",
        key_params(rows, tx.dialect),
    )


async def put(tx: Tx, day: int, name: str, values: Mapping[str, int]) -> None:
    """Sets a value of a day, by project."""
    rows = [(project, str(value)) for project, value in values.items()]
    await tx.execute(
        "INSERT INTO dashboard_counts (project_id, day, event, share, count)"
        " SELECT keys.project_id, CAST(:day AS INTEGER), CAST(:name AS TEXT), 0, CAST(keys.count AS BIGINT)"
        f" FROM {key_table(('project_id', 'count'), tx.dialect)}"
        " WHERE true ON CONFLICT (project_id, day, event, share) DO UPDATE SET count = excluded.count",
        {"day": day, "name": name, **key_params(rows, tx.dialect)},
    )


async def by_day(
    tx: Tx, project_id: str, events: Sequence[str], since: int
) -> dict[tuple[int, str], int]:
    """The number of each event, by day, from the day `since` on."""
    condition, params = any_of("event", "events", events, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT day, event, CAST(SUM(count) AS BIGINT) AS n FROM"
        " (SELECT day, event, count FROM dashboard_counts"
        f" WHERE project_id = :project_id AND day >= :since AND {condition}"
        " UNION ALL SELECT hour / 24, event, count FROM dashboard_hours"
        f" WHERE project_id = :project_id AND hour >= :hour AND {condition}) AS counted"
        " GROUP BY day, event",
        {"project_id": project_id, "since": since, "hour": since * 24, **params},
    )
    return {(row["day"], row["event"]): row["n"] for row in rows}


async def by_hour(
    tx: Tx, project_id: str, events: Sequence[str], since: int
) -> dict[tuple[int, str], int]:
    """The number of each event, by hour, from the hour `since` on."""
    condition, params = any_of("event", "events", events, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT hour, event, CAST(SUM(count) AS BIGINT) AS n FROM dashboard_hours"
        f" WHERE project_id = :project_id AND hour >= :since AND {condition} GROUP BY hour, event",
        {"project_id": project_id, "since": since, **params},
    )
    return {(row["hour"], row["event"]): row["n"] for row in rows}


async def happened(tx: Tx, project_id: str, events: Sequence[str]) -> set[str]:
    """The events that have ever occurred, as far as counts are kept."""
    condition, params = any_of("event", "events", events, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT event FROM dashboard_counts"
        f" WHERE project_id = :project_id AND {condition}"
        " UNION SELECT event FROM dashboard_hours"
        f" WHERE project_id = :project_id AND {condition}",
        {"project_id": project_id, **params},
    )
    return {row["event"] for row in rows}


async def fold(tx: Tx, before: int) -> None:
    """Merges the hours of days before that one into one row per project, day and event.

    So are the shares of days that a process of the first release has written.
    """
    await tx.execute(
        "INSERT INTO dashboard_counts (project_id, day, event, share, count)"
        " SELECT project_id, hour / 24, event, 0, SUM(count) FROM dashboard_hours"
        " WHERE hour < :before GROUP BY project_id, hour / 24, event"
        f" {_ADDED}",
        {"before": before * 24},
    )
    await tx.execute("DELETE FROM dashboard_hours WHERE hour < :before", {"before": before * 24})
    await tx.execute(
        "INSERT INTO dashboard_counts (project_id, day, event, share, count)"
        " SELECT project_id, day, event, 0, SUM(count) FROM dashboard_counts"
        " WHERE day < :before AND share <> 0 GROUP BY project_id, day, event"
        f" {_ADDED}",
        {"before": before},
    )
    await tx.execute(
        "DELETE FROM dashboard_counts WHERE day < :before AND share <> 0", {"before": before}
    )


async def purge(tx: Tx, before: int) -> None:
    """Deletes the days before that one."""
    await tx.execute("DELETE FROM dashboard_counts WHERE day < :before", {"before": before})


_ADDED = (
    "ON CONFLICT (project_id, day, event, share)"
    " DO UPDATE SET count = dashboard_counts.count + excluded.count"
)
