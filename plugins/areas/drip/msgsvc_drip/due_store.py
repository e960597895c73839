"""The SQL of due steps, and of advancing enrollments.

Due times are stored in the campaign's own time, which stops while it is paused: the clock's time minus
`paused_ms`, the sum of its pauses. Arguments and results here are in the clock's time.
"""

from collections.abc import Collection, Sequence
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of, key_params, key_table
from msgsvc_core.jobs.inspection import Waiting
from msgsvc_core.kernel.values import value_object
from msgsvc_drip.enrollment_store import COLUMNS
from msgsvc_drip.models import Enrollment, EnrollmentStatus

#: The name of steps that wait for their time, for operators.
PLANNED = "drip.step"

_SELECTED = ", ".join(
    "e.due_at_ms + :paused_ms AS due_at_ms" if column == "due_at_ms" else f"e.{column}"
    for column in COLUMNS
)


@value_object
class DueDrip:
    """A campaign with a due step, and the sum of its pauses until now."""

    project_id: str
    drip_id: str
    paused_ms: int


@value_object
class DueStep:
    """An enrollment with a due step, and the sum of its campaign's pauses when that was read."""

    row: Enrollment
    paused_ms: int


@value_object
class Move:
    """The next state of an enrollment with a due step, with the `message_id` of the sent message."""

    due: DueStep
    status: EnrollmentStatus
    next_step: int
    due_at_ms: int | None
    message_id: str | None
    reason: str | None

    @property
    def row(self) -> Enrollment:
        return self.due.row


async def find_due_drips(
    tx: Tx, now_ms: int, limit: int, *, disabled: Collection[str] = ()
) -> list[DueDrip]:
    """Active campaigns with a due step, except those of the projects `disabled`; the longest due first.

    One index step for each such campaign, however many enrollments it has.
    """
    stopped, params = any_of("c.project_id", "disabled", sorted(disabled), tx.dialect)
    rows = await tx.fetch_all(
        "WITH firsts AS MATERIALIZED (SELECT c.project_id, c.drip_id, c.paused_ms, c.paused_ms"
        " + (SELECT e.due_at_ms FROM drip_enrollments e WHERE e.project_id = c.project_id"
        " AND e.drip_id = c.drip_id AND e.due_at_ms IS NOT NULL"
        " ORDER BY e.due_at_ms, e.enrollment_id LIMIT 1) AS first_ms"
        f" FROM drip_chains c WHERE c.status = 'active' AND NOT {stopped})"
        " SELECT project_id, drip_id, paused_ms FROM firsts WHERE first_ms <= :now_ms"
        " ORDER BY first_ms, drip_id LIMIT :most",
        {"now_ms": now_ms, "most": limit, **params},
    )
    return [DueDrip(*row) for row in rows]


async def find_due(tx: Tx, drip: DueDrip, now_ms: int, limit: int) -> list[DueStep]:
    """A campaign's enrollments with a due step, the longest due first."""
    rows = await tx.fetch_all(
        f"SELECT {_SELECTED} FROM drip_enrollments e WHERE e.project_id = :project_id"
        " AND e.drip_id = :drip_id AND e.due_at_ms <= :until_ms"
        " ORDER BY e.due_at_ms, e.enrollment_id LIMIT :most",
        {
            "project_id": drip.project_id,
            "drip_id": drip.drip_id,
            "paused_ms": drip.paused_ms,
            "until_ms": now_ms - drip.paused_ms,
            "most": limit,
        },
    )
    return [DueStep(Enrollment(*row), drip.paused_ms) for row in rows]


async def count_waiting(tx: Tx, before_ms: int | None) -> Waiting | None:
    """The next steps in active campaigns of all projects; those due before a time, if there is one."""
    before = "" if before_ms is None else " AND e.due_at_ms + c.paused_ms < :before_ms"
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS count, MIN(e.due_at_ms + c.paused_ms) AS first,"
        " MAX(e.due_at_ms + c.paused_ms) AS last FROM drip_chains c JOIN drip_enrollments e"
        " ON e.project_id = c.project_id AND e.drip_id = c.drip_id"
        f" WHERE c.status = 'active' AND e.due_at_ms IS NOT NULL{before}",
        {} if before_ms is None else {"before_ms": before_ms},
    )
    return Waiting(PLANNED, *row) if row is not None and row["count"] else None


async def advance(tx: Tx, moves: Sequence[Move], now_ms: int) -> set[str]:
    """Applies those of the moves whose enrollment is unchanged, in a campaign that is still active; returns
    their ids. Pausing the campaign waits until the transaction ends.

    Their subscribers are locked already. On PostgreSQL locked rows are skipped and left for the next poll.
    """
    going_on = await _lock_drips(tx, moves) if moves else {}
    moves = [move for move in moves if going_on.get(_drip_of(move)) == move.due.paused_ms]
    if moves and tx.dialect == "postgresql":
        moves = await _unlocked(tx, moves)
    if not moves:
        return set()
    columns = (
        *("project", "enrollment", "was_step", "was_due"),
        *("new_status", "new_step", "new_due", "message", "why", "finished"),
    )
    rows = await tx.fetch_all(
        "UPDATE drip_enrollments AS e SET status = keys.new_status,"
        " next_step = CAST(keys.new_step AS integer), due_at_ms = CAST(keys.new_due AS bigint),"
        " last_message_id = COALESCE(keys.message, e.last_message_id),"
        " reason = keys.why, finished_at_ms = CAST(keys.finished AS bigint)"
        f" FROM {key_table(columns, tx.dialect)}"
        " WHERE e.project_id = keys.project AND e.enrollment_id = keys.enrollment"
        " AND e.next_step = CAST(keys.was_step AS integer)"
        " AND e.due_at_ms = CAST(keys.was_due AS bigint) RETURNING enrollment_id",
        key_params([_values(move, now_ms) for move in moves], tx.dialect),
    )
    return {row["enrollment_id"] for row in rows}


async def _lock_drips(tx: Tx, moves: Sequence[Move]) -> dict[tuple[str, str], int]:
    """Their chains that go on, with their pauses until now; they stay so until the transaction ends."""
    rows = await tx.fetch_all(
        "SELECT c.project_id, c.drip_id, c.paused_ms"
        f" FROM {key_table(('project', 'drip'), tx.dialect)} CROSS JOIN drip_chains c"
        " WHERE c.project_id = keys.project AND c.drip_id = keys.drip AND c.status = 'active'"
        " ORDER BY c.project_id, c.drip_id"
        + (" FOR SHARE OF c" if tx.dialect == "postgresql" else ""),
        key_params(sorted({_drip_of(move) for move in moves}), tx.dialect),
    )
    return {(row["project_id"], row["drip_id"]): row["paused_ms"] for row in rows}


async def _unlocked(tx: Tx, moves: Sequence[Move]) -> Sequence[Move]:
    """Takes those rows that nobody else has."""
    rows = await tx.fetch_all(
        f"SELECT e.enrollment_id FROM {key_table(('project', 'enrollment'), tx.dialect)}"
        " CROSS JOIN drip_enrollments e WHERE e.project_id = keys.project"
        " AND e.enrollment_id = keys.enrollment FOR UPDATE OF e SKIP LOCKED",
        key_params([(move.row.project_id, move.row.enrollment_id) for move in moves], tx.dialect),
    )
    free = {row["enrollment_id"] for row in rows}
    return [move for move in moves if move.row.enrollment_id in free]


def _drip_of(move: Move) -> tuple[str, str]:
    return move.row.project_id, move.row.drip_id


def _values(move: Move, now_ms: int) -> tuple[str | None, ...]:
    row, paused_ms = move.row, move.due.paused_ms
    assert row.due_at_ms is not None, "it was found by that"
    values: tuple[Any, ...] = (
        row.project_id,
        row.enrollment_id,
        row.next_step,
        row.due_at_ms - paused_ms,
        move.status,
        move.next_step,
        None if move.due_at_ms is None else move.due_at_ms - paused_ms,
        move.message_id,
        move.reason,
        None if move.status in {"active", "paused"} else now_ms,
    )
    return tuple(None if value is None else str(value) for value in values)
