"""The SQL of enrollments. Updates are conditional on the previous state.

Several rows are locked in the order of their ids, or not waited for, which avoids deadlocks.
"""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, key_params, key_table
from msgsvc_core.kernel.values import value_object
from msgsvc_drip.models import Enrollment, EnrollmentQuery

#: In the order of `Enrollment`'s fields, which rows become by position.
COLUMNS = (
    "project_id",
    "enrollment_id",
    "drip_id",
    "version",
    "subscriber_id",
    "status",
    "next_step",
    "due_at_ms",
    "last_message_id",
    "reason",
    "created_at_ms",
    "finished_at_ms",
)
#: The due time in the clock's time; null while nothing can be due.
_DUE = "CASE WHEN c.status = 'active' THEN e.due_at_ms + c.paused_ms END AS due_at_ms"
_SELECT = (
    f"SELECT {', '.join(_DUE if column == 'due_at_ms' else f'e.{column}' for column in COLUMNS)}"
    " FROM drip_enrollments e"
    " JOIN drip_chains c ON c.project_id = e.project_id AND c.drip_id = e.drip_id"
    " AND c.status <> 'deleted'"
)
_THIS = "project_id = :project_id AND enrollment_id = :enrollment_id"

#: What time it is in the chain, which stands still while that is paused (see `due_store`).
_OWN_TIME = (
    "(SELECT COALESCE(c.paused_at_ms, :now_ms) - c.paused_ms FROM drip_chains c"
    " WHERE c.project_id = drip_enrollments.project_id AND c.drip_id = drip_enrollments.drip_id)"
)
#: What a pause of one person keeps: how long until the next step, or nothing if that is late already.
_LEFT = f"CASE WHEN due_at_ms > {_OWN_TIME} THEN due_at_ms - {_OWN_TIME} ELSE 0 END"


@value_object
class NewEnrollment:
    """A new enrollment in a version of a campaign."""

    project_id: str
    enrollment_id: str
    drip_id: str
    version: int
    subscriber_id: str
    due_at_ms: int


async def insert(tx: Tx, enrollments: Sequence[NewEnrollment], now_ms: int) -> set[str]:
    """Enrolls subscribers, who are locked, in active campaigns, unless they are enrolled, or were before
    and may not re-enter. Returns the ids of the new enrollments."""
    if not enrollments:
        return set()
    columns = ("project", "enrollment", "drip", "number", "subscriber", "due")
    rows = await tx.fetch_all(
        "INSERT INTO drip_enrollments (project_id, enrollment_id, drip_id, version, subscriber_id,"
        " status, next_step, due_at_ms, created_at_ms)"
        " SELECT keys.project, keys.enrollment, keys.drip, CAST(keys.number AS integer),"
        " keys.subscriber, 'active', 0, CAST(keys.due AS bigint) - c.paused_ms, CAST(:now_ms AS bigint)"
        f" FROM {key_table(columns, tx.dialect)}"
        " CROSS JOIN drip_chains c"
        " WHERE c.project_id = keys.project AND c.drip_id = keys.drip AND c.status = 'active'"
        " AND (c.reentry = 'after_completion' OR NOT EXISTS"
        " (SELECT 1 FROM drip_enrollments b WHERE b.project_id = keys.project"
        " AND b.subscriber_id = keys.subscriber AND b.drip_id = keys.drip))"
        " ON CONFLICT DO NOTHING RETURNING enrollment_id",
        {
            **key_params(
                [
                    (
                        one.project_id,
                        one.enrollment_id,
                        one.drip_id,
                        str(one.version),
                        one.subscriber_id,
                        str(one.due_at_ms),
                    )
                    # In one order, as two who add the same people would else wait for each other.
                    for one in sorted(enrollments, key=lambda one: (one.subscriber_id, one.drip_id))
                ],
                tx.dialect,
            ),
            "now_ms": now_ms,
        },
    )
    return {row["enrollment_id"] for row in rows}


async def find(tx: Tx, project_id: str, enrollment_id: str) -> Enrollment | None:
    row = await tx.fetch_one(
        f"{_SELECT} WHERE e.project_id = :project_id AND e.enrollment_id = :enrollment_id",
        {"project_id": project_id, "enrollment_id": enrollment_id},
    )
    return None if row is None else _enrollment(row)


async def find_last(tx: Tx, project_id: str, drip_id: str, subscriber_id: str) -> Enrollment | None:
    """A subscriber's latest enrollment in a campaign."""
    row = await tx.fetch_one(
        f"{_SELECT} WHERE e.project_id = :project_id AND e.subscriber_id = :subscriber_id"
        " AND e.drip_id = :drip_id ORDER BY e.enrollment_id DESC LIMIT 1",
        {"project_id": project_id, "drip_id": drip_id, "subscriber_id": subscriber_id},
    )
    return None if row is None else _enrollment(row)


async def find_earlier(
    tx: Tx, enrollments: Sequence[tuple[Enrollment, Sequence[str]]]
) -> dict[str, str]:
    """Of each enrollment, given with the person's other subscribers: the earliest one of theirs in the same
    campaign, if it had not ended when this one began, and was not stopped or cancelled since. By their
    ids."""
    keys = [
        (one.project_id, one.enrollment_id, one.drip_id, str(one.created_at_ms), subscriber_id)
        for one, subscriber_ids in enrollments
        for subscriber_id in subscriber_ids
    ]
    if not keys:
        return {}
    columns = ("project", "enrollment", "drip", "began", "subscriber")
    rows = await tx.fetch_all(
        "SELECT keys.enrollment, MIN(e.enrollment_id) AS earlier"
        f" FROM {key_table(columns, tx.dialect)} CROSS JOIN drip_enrollments e"
        " WHERE e.project_id = keys.project AND e.subscriber_id = keys.subscriber"
        " AND e.drip_id = keys.drip AND e.enrollment_id < keys.enrollment"
        " AND (e.finished_at_ms IS NULL OR (e.status = 'completed'"
        " AND e.finished_at_ms >= CAST(keys.began AS bigint))) GROUP BY keys.enrollment",
        key_params(keys, tx.dialect),
    )
    return {row["enrollment"]: row["earlier"] for row in rows}


async def list_page(
    tx: Tx, project_id: str, drip_id: str, query: EnrollmentQuery
) -> list[Enrollment]:
    """Up to one more than a page, newest first."""
    conditions = ["e.project_id = :project_id", "e.drip_id = :drip_id"]
    params: dict[str, Any] = {
        "project_id": project_id,
        "drip_id": drip_id,
        "most": query.fetch_limit,
    }
    for column, value in (("status", query.status), ("subscriber_id", query.subscriber_id)):
        if value is not None:
            conditions.append(f"e.{column} = :{column}")
            params[column] = value
    if (after := query.begin("enr")) is not None:
        conditions.append("e.enrollment_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY e.enrollment_id DESC LIMIT :most",
        params,
    )
    return [_enrollment(row) for row in rows]


async def stop(
    tx: Tx, ends: Sequence[tuple[str, str, str | None, int | None, str]], now_ms: int
) -> None:
    """Stops enrollments, given as (project_id, subscriber_id, drip_id, version, reason); without `drip_id`
    those of all campaigns."""
    if not ends:
        return
    columns = ("project", "subscriber", "drip", "number", "why")
    params = key_params(
        [
            (project_id, subscriber_id, drip_id or "", str(version or 0), why)
            for project_id, subscriber_id, drip_id, version, why in ends
        ],
        tx.dialect,
    )
    meant = (
        f"FROM {key_table(columns, tx.dialect)} CROSS JOIN drip_enrollments e"
        " WHERE e.project_id = keys.project AND e.subscriber_id = keys.subscriber"
        " AND e.finished_at_ms IS NULL AND (keys.drip = '' OR (e.drip_id = keys.drip"
        " AND e.version = CAST(keys.number AS integer)))"
    )
    rows = await tx.fetch_all(
        f"SELECT e.project_id, e.enrollment_id, keys.why {meant} ORDER BY e.enrollment_id"
        + for_update(tx.dialect, "e"),
        params,
    )
    found = {row["enrollment_id"]: (row["project_id"], row["why"]) for row in rows}
    if not found:
        return
    await tx.execute(
        "UPDATE drip_enrollments AS e SET status = 'stopped', due_at_ms = NULL, left_ms = NULL,"
        " reason = keys.why, finished_at_ms = :now_ms"
        f" FROM {key_table(('project', 'enrollment', 'why'), tx.dialect)}"
        " WHERE e.project_id = keys.project AND e.enrollment_id = keys.enrollment"
        " AND e.finished_at_ms IS NULL",
        {
            **key_params([(of, each, why) for each, (of, why) in found.items()], tx.dialect),
            "now_ms": now_ms,
        },
    )


async def pause(tx: Tx, project_id: str, enrollment_id: str, now_ms: int) -> bool:
    """False if it is not active."""
    return await _change(
        tx,
        project_id,
        enrollment_id,
        f"status = 'paused', left_ms = {_LEFT}, due_at_ms = NULL",
        "status = 'active'",
        now_ms,
    )


async def resume(tx: Tx, project_id: str, enrollment_id: str, now_ms: int) -> bool:
    """False if it is not paused. In a paused campaign, no step becomes due by this."""
    return await _change(
        tx,
        project_id,
        enrollment_id,
        f"status = 'active', due_at_ms = {_OWN_TIME} + left_ms, left_ms = NULL",
        "status = 'paused'",
        now_ms,
    )


async def cancel(tx: Tx, project_id: str, enrollment_id: str, now_ms: int) -> bool:
    """False if it has ended."""
    return await _change(
        tx,
        project_id,
        enrollment_id,
        "status = 'cancelled', due_at_ms = NULL, left_ms = NULL, finished_at_ms = :now_ms",
        "finished_at_ms IS NULL",
        now_ms,
    )


async def delete_some(tx: Tx, project_id: str, drip_id: str, limit: int) -> int:
    """Deletes some enrollments of a campaign; returns how many."""
    return await tx.execute(
        "DELETE FROM drip_enrollments WHERE project_id = :project_id AND enrollment_id IN"
        " (SELECT enrollment_id FROM drip_enrollments WHERE project_id = :project_id"
        f" AND drip_id = :drip_id ORDER BY enrollment_id LIMIT :most{for_update(tx.dialect)})",
        {"project_id": project_id, "drip_id": drip_id, "most": limit},
    )


async def _change(
    tx: Tx, project_id: str, enrollment_id: str, change: str, condition: str, now_ms: int
) -> bool:
    params: dict[str, Any] = {"project_id": project_id, "enrollment_id": enrollment_id}
    if ":now_ms" in change:
        params["now_ms"] = now_ms
    return bool(
        await tx.execute(
            f"UPDATE drip_enrollments SET {change} WHERE {_THIS} AND {condition}", params
        )
    )


def _enrollment(row: Row) -> Enrollment:
    return Enrollment(*row)
