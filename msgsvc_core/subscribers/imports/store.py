"""The SQL of imports."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_no_key_update
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.subscribers.imports.models import (
    Ended,
    ImportCode,
    ImportOptions,
    PeopleImport,
)

_COUNTS = ("added", "updated", "unchanged", "refused", "must_start")
_SELECT = (
    "SELECT project_id, import_id, status, dry_run, columns, options, total,"
    f" {', '.join(_COUNTS)}, error, created_at_ms, finished_at_ms FROM core_imports"
    " WHERE project_id = :project_id"
)
_OF_ONE = " WHERE project_id = :project_id AND import_id = :import_id"


async def insert(tx: Tx, new: PeopleImport) -> None:
    options = new.options
    await tx.insert(
        "core_imports",
        {
            "project_id": new.project_id,
            "import_id": new.import_id,
            "status": new.status,
            "dry_run": new.dry_run,
            "columns": to_json({"used": new.columns, "ignored": list(new.ignored)}),
            "options": to_json(
                {
                    "channel": options.channel,
                    "consent": options.consent,
                    "same_bot": options.same_bot,
                }
            ),
            "total": new.total,
            **dict.fromkeys(_COUNTS, 0),
            "created_at_ms": new.created_at_ms,
        },
    )


async def insert_slices(
    tx: Tx, project_id: str, import_id: str, slices: Sequence[tuple[int, str]]
) -> None:
    """The encrypted rows, by the line with which each slice begins."""
    await tx.insert_many(
        "core_import_slices",
        [
            {"project_id": project_id, "import_id": import_id, "place": place, "content": rows}
            for place, rows in slices
        ],
    )


async def has_running(tx: Tx, project_id: str) -> bool:
    found = await tx.fetch_one(
        "SELECT 1 AS one FROM core_imports WHERE project_id = :project_id AND status = 'running'"
        " LIMIT 1",
        {"project_id": project_id},
    )
    return found is not None


async def find(tx: Tx, project_id: str, import_id: str) -> PeopleImport | None:
    row = await tx.fetch_one(
        f"{_SELECT} AND import_id = :import_id",
        {"project_id": project_id, "import_id": import_id},
    )
    return None if row is None else _import(row)


async def lock(tx: Tx, project_id: str, import_id: str) -> PeopleImport | None:
    """The same, which nobody else changes until `tx` ends."""
    await tx.fetch_val(
        f"SELECT status FROM core_imports{_OF_ONE}{for_no_key_update(tx.dialect)}",
        {"project_id": project_id, "import_id": import_id},
    )
    return await find(tx, project_id, import_id)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[PeopleImport]:
    """Newest first."""
    condition = "" if after is None else " AND import_id < :after"
    params = {"project_id": project_id, "most": limit}
    rows = await tx.fetch_all(
        f"{_SELECT}{condition} ORDER BY import_id DESC LIMIT :most",
        params if after is None else {**params, "after": after},
    )
    return [_import(row) for row in rows]


async def next_slice(tx: Tx, project_id: str, import_id: str) -> tuple[int, str] | None:
    """The place and the encrypted rows of the first slice that is left."""
    row = await tx.fetch_one(
        f"SELECT place, content FROM core_import_slices{_OF_ONE} ORDER BY place LIMIT 1",
        {"project_id": project_id, "import_id": import_id},
    )
    return None if row is None else (row["place"], row["content"])


async def finish_slice(
    tx: Tx, project_id: str, import_id: str, place: int, counts: dict[str, int], notes: str | None
) -> None:
    """Counts the outcomes of a slice, stores its encrypted notes, and deletes its rows."""
    key = {"project_id": project_id, "import_id": import_id}
    counted = {name: counts.get(name, 0) for name in _COUNTS}
    assignments = ", ".join(f"{name} = {name} + :{name}" for name in _COUNTS)
    await tx.execute(f"UPDATE core_imports SET {assignments}{_OF_ONE}", {**key, **counted})
    await tx.execute(
        f"DELETE FROM core_import_slices{_OF_ONE} AND place = :place", {**key, "place": place}
    )
    if notes is not None:
        await tx.insert("core_import_notes", {**key, "place": place, "content": notes})


async def notes_after(
    tx: Tx, project_id: str, import_id: str, place: int, limit: int
) -> list[tuple[int, str]]:
    """Encrypted notes from after a place, in the order of the file."""
    rows = await tx.fetch_all(
        f"SELECT place, content FROM core_import_notes{_OF_ONE} AND place > :place"
        " ORDER BY place LIMIT :most",
        {"project_id": project_id, "import_id": import_id, "place": place, "most": limit},
    )
    return [(row["place"], row["content"]) for row in rows]


async def finish(
    tx: Tx,
    project_id: str,
    import_id: str,
    status: Ended,
    now_ms: int,
    code: ImportCode | None = None,
) -> bool:
    """Ends one that runs, and deletes the rows that are left; False if it has ended."""
    key = {"project_id": project_id, "import_id": import_id}
    is_ended = await tx.execute(
        "UPDATE core_imports SET status = :status, error = :error, finished_at_ms = :now_ms"
        f"{_OF_ONE} AND status = 'running'",
        {**key, "status": status, "error": code, "now_ms": now_ms},
    )
    if is_ended:
        await tx.execute(f"DELETE FROM core_import_slices{_OF_ONE}", key)
    return bool(is_ended)


def _import(row: Row) -> PeopleImport:
    columns, options = from_json(row["columns"]), from_json(row["options"])
    return PeopleImport(
        project_id=row["project_id"],
        import_id=row["import_id"],
        status=row["status"],
        dry_run=bool(row["dry_run"]),
        columns=columns["used"],
        ignored=tuple(columns["ignored"]),
        options=ImportOptions(**options),
        total=row["total"],
        **{name: row[name] for name in _COUNTS},
        code=row["error"],
        created_at_ms=row["created_at_ms"],
        finished_at_ms=row["finished_at_ms"],
    )
