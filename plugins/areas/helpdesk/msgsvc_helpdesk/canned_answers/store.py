"""The SQL of canned answers."""

from msgsvc_core.db import Tx
from msgsvc_helpdesk.canned_answers.models import CannedAnswer

_COLUMNS = (
    "project_id",
    "key",
    "canned_answer_id",
    "title",
    "content",
    "created_at_ms",
    "updated_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM helpdesk_canned_answers"


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS many FROM helpdesk_canned_answers WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def insert(tx: Tx, answer: CannedAnswer) -> bool:
    """False if the project has one with that key."""
    return bool(
        await tx.execute(
            f"INSERT INTO helpdesk_canned_answers ({', '.join(_COLUMNS)})"
            f" VALUES ({', '.join(f':{column}' for column in _COLUMNS)}) ON CONFLICT DO NOTHING",
            {column: getattr(answer, column) for column in _COLUMNS},
        )
    )


async def find(tx: Tx, project_id: str, key: str) -> CannedAnswer | None:
    row = await tx.fetch_one(
        f"{_SELECT} WHERE project_id = :project_id AND key = :key",
        {"project_id": project_id, "key": key},
    )
    return None if row is None else CannedAnswer(*row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[CannedAnswer]:
    """Newest first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE project_id = :project_id"
        + (" AND canned_answer_id < :after" if after is not None else "")
        + " ORDER BY canned_answer_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit} | ({} if after is None else {"after": after}),
    )
    return [CannedAnswer(*row) for row in rows]


async def update(tx: Tx, answer: CannedAnswer) -> None:
    """Writes title and content."""
    await tx.execute(
        "UPDATE helpdesk_canned_answers SET title = :title, content = :content,"
        " updated_at_ms = :updated_at_ms WHERE project_id = :project_id AND key = :key",
        {
            "title": answer.title,
            "content": answer.content,
            "updated_at_ms": answer.updated_at_ms,
            "project_id": answer.project_id,
            "key": answer.key,
        },
    )


async def delete(tx: Tx, project_id: str, key: str) -> bool:
    """False if there is none."""
    return bool(
        await tx.execute(
            "DELETE FROM helpdesk_canned_answers WHERE project_id = :project_id AND key = :key",
            {"project_id": project_id, "key": key},
        )
    )
