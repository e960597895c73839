"""The SQL of broadcasts: to whom members send tests, and who pressed which button. Their recipients are the
core's."""

from msgsvc_core.db import Tx

_KEY = "project_id = :project_id AND viewer_id = :viewer_id"


async def find_tester(tx: Tx, project_id: str, viewer_id: str) -> str | None:
    """The subscriber to whom somebody sent their last test; None if there was none, or they are erased."""
    found: str | None = await tx.fetch_val(
        f"SELECT subscriber_id FROM broadcasts_testers WHERE {_KEY}",
        {"project_id": project_id, "viewer_id": viewer_id},
    )
    return found


async def set_tester(tx: Tx, project_id: str, viewer_id: str, subscriber_id: str) -> None:
    await tx.execute(
        "INSERT INTO broadcasts_testers (project_id, viewer_id, subscriber_id)"
        " VALUES (:project_id, :viewer_id, :subscriber_id)"
        " ON CONFLICT (project_id, viewer_id) DO UPDATE SET subscriber_id = excluded.subscriber_id",
        {"project_id": project_id, "viewer_id": viewer_id, "subscriber_id": subscriber_id},
    )


async def delete_tester(tx: Tx, project_id: str, viewer_id: str) -> None:
    await tx.execute(
        f"DELETE FROM broadcasts_testers WHERE {_KEY}",
        {"project_id": project_id, "viewer_id": viewer_id},
    )


async def add_click(
    tx: Tx, project_id: str, job_id: str, data: str, subscriber_id: str, now_ms: int
) -> None:
    """Records the first press of a person on a button; no effect for further ones."""
    await tx.execute(
        "INSERT INTO broadcasts_clicks (project_id, job_id, data, subscriber_id, clicked_at_ms)"
        " VALUES (:project_id, :job_id, :data, :subscriber_id, :now_ms)"
        " ON CONFLICT (project_id, job_id, data, subscriber_id) DO NOTHING",
        {
            "project_id": project_id,
            "job_id": job_id,
            "data": data,
            "subscriber_id": subscriber_id,
            "now_ms": now_ms,
        },
    )


async def list_clickers(tx: Tx, project_id: str, job_id: str, after: str, limit: int) -> list[str]:
    """Subscribers who pressed a button or opened a tracked link, in the order of their ids, from beyond
    `after`."""
    clicked = "WHERE project_id = :project_id AND job_id = :job_id AND subscriber_id > :after"
    rows = await tx.fetch_all(
        f"SELECT subscriber_id FROM broadcasts_clicks {clicked}"
        f" UNION SELECT subscriber_id FROM broadcasts_link_clicks {clicked}"
        " ORDER BY subscriber_id LIMIT :most",
        {"project_id": project_id, "job_id": job_id, "after": after, "most": limit},
    )
    return [row["subscriber_id"] for row in rows]


async def count_clicks(tx: Tx, project_id: str, job_id: str, limit: int) -> dict[str, int]:
    """How many pressed each button, by its data, the most pressed first, of at most `limit` presses."""
    rows = await tx.fetch_all(
        "SELECT these.data, COUNT(*) AS people FROM (SELECT data FROM broadcasts_clicks"
        " WHERE project_id = :project_id AND job_id = :job_id LIMIT :most) AS these"
        " GROUP BY these.data ORDER BY people DESC, these.data",
        {"project_id": project_id, "job_id": job_id, "most": limit},
    )
    return {row["data"]: row["people"] for row in rows}
