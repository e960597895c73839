"""Response time statistics, computed from the tickets' timestamps."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_helpdesk.service_levels.clocks import SlaClocks
from msgsvc_helpdesk.views import Percentiles, Rating, TargetShares, TicketStatsAnswer

PERCENTS = (50, 90, 95, 99)

_OPENED = (
    " FROM helpdesk_tickets WHERE project_id = :project_id AND created_at_ms > :after_ms"
    " AND created_at_ms < :before_ms AND merged_into IS NULL"
)

#: After every time: milliseconds have 48 bits in ids.
_NEVER_MS = 1 << 48


async def stats_of(
    tx: Tx, project_id: str, after_ms: int, before_ms: int | None, sla: SlaClocks
) -> TicketStatsAnswer:
    """Statistics of the tickets opened between two times, and of the targets that were met or missed."""
    until_ms = _NEVER_MS if before_ms is None else before_ms
    params: dict[str, object] = {
        "project_id": project_id,
        "after_ms": after_ms,
        "before_ms": until_ms,
    }
    rows = await tx.fetch_all(
        "SELECT status, COUNT(*) AS many, COUNT(csat_score) AS rated, SUM(csat_score) AS score"
        f"{_OPENED} GROUP BY status",
        params,
    )
    by_status = dict.fromkeys(("open", "pending", "snoozed", "closed"), 0)
    by_status |= {row["status"]: row["many"] for row in rows}
    rated, score = sum(row["rated"] for row in rows), sum(row["score"] or 0 for row in rows)
    return TicketStatsAnswer(
        created_after=to_rfc3339(after_ms),
        created_before=optional_rfc3339(before_ms),
        opened=sum(by_status.values()),
        by_status=by_status,
        first_response_seconds=await _percentiles(tx, "first_response_at_ms", params),
        resolution_seconds=await _percentiles(tx, "closed_at_ms", params),
        sla=TargetShares.of(await sla.ends_between(tx, project_id, after_ms, until_ms)),
        csat=Rating(count=rated, average=round(score / rated, 2) if rated else None),
    )


async def _percentiles(tx: Tx, column: str, params: dict[str, object]) -> Percentiles:
    # SQLite has no percentile_cont; the nearest rank is the same on both databases. Counted and ranked by
    # one statement: a ticket that is reopened between two would leave a place empty.
    places = ", ".join(f"(many * {percent} + 99) / 100" for percent in PERCENTS)
    rows = await tx.fetch_all(
        f"SELECT place, many, ms FROM (SELECT ROW_NUMBER() OVER (ORDER BY {column} - created_at_ms) AS"
        f" place, COUNT(*) OVER () AS many, {column} - created_at_ms AS ms{_OPENED}"
        f" AND {column} IS NOT NULL) AS ranked WHERE place IN ({places})",
        params,
    )
    if not rows:
        return Percentiles(count=0, p50=None, p90=None, p95=None, p99=None)
    count = rows[0]["many"]
    seconds = {row["place"]: row["ms"] // 1000 for row in rows}
    return Percentiles(
        count=count,
        **{f"p{percent}": seconds[-(-count * percent // 100)] for percent in PERCENTS},
    )
