"""The SQL of tracked links, and of who opened them."""

from collections.abc import Mapping

from msgsvc_broadcasts.models import Link
from msgsvc_core.db import Tx


async def insert(tx: Tx, project_id: str, job_id: str, urls: Mapping[str, str]) -> None:
    """Adds the links of a broadcast: URLs by the id of the link, in the order of the message."""
    await tx.insert_many(
        "broadcasts_links",
        [
            {
                "project_id": project_id,
                "job_id": job_id,
                "link_id": link_id,
                "place": place,
                "url": url,
            }
            for place, (link_id, url) in enumerate(urls.items())
        ],
    )


async def find(tx: Tx, link_id: str) -> Link | None:
    """A link of any project: the address that a recipient opens names none."""
    row = await tx.fetch_one(
        "SELECT project_id, job_id, link_id, url FROM broadcasts_links WHERE link_id = :link_id",
        {"link_id": link_id},
    )
    return None if row is None else Link(**dict(row))


async def is_clicked(tx: Tx, link: Link, subscriber_id: str) -> bool:
    return bool(
        await tx.fetch_all(
            "SELECT 1 AS found FROM broadcasts_link_clicks WHERE project_id = :project_id"
            " AND job_id = :job_id AND link_id = :link_id AND subscriber_id = :subscriber_id",
            _key(link, subscriber_id),
        )
    )


async def add_click(tx: Tx, link: Link, subscriber_id: str, now_ms: int) -> bool:
    """Records the first click of a person on a link; False for further ones."""
    return bool(
        await tx.execute(
            "INSERT INTO broadcasts_link_clicks"
            " (project_id, job_id, link_id, subscriber_id, clicked_at_ms)"
            " VALUES (:project_id, :job_id, :link_id, :subscriber_id, :now_ms)"
            " ON CONFLICT (project_id, job_id, link_id, subscriber_id) DO NOTHING",
            {**_key(link, subscriber_id), "now_ms": now_ms},
        )
    )


async def count_clicks(tx: Tx, project_id: str, job_id: str, limit: int) -> dict[str, int]:
    """How many people opened each link of a broadcast, by its URL, in the order of the message, of at most
    `limit` clicks."""
    rows = await tx.fetch_all(
        "SELECT l.url, COALESCE(counted.people, 0) AS people FROM broadcasts_links l LEFT JOIN"
        " (SELECT these.link_id, COUNT(*) AS people FROM (SELECT link_id FROM broadcasts_link_clicks"
        " WHERE project_id = :project_id AND job_id = :job_id LIMIT :most) AS these"
        " GROUP BY these.link_id) AS counted ON counted.link_id = l.link_id"
        " WHERE l.project_id = :project_id AND l.job_id = :job_id ORDER BY l.place",
        {"project_id": project_id, "job_id": job_id, "most": limit},
    )
    return {row["url"]: row["people"] for row in rows}


def _key(link: Link, subscriber_id: str) -> dict[str, str]:
    return {
        "project_id": link.project_id,
        "job_id": link.job_id,
        "link_id": link.link_id,
        "subscriber_id": subscriber_id,
    }
