"""The SQL of business hours and service levels: settings of desks, and the clocks of tickets."""

from collections.abc import Sequence
from typing import Any, get_args

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of
from msgsvc_helpdesk.service_levels.rules import TARGETS, RunEnd, SlaClock, Target

_COLUMNS = (
    "target",
    "status",
    "used_ms",
    "since_ms",
    "due_at_ms",
    "next_at_ms",
    "notice",
    "outcome",
)
#: Columns and values that have another name in the database.
_STORED_COLUMNS = {"status": "state"}
_STORED = {
    "target": {"first_response": "first_reply", "next_response": "next_reply"},
    "status": {"completed": "over"},
    "outcome": {"met": "kept"},
}
_SHOWN = {
    column: {stored: value for value, stored in values.items()}
    for column, values in _STORED.items()
}
_SELECTED = ", ".join(
    f"{_STORED_COLUMNS[name]} AS {name}" if name in _STORED_COLUMNS else name for name in _COLUMNS
)
_THIS = "project_id = :project_id AND ticket_id = :ticket_id"


#: The ends of runs that are counted.
ENDS: tuple[RunEnd, ...] = get_args(RunEnd)


async def find_settings(tx: Tx, project_id: str) -> tuple[str | None, str | None]:
    """The project's service levels and business hours as JSON; None for those that it has not."""
    row = await tx.fetch_one(
        "SELECT sla, hours FROM helpdesk_desks WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return (None, None) if row is None else (row["sla"], row["hours"])


async def write_settings(tx: Tx, project_id: str, sla: str) -> None:
    await tx.execute(
        "INSERT INTO helpdesk_desks (project_id, last_number, sla) VALUES (:project_id, 0, :sla)"
        " ON CONFLICT (project_id) DO UPDATE SET sla = :sla",
        {"project_id": project_id, "sla": sla},
    )


async def find_hours(tx: Tx, project_id: str) -> str | None:
    """The project's business hours as JSON; None while it has none."""
    found: str | None = await tx.fetch_val(
        "SELECT hours FROM helpdesk_desks WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def write_hours(tx: Tx, project_id: str, hours: str) -> None:
    await tx.execute(
        "INSERT INTO helpdesk_desks (project_id, last_number, hours)"
        " VALUES (:project_id, 0, :hours)"
        " ON CONFLICT (project_id) DO UPDATE SET hours = :hours",
        {"project_id": project_id, "hours": hours},
    )


async def list_clocks(tx: Tx, project_id: str, ticket_id: str) -> dict[Target, SlaClock]:
    """The clocks of a ticket, by target."""
    rows = await tx.fetch_all(
        f"SELECT {_SELECTED} FROM helpdesk_sla_clocks WHERE {_THIS}",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    return {clock.target: clock for clock in map(_clock, rows)}


async def list_clocks_of_each(
    tx: Tx, project_id: str, ticket_ids: Sequence[str]
) -> dict[str, dict[Target, SlaClock]]:
    """The clocks of tickets, by ticket and target."""
    if not ticket_ids:
        return {}
    these, params = any_of("ticket_id", "tickets", ticket_ids, tx.dialect)
    rows = await tx.fetch_all(
        f"SELECT ticket_id, {_SELECTED} FROM helpdesk_sla_clocks"
        f" WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, **params},
    )
    found: dict[str, dict[Target, SlaClock]] = {}
    for row in rows:
        clock = _clock(row)
        found.setdefault(row["ticket_id"], {})[clock.target] = clock
    return found


async def write_clock(tx: Tx, project_id: str, ticket_id: str, clock: SlaClock) -> None:
    """Puts a clock in place of that of its target; the ticket is locked."""
    values = {
        _STORED_COLUMNS.get(name, name): _STORED.get(name, {}).get(value, value)
        for name in _COLUMNS
        for value in [getattr(clock, name)]
    }
    names = ("project_id", "ticket_id", *values)
    changes = ", ".join(f"{name} = :{name}" for name in values if name != "target")
    await tx.execute(
        f"INSERT INTO helpdesk_sla_clocks ({', '.join(names)})"
        f" VALUES ({', '.join(f':{name}' for name in names)})"
        f" ON CONFLICT (project_id, ticket_id, target) DO UPDATE SET {changes}",
        {"project_id": project_id, "ticket_id": ticket_id, **values},
    )


async def count_ends(
    tx: Tx, project_id: str, day: int, ended: Sequence[tuple[Target, RunEnd]]
) -> None:
    """Adds ends of runs to those of the day; the row is locked until the transaction ends."""
    columns = [_day_column(target, end) for target, end in ended]
    changes = ", ".join(f"{name} = helpdesk_sla_days.{name} + 1" for name in columns)
    await tx.execute(
        f"INSERT INTO helpdesk_sla_days (project_id, day, {', '.join(columns)})"
        f" VALUES (:project_id, :day, {', '.join('1' for _ in columns)})"
        f" ON CONFLICT (project_id, day) DO UPDATE SET {changes}",
        {"project_id": project_id, "day": day},
    )


async def ends_between(
    tx: Tx, project_id: str, first_day: int, last_day: int
) -> dict[Target, tuple[int, int]]:
    """How many runs of each target were met and missed on these days."""
    sums = ", ".join(
        f"COALESCE(SUM({_day_column(target, end)}), 0) AS {target}_{end}"
        for target in TARGETS
        for end in ENDS
    )
    row = await tx.fetch_one(
        f"SELECT {sums} FROM helpdesk_sla_days WHERE project_id = :project_id"
        " AND day >= :first_day AND day <= :last_day",
        {"project_id": project_id, "first_day": first_day, "last_day": last_day},
    )
    assert row is not None, "sums have a row"
    return {target: (int(row[f"{target}_met"]), int(row[f"{target}_missed"])) for target in TARGETS}


async def stop(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Ends what runs in tickets, without an outcome."""
    these, params = any_of("ticket_id", "tickets", ticket_ids, tx.dialect)
    await tx.execute(
        "UPDATE helpdesk_sla_clocks SET state = 'over', used_ms = 0, since_ms = NULL,"
        f" due_at_ms = NULL, next_at_ms = NULL WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, **params},
    )


def _clock(row: Row) -> SlaClock:
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    shown = {name: _SHOWN.get(name, {}).get(value, value) for name, value in values.items()}
    return SlaClock(**shown)


def _day_column(target: Target, end: RunEnd) -> str:
    return f"{_STORED['target'].get(target, target)}_{end}"


async def find_due(tx: Tx, now_ms: int, limit: int) -> list[tuple[str, str]]:
    """Tickets of any project with a clock that has to be looked at: (project_id, ticket_id)."""
    rows = await tx.fetch_all(
        "SELECT project_id, ticket_id FROM helpdesk_sla_clocks WHERE next_at_ms IS NOT NULL"
        " AND next_at_ms <= :now_ms ORDER BY next_at_ms, ticket_id LIMIT :most",
        {"now_ms": now_ms, "most": limit},
    )
    return list(dict.fromkeys((row["project_id"], row["ticket_id"]) for row in rows))
