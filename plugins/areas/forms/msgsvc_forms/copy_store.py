"""The SQL of copies of answers. The rows outlive their submission."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.kernel.values import value_object
from msgsvc_forms.models import RuleResult, Submission

_THESE = "project_id = :project_id AND "


@value_object
class Copy:
    """A copy of a submission: `copy_id` is the id of a message, mailing or ticket, depending on `kind`."""

    submission_id: str
    copy_id: str
    kind: str


async def insert(tx: Tx, submission: Submission, results: Sequence[RuleResult]) -> None:
    rows = [
        {
            "project_id": submission.project_id,
            "submission_id": submission.submission_id,
            "copy_id": one.id,
            "kind": one.kind,
            "subscriber_id": submission.subscriber_id,
        }
        for one in results
        if one.id is not None
    ]
    await tx.insert_many("forms_copies", rows)


async def find(tx: Tx, project_id: str, submission_ids: Sequence[str]) -> list[Copy]:
    """The copies of some submissions."""
    rows = await tx.fetch_all(
        "SELECT submission_id, copy_id, kind FROM forms_copies"
        f" WHERE {_THESE}{in_array('submission_id', 'ids', tx.dialect)} ORDER BY copy_id",
        {"project_id": project_id, "ids": array_param(submission_ids, tx.dialect)},
    )
    return [Copy(row["submission_id"], row["copy_id"], row["kind"]) for row in rows]


async def detach(tx: Tx, project_id: str, subscriber_id: str) -> list[str]:
    """Detaches a subscriber's submissions that have copies; returns their ids."""
    rows = await tx.fetch_all(
        "UPDATE forms_copies SET subscriber_id = NULL"
        f" WHERE {_THESE}subscriber_id = :subscriber_id RETURNING submission_id",
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )
    return sorted({row["submission_id"] for row in rows})


async def delete(tx: Tx, project_id: str, submission_ids: Sequence[str], *, tickets: bool) -> None:
    """Deletes records of copies; without `tickets`, keeps those in tickets of people who may still be
    erased."""
    stays = "" if tickets else " AND (kind <> 'ticket' OR subscriber_id IS NULL)"
    await tx.execute(
        f"DELETE FROM forms_copies WHERE {_THESE}"
        f"{in_array('submission_id', 'ids', tx.dialect)}{stays}",
        {"project_id": project_id, "ids": array_param(submission_ids, tx.dialect)},
    )
