"""The SQL of files and their chunks.

A `removed` file is not found any more; its row is kept until its content is deleted.
"""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, for_key_share, in_array
from msgsvc_core.files.models import StoredFile

#: Bytes of a chunk, the part of a file that is in memory at a time.
CHUNK_BYTES = 256 * 1024

_COLUMNS = (
    "file_id",
    "project_id",
    "subscriber_id",
    "type",
    "filename",
    "mime_type",
    "size",
    "status",
    "reason",
    "created_at_ms",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM core_files"
_THIS = "project_id = :project_id AND file_id = :file_id"
_THERE = "status <> 'removed'"


async def insert(tx: Tx, file: StoredFile, source: str | None = None) -> None:
    """`source` is the encrypted reference of a pending file."""
    values = {column: getattr(file, column) for column in _COLUMNS}
    await tx.insert("core_files", {**values, "source": source, "is_kept": False})


async def count_of_person(tx: Tx, project_id: str, subscriber_id: str, since_ms: int) -> int:
    """Number of files that a user has sent since then, without failed ones."""
    return int(
        await tx.fetch_val(
            "SELECT COUNT(*) FROM core_files WHERE project_id = :project_id"
            " AND subscriber_id = :subscriber_id AND created_at_ms > :since_ms"
            " AND status NOT IN ('failed', 'removed')",
            {"project_id": project_id, "subscriber_id": subscriber_id, "since_ms": since_ms},
        )
    )


async def find(tx: Tx, project_id: str, file_id: str) -> StoredFile | None:
    row = await tx.fetch_one(f"{_SELECT} WHERE {_THIS} AND {_THERE}", _key(project_id, file_id))
    return None if row is None else _file(row)


async def get_many(tx: Tx, project_id: str, file_ids: Sequence[str]) -> list[StoredFile]:
    """In no defined order."""
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE project_id = :project_id AND {_THERE}"
        f" AND {in_array('file_id', 'ids', tx.dialect)}",
        {"project_id": project_id, "ids": array_param(file_ids, tx.dialect)},
    )
    return [_file(row) for row in rows]


async def find_signed(tx: Tx, file_id: str) -> StoredFile | None:
    """A file of any project: for a caller that has verified the signature."""
    row = await tx.fetch_one(
        f"{_SELECT} WHERE file_id = :file_id AND {_THERE}", {"file_id": file_id}
    )
    return None if row is None else _file(row)


async def find_source(tx: Tx, project_id: str, file_id: str) -> str | None:
    """The encrypted reference of a pending file."""
    source: str | None = await tx.fetch_val(
        f"SELECT source FROM core_files WHERE {_THIS} AND status = 'pending'",
        _key(project_id, file_id),
    )
    return source


async def lock_pending(tx: Tx, project_id: str, file_id: str) -> bool:
    """Whether the file is pending; it stays so until the transaction ends."""
    found = await tx.fetch_all(
        f"SELECT 1 FROM core_files WHERE {_THIS} AND status = 'pending'{for_key_share(tx.dialect)}",
        _key(project_id, file_id),
    )
    return bool(found)


async def finish(tx: Tx, file: StoredFile) -> bool:
    """Writes the outcome of a pending file; False if it is no longer pending."""
    values = {
        name: getattr(file, name)
        for name in ("type", "filename", "mime_type", "size", "status", "reason")
    }
    sets = ", ".join(f"{name} = :{name}" for name in values)
    changed = await tx.execute(
        f"UPDATE core_files SET {sets}, source = NULL WHERE {_THIS} AND status = 'pending'",
        {**values, **_key(file.project_id, file.file_id)},
    )
    return bool(changed)


async def retain(tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
    await tx.execute(
        "UPDATE core_files SET is_kept = :yes WHERE project_id = :project_id"
        f" AND {in_array('file_id', 'ids', tx.dialect)}",
        {"yes": True, "project_id": project_id, "ids": array_param(file_ids, tx.dialect)},
    )


async def delete(tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
    """Deletes files with their content."""
    await tx.execute(
        "DELETE FROM core_files WHERE project_id = :project_id"
        f" AND {in_array('file_id', 'ids', tx.dialect)}",
        {"project_id": project_id, "ids": array_param(file_ids, tx.dialect)},
    )


async def mark_removed(tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
    """Marks files as removed; `delete_removed` deletes their content."""
    await tx.execute(
        "UPDATE core_files SET status = 'removed', source = NULL WHERE project_id = :project_id"
        f" AND {in_array('file_id', 'ids', tx.dialect)}",
        {"project_id": project_id, "ids": array_param(file_ids, tx.dialect)},
    )


async def delete_removed(tx: Tx, limit: int) -> int:
    """Deletes the rows and content of files of all projects that are marked as removed; returns how many."""
    return await tx.execute(
        "DELETE FROM core_files WHERE file_id IN (SELECT file_id FROM core_files"
        " WHERE status = 'removed' LIMIT :most)",
        {"most": limit},
    )


async def delete_unreferenced(tx: Tx, before_ms: int, limit: int) -> int:
    """Deletes older files of all projects that nothing retains; returns how many."""
    return await tx.execute(
        "DELETE FROM core_files WHERE file_id IN (SELECT file_id FROM core_files"
        " WHERE NOT is_kept AND created_at_ms < :before_ms ORDER BY created_at_ms LIMIT :most)",
        {"before_ms": before_ms, "most": limit},
    )


async def delete_of_subscriber(tx: Tx, project_id: str, subscriber_id: str, limit: int) -> int:
    """Deletes some files of a subscriber; returns how many."""
    return await tx.execute(
        "DELETE FROM core_files WHERE project_id = :project_id AND file_id IN"
        " (SELECT file_id FROM core_files WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id LIMIT :most)",
        {"project_id": project_id, "subscriber_id": subscriber_id, "most": limit},
    )


async def insert_chunk(tx: Tx, project_id: str, file_id: str, number: int, content: bytes) -> None:
    await tx.execute(
        "INSERT INTO core_file_chunks (project_id, file_id, number, content)"
        " VALUES (:project_id, :file_id, :number, :content)",
        {**_key(project_id, file_id), "number": number, "content": content},
    )


async def delete_chunks(tx: Tx, project_id: str, file_id: str) -> None:
    await tx.execute(f"DELETE FROM core_file_chunks WHERE {_THIS}", _key(project_id, file_id))


async def read_chunk(tx: Tx, project_id: str, file_id: str, number: int) -> bytes | None:
    content: bytes | None = await tx.fetch_val(
        f"SELECT content FROM core_file_chunks WHERE {_THIS} AND number = :number",
        {**_key(project_id, file_id), "number": number},
    )
    return content


def _key(project_id: str, file_id: str) -> dict[str, Any]:
    return {"project_id": project_id, "file_id": file_id}


def _file(row: Row) -> StoredFile:
    return StoredFile(**{column: row[column] for column in _COLUMNS})
