"""The SQL of the settings of desks and agents."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of, for_update
from msgsvc_helpdesk.team.models import AgentSettings


async def find_settings(tx: Tx, project_id: str) -> str | None:
    """The project's settings as JSON; None while it has none."""
    found: str | None = await tx.fetch_val(
        "SELECT settings FROM helpdesk_desks WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def write_settings(tx: Tx, project_id: str, settings: str) -> None:
    await tx.execute(
        "INSERT INTO helpdesk_desks (project_id, last_number, settings)"
        " VALUES (:project_id, 0, :settings)"
        " ON CONFLICT (project_id) DO UPDATE SET settings = :settings",
        {"project_id": project_id, "settings": settings},
    )


async def lock(tx: Tx, project_id: str) -> None:
    """Nobody else assigns tickets of the project automatically until the transaction ends."""
    await tx.fetch_one(
        "SELECT 1 AS held FROM helpdesk_desks WHERE project_id = :project_id"
        f"{for_update(tx.dialect)}",
        {"project_id": project_id},
    )


async def list_agents(tx: Tx, project_id: str) -> dict[str, AgentSettings]:
    """What agents have chosen, by member; without those who have chosen nothing."""
    rows = await tx.fetch_all(
        "SELECT member_id, available, max_open_tickets, shortcuts FROM helpdesk_agents"
        " WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return {
        row["member_id"]: AgentSettings(
            row["member_id"],
            available=bool(row["available"]),
            max_open_tickets=row["max_open_tickets"],
            shortcuts=bool(row["shortcuts"]),
        )
        for row in rows
    }


async def write_agent(tx: Tx, project_id: str, agent: AgentSettings) -> None:
    await tx.execute(
        "INSERT INTO helpdesk_agents"
        " (project_id, member_id, available, max_open_tickets, shortcuts)"
        " VALUES (:project_id, :member_id, :available, :max_open_tickets, :shortcuts)"
        " ON CONFLICT (project_id, member_id) DO UPDATE SET available = :available,"
        " max_open_tickets = :max_open_tickets, shortcuts = :shortcuts",
        {
            "project_id": project_id,
            "member_id": agent.member_id,
            "available": agent.available,
            "max_open_tickets": agent.max_open_tickets,
            "shortcuts": agent.shortcuts,
        },
    )


async def count_open(tx: Tx, project_id: str, member_ids: Sequence[str]) -> dict[str, int]:
    """How many open tickets each of these members has; without those who have none."""
    these, params = any_of("assignee_id", "members", member_ids, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT assignee_id, COUNT(*) AS many FROM helpdesk_tickets"
        f" WHERE project_id = :project_id AND {these} AND status = 'open' GROUP BY assignee_id",
        {"project_id": project_id, **params},
    )
    return {row["assignee_id"]: row["many"] for row in rows}
