"""Submissions as CSV, for spreadsheets: read in chunks, without holding a connection in between."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from msgsvc_core.api import examples
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.csv import BOM, escape_formula, lines
from msgsvc_forms.models import Submission, SubmissionFilters
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions

#: Submissions that are read, and sent, at a time.
CHUNK = 200

#: What stands before the answers.
COLUMNS = ("submission_id", "created_at", "form_version", "source", "subscriber_id", "spam")

#: A file with one submission of a form that asks for a name and whether somebody comes.
EXAMPLE = lines(
    [
        (*COLUMNS, "name", "comes"),
        ("fsb_032aJeVyQewCYCFdzckHcQ", examples.TIME, "1", "web", "", "", "Ann", "true"),
    ]
)


async def to_csv(
    db: Database,
    forms: Forms,
    submissions: Submissions,
    project_id: str,
    form_id: str,
    filters: SubmissionFilters,
) -> AsyncIterator[bytes]:
    """The lines of the file, newest first, in pieces of up to `CHUNK`.

    A column for every question of the current version, and of all versions with answers. Raises `NotFound`
    before the first piece.
    """
    async with db.read() as tx:
        form = await forms.get(tx, project_id, form_id)
        keys = await forms.all_keys(tx, form)
    after: str | None = None
    text = BOM + lines([(*COLUMNS, *keys)])
    while True:
        # A connection for the question alone: how long the client takes to read is theirs to decide.
        async with db.read() as tx:
            found = await submissions.page(tx, project_id, form_id, filters, after, CHUNK)
        text += lines([_cells(row, keys) for row in found])
        if text:
            yield text.encode()
        if len(found) < CHUNK:
            return
        after, text = found[-1].submission_id, ""


def _cells(row: Submission, keys: Sequence[str]) -> tuple[str, ...]:
    answers = {answer["key"]: answer["value"] for answer in row.ordered}
    return (
        row.submission_id,
        to_rfc3339(row.created_at_ms),
        str(row.version),
        row.source,
        row.subscriber_id or "",
        row.spam or "",
        *(_cell(answers.get(key)) for key in keys),
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        # Of files, the ids, by which GET /v1/files finds them, and their names.
        named = (
            f"{one['file_id']} {one['filename']}" if isinstance(one, dict) else str(one)
            for one in value
        )
        return escape_formula("; ".join(named))
    return escape_formula(str(value))
