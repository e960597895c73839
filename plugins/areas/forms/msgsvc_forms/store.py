"""The SQL of forms, their versions and submissions.

A deleted form is no longer found; its row is kept until its last submission is deleted.
"""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, for_key_share, for_update, in_array
from msgsvc_forms.models import Form, Submission, SubmissionFilters

_COLUMNS = ("project_id", "form_id", "slug", "start", "version", "created_at_ms", "updated_at_ms")
_SUBMISSION = (
    "project_id",
    "submission_id",
    "form_id",
    "version",
    "source",
    "subscriber_id",
    "lang",
    "spam",
    "answers",
    "leads",
    "created_at_ms",
)
_OF_FORM = "v.project_id = f.project_id AND v.form_id = f.form_id AND f.deleted_at_ms IS NULL"
_FIELDS = (
    "f.project_id, f.form_id, f.slug, f.start, v.version, f.created_at_ms, f.updated_at_ms,"
    " v.content"
)
_NEWEST = (
    f"SELECT {_FIELDS} FROM forms_forms f JOIN forms_versions v ON {_OF_FORM}"
    " AND v.version = f.version"
)
_THIS = "project_id = :project_id AND form_id = :form_id"


async def count(tx: Tx, project_id: str) -> int:
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM forms_forms"
        " WHERE project_id = :project_id AND deleted_at_ms IS NULL",
        {"project_id": project_id},
    )
    return found


async def has_slug(tx: Tx, project_id: str, slug: str) -> bool:
    row = await tx.fetch_one(
        "SELECT 1 FROM forms_forms WHERE project_id = :project_id AND slug = :slug",
        {"project_id": project_id, "slug": slug},
    )
    return row is not None


async def insert(tx: Tx, form: Form) -> None:
    await tx.insert("forms_forms", {column: getattr(form, column) for column in _COLUMNS})
    await add_version(tx, form)


async def add_version(tx: Tx, form: Form) -> None:
    """Stores the content of a form as its version."""
    await tx.insert(
        "forms_versions",
        {
            "project_id": form.project_id,
            "form_id": form.form_id,
            "version": form.version,
            "content": form.content,
            "created_at_ms": form.updated_at_ms,
        },
    )


async def set_version(tx: Tx, form: Form) -> None:
    """Makes a version the newest."""
    await tx.execute(
        f"UPDATE forms_forms SET version = :version, updated_at_ms = :updated_at_ms WHERE {_THIS}",
        {
            "project_id": form.project_id,
            "form_id": form.form_id,
            "version": form.version,
            "updated_at_ms": form.updated_at_ms,
        },
    )


async def lock_shared(tx: Tx, project_id: str, form_id: str) -> bool:
    """Locks the form in shared mode until the transaction ends; False if it does not exist."""
    key = {"project_id": project_id, "form_id": form_id}
    query = f"SELECT 1 FROM forms_forms WHERE {_THIS} AND deleted_at_ms IS NULL{for_key_share(tx.dialect)}"
    return await tx.fetch_one(query, key) is not None


async def lock(tx: Tx, project_id: str, form_id: str) -> None:
    """Waits for concurrent submissions, and blocks others until the transaction ends."""
    key = {"project_id": project_id, "form_id": form_id}
    await tx.fetch_one(f"SELECT 1 FROM forms_forms WHERE {_THIS}{for_update(tx.dialect)}", key)


async def find(tx: Tx, project_id: str, form_id: str, *, lock: bool = False) -> Form | None:
    """The newest version. With `lock`, the form is locked until the transaction ends."""
    key = {"project_id": project_id, "form_id": form_id}
    if lock and tx.dialect == "postgresql":
        # A separate query: in one with the version, a waiting transaction would read the previous one. Not
        # FOR UPDATE: concurrent submissions need not wait.
        await tx.fetch_one(f"SELECT 1 FROM forms_forms WHERE {_THIS} FOR NO KEY UPDATE", key)
    row = await tx.fetch_one(
        f"{_NEWEST} WHERE f.project_id = :project_id AND f.form_id = :form_id", key
    )
    return None if row is None else Form(*row)


async def find_version(tx: Tx, project_id: str, form_id: str, version: int) -> Form | None:
    row = await tx.fetch_one(
        f"SELECT {_FIELDS} FROM forms_forms f JOIN forms_versions v ON {_OF_FORM}"
        " WHERE f.project_id = :project_id AND f.form_id = :form_id AND v.version = :version",
        {"project_id": project_id, "form_id": form_id, "version": version},
    )
    return None if row is None else Form(*row)


async def list_versions(tx: Tx, project_id: str, form_id: str) -> list[Form]:
    """All versions, newest first."""
    rows = await tx.fetch_all(
        f"SELECT {_FIELDS} FROM forms_forms f JOIN forms_versions v ON {_OF_FORM}"
        " WHERE f.project_id = :project_id AND f.form_id = :form_id ORDER BY v.version DESC",
        {"project_id": project_id, "form_id": form_id},
    )
    return [Form(*row) for row in rows]


async def find_of_any_project(tx: Tx, form_id: str) -> Form | None:
    """A form by its public URL, which has no project."""
    row = await tx.fetch_one(f"{_NEWEST} WHERE f.form_id = :form_id", {"form_id": form_id})
    return None if row is None else Form(*row)


async def find_started(tx: Tx, start: str) -> Form | None:
    """The form, of any project, whose deep links have `start`."""
    row = await tx.fetch_one(f"{_NEWEST} WHERE f.start = :start", {"start": start})
    return None if row is None else Form(*row)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Form]:
    """Newest first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"{_NEWEST} WHERE f.project_id = :project_id"
        + (" AND f.form_id < :after" if after is not None else "")
        + " ORDER BY f.form_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [Form(*row) for row in rows]


async def mark_deleted(tx: Tx, project_id: str, form_id: str, now_ms: int) -> bool:
    """Marks a form as deleted, and frees its slug. False if it does not exist."""
    return bool(
        await tx.execute(
            # No slug has a colon.
            "UPDATE forms_forms SET deleted_at_ms = :now_ms, slug = ':' || form_id,"
            f" start = ':' || form_id WHERE {_THIS} AND deleted_at_ms IS NULL",
            {"project_id": project_id, "form_id": form_id, "now_ms": now_ms},
        )
    )


async def delete_marked(tx: Tx, project_id: str, form_id: str) -> None:
    """Deletes a form that is marked as deleted, with its versions."""
    await tx.execute(
        f"DELETE FROM forms_forms WHERE {_THIS} AND deleted_at_ms IS NOT NULL",
        {"project_id": project_id, "form_id": form_id},
    )


async def insert_submission(tx: Tx, row: Submission, once_key: str | None, file_bytes: int) -> bool:
    """False if there is one with the same `once_key`."""
    values = {name: getattr(row, name) for name in _SUBMISSION}
    values |= {"once_key": once_key, "file_bytes": file_bytes}
    names = list(values)
    return bool(
        await tx.execute(
            f"INSERT INTO forms_submissions ({', '.join(names)})"
            f" VALUES ({', '.join(f':{name}' for name in names)})"
            " ON CONFLICT (project_id, form_id, once_key) DO NOTHING",
            values,
        )
    )


async def full_until(
    tx: Tx, project_id: str, since_ms: int, *, spam: bool, room: int
) -> int | None:
    """The latest time since which a project's web forms have received more bytes of files than `room`:
    when it leaves the window, there is capacity again. None if there is now, looking back to `since_ms`."""
    moment: int | None = await tx.fetch_val(
        "SELECT MAX(created_at_ms) FROM (SELECT created_at_ms, SUM(file_bytes) OVER"
        " (ORDER BY created_at_ms DESC, submission_id DESC) AS newer FROM forms_submissions"
        " WHERE project_id = :project_id AND file_bytes > 0 AND created_at_ms > :since_ms"
        f" AND spam IS {'NOT NULL' if spam else 'NULL'}) AS summed WHERE newer > CAST(:room AS BIGINT)",
        {"project_id": project_id, "since_ms": since_ms, "room": room},
    )
    return moment


async def set_leads(tx: Tx, project_id: str, submission_id: str, leads: str) -> None:
    await tx.execute(
        "UPDATE forms_submissions SET leads = :leads"
        " WHERE project_id = :project_id AND submission_id = :submission_id",
        {"project_id": project_id, "submission_id": submission_id, "leads": leads},
    )


async def find_by_once_key(
    tx: Tx, project_id: str, form_id: str, once_key: str
) -> Submission | None:
    row = await tx.fetch_one(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions"
        f" WHERE {_THIS} AND once_key = :once_key",
        {"project_id": project_id, "form_id": form_id, "once_key": once_key},
    )
    return None if row is None else _submission(row)


async def find_submission(
    tx: Tx, project_id: str, form_id: str, submission_id: str
) -> Submission | None:
    row = await tx.fetch_one(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions"
        f" WHERE {_THIS} AND submission_id = :submission_id",
        {"project_id": project_id, "form_id": form_id, "submission_id": submission_id},
    )
    return None if row is None else _submission(row)


async def delete_submissions(tx: Tx, project_id: str, submission_ids: Sequence[str]) -> None:
    await tx.execute(
        "DELETE FROM forms_submissions WHERE project_id = :project_id"
        f" AND {in_array('submission_id', 'ids', tx.dialect)}",
        {"project_id": project_id, "ids": array_param(submission_ids, tx.dialect)},
    )


async def list_submissions(
    tx: Tx,
    project_id: str,
    form_id: str,
    filters: SubmissionFilters,
    after: str | None,
    limit: int,
    *,
    ascending: bool = False,
) -> list[Submission]:
    """Newest first, or oldest first; `after` is the last id of the previous page, in that order."""
    beyond, order = (">", "ASC") if ascending else ("<", "DESC")
    rows = await tx.fetch_all(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions WHERE {_THIS}"
        f" AND spam IS {'NOT NULL' if filters.spam else 'NULL'}"
        + (" AND source = :source" if filters.source is not None else "")
        + (f" AND submission_id {beyond} :after" if after is not None else "")
        + f" ORDER BY submission_id {order} LIMIT :most",
        {
            "project_id": project_id,
            "form_id": form_id,
            "source": filters.source,
            "after": after,
            "most": limit,
        },
    )
    return [_submission(row) for row in rows]


async def count_submissions(
    tx: Tx, project_id: str, form_id: str, *, spam: bool, limit: int
) -> int:
    """The number, counted up to `limit`."""
    found: int = await tx.fetch_val(
        f"SELECT COUNT(*) AS many FROM (SELECT 1 AS one FROM forms_submissions WHERE {_THIS}"
        f" AND spam IS {'NOT NULL' if spam else 'NULL'} LIMIT :most) AS counted",
        {"project_id": project_id, "form_id": form_id, "most": limit},
    )
    return found


async def clear_spam(tx: Tx, project_id: str, submission_id: str) -> bool:
    """Marks a submission as not spam. False if it was not marked as spam."""
    return bool(
        await tx.execute(
            "UPDATE forms_submissions SET spam = NULL WHERE project_id = :project_id"
            " AND submission_id = :submission_id AND spam IS NOT NULL",
            {"project_id": project_id, "submission_id": submission_id},
        )
    )


async def list_old(tx: Tx, before_ms: int, *, spam: bool, limit: int) -> list[Submission]:
    """Submissions of all projects from before a time, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions WHERE created_at_ms < :before_ms"
        f" AND spam IS {'NOT NULL' if spam else 'NULL'} ORDER BY created_at_ms LIMIT :most",
        {"before_ms": before_ms, "most": limit},
    )
    return [_submission(row) for row in rows]


async def list_spam(
    tx: Tx, project_id: str, form_id: str, until_ms: int, limit: int
) -> list[Submission]:
    """Some submissions that were marked as spam until a time, in the order of an index."""
    rows = await tx.fetch_all(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions WHERE {_THIS} AND spam IS NOT NULL"
        " AND created_at_ms <= :until_ms ORDER BY submission_id LIMIT :most",
        {"project_id": project_id, "form_id": form_id, "until_ms": until_ms, "most": limit},
    )
    return [_submission(row) for row in rows]


async def list_any(tx: Tx, project_id: str, form_id: str, limit: int) -> list[Submission]:
    """Some submissions, including spam."""
    rows = await tx.fetch_all(
        f"SELECT {', '.join(_SUBMISSION)} FROM forms_submissions WHERE {_THIS}"
        " ORDER BY submission_id LIMIT :most",
        {"project_id": project_id, "form_id": form_id, "most": limit},
    )
    return [_submission(row) for row in rows]


def _submission(row: Row) -> Submission:
    fields: dict[str, Any] = {name: row[name] for name in _SUBMISSION}
    return Submission(**fields)
