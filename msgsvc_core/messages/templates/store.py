"""The SQL of templates."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_core.messages.templates.models import StoredTemplate

_COLUMNS = "project_id, key, template_id, content, created_at_ms, updated_at_ms"


async def insert(tx: Tx, template: StoredTemplate) -> bool:
    """False if the project has a template of that key."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_templates ({_COLUMNS}) VALUES (:project_id, :key, :template_id,"
            " :content, :created_at_ms, :updated_at_ms) ON CONFLICT (project_id, key) DO NOTHING",
            {
                "project_id": template.project_id,
                "key": template.key,
                "template_id": template.template_id,
                "content": template.content,
                "created_at_ms": template.created_at_ms,
                "updated_at_ms": template.updated_at_ms,
            },
        )
    )


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT count(*) AS n FROM core_templates WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def find(tx: Tx, project_id: str, key: str) -> StoredTemplate | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM core_templates WHERE project_id = :project_id AND key = :key",
        {"project_id": project_id, "key": key},
    )
    return None if row is None else _template(row)


async def find_contents(tx: Tx, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The contents by (project_id, key), of several projects at once."""
    rows = await tx.fetch_all(
        "SELECT t.project_id, t.key, t.content"
        f" FROM {key_table(('project_id', 'name'), tx.dialect)} CROSS JOIN core_templates t"
        " WHERE t.project_id = keys.project_id AND t.key = keys.name",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["key"]): row["content"] for row in rows}


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[StoredTemplate]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_templates WHERE project_id = :project_id"
        + (" AND template_id < :after" if after is not None else "")
        + " ORDER BY template_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_template(row) for row in rows]


async def update(tx: Tx, template: StoredTemplate) -> None:
    await tx.execute(
        "UPDATE core_templates SET content = :content, updated_at_ms = :now_ms"
        " WHERE project_id = :project_id AND key = :key",
        {
            "project_id": template.project_id,
            "key": template.key,
            "content": template.content,
            "now_ms": template.updated_at_ms,
        },
    )


async def delete(tx: Tx, project_id: str, key: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM core_templates WHERE project_id = :project_id AND key = :key",
            {"project_id": project_id, "key": key},
        )
    )


def _template(row: Row) -> StoredTemplate:
    return StoredTemplate(**{column: row[column] for column in _COLUMNS.split(", ")})
