"""Automatic assignment: who gets a ticket that nobody has."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import to_json
from msgsvc_core.members.service import Members
from msgsvc_helpdesk import store
from msgsvc_helpdesk.team import store as desk_store
from msgsvc_helpdesk.team.models import (
    AgentSettings,
    DeskSettings,
    Method,
    UpdateDeskSettingsBody,
    UpdateTicketAgentBody,
)


@dataclass(frozen=True, slots=True)
class Agent:
    """A member who answers customers, what they have chosen, and their open tickets."""

    member_id: str
    name: str
    settings: AgentSettings
    open_tickets: int

    @property
    def takes_more(self) -> bool:
        limit = self.settings.max_open_tickets
        return self.settings.available and (limit is None or self.open_tickets < limit)


class Assignment:
    """The settings of desks and of their agents, and the next agent."""

    def __init__(self, *, members: Members, default: Method) -> None:
        self._members = members
        #: The method of projects that have not chosen one.
        self.default = default

    async def settings(self, tx: Tx, project_id: str) -> DeskSettings:
        """The project's own; defaults while it has none."""
        return read_settings(await desk_store.find_settings(tx, project_id))

    async def change_settings(
        self, tx: Tx, project_id: str, body: UpdateDeskSettingsBody
    ) -> DeskSettings:
        """The project's settings after the change."""
        await tx.lock(f"helpdesk settings of {project_id}")
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        changed = (await self.settings(tx, project_id)).model_copy(update=changes)
        await desk_store.write_settings(tx, project_id, changed.model_dump_json())
        return changed

    async def agents(self, tx: Tx, project_id: str) -> list[Agent]:
        """Those who answer customers, oldest first."""
        members = await self._members.list_agents(tx, project_id)
        chosen = await desk_store.list_agents(tx, project_id)
        ids = [member.member_id for member in members]
        opened = await desk_store.count_open(tx, project_id, ids) if ids else {}
        return [
            Agent(
                member.member_id,
                member.name,
                chosen.get(member.member_id, AgentSettings(member.member_id)),
                opened.get(member.member_id, 0),
            )
            for member in members
        ]

    async def agent(self, tx: Tx, project_id: str, member_id: str) -> Agent:
        """Raises `NotFound`, and `ValidationFailed` for a member who does not answer customers."""
        member = await self._members.get(tx, project_id, member_id)
        if not member.is_agent:
            raise ValidationFailed("{member_id} does not answer customers", member_id=member_id)
        agents = await self.agents(tx, project_id)
        return next(agent for agent in agents if agent.member_id == member_id)

    async def chosen(self, tx: Tx, project_id: str, member_id: str) -> AgentSettings:
        """What a member has chosen, whether they answer customers or not."""
        chosen = await desk_store.list_agents(tx, project_id)
        return chosen.get(member_id, AgentSettings(member_id))

    async def change_agent(
        self, tx: Tx, project_id: str, member_id: str, body: UpdateTicketAgentBody
    ) -> Agent:
        """The agent after the change. Raises as `agent`."""
        await tx.lock(f"agent {member_id} of {project_id}")
        agent = await self.agent(tx, project_id, member_id)
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        after = replace(agent.settings, **changes)
        await desk_store.write_agent(tx, project_id, after)
        return replace(agent, settings=after)

    async def lock(self, tx: Tx, project_id: str) -> None:
        """Nobody else assigns tickets of the project automatically until the transaction ends."""
        await desk_store.lock(tx, project_id)

    async def next_agent(self, tx: Tx, project_id: str) -> str | None:
        """Who gets the next ticket; None if that is decided by hand, or nobody takes more.

        Locks the desk, so that concurrent callers see each other's tickets and turns.
        """
        method = (await self.settings(tx, project_id)).assignment or self.default
        if method == "manual":
            return None
        await self.lock(tx, project_id)
        able = [agent for agent in await self.agents(tx, project_id) if agent.takes_more]
        if not able:
            return None
        turns = rotated(able, await store.last_assignee(tx, project_id) or "")
        chosen = turns[0]
        if method == "least_busy":
            chosen = min(turns, key=lambda agent: agent.open_tickets)
        await store.record_turn(tx, project_id, chosen.member_id)
        return chosen.member_id


def rotated(agents: Sequence[Agent], last: str) -> list[Agent]:
    """The agents in the order of their ids, from the one after `last`."""
    ordered = sorted(agents, key=lambda agent: agent.member_id)
    return [one for one in ordered if one.member_id > last] + [
        one for one in ordered if one.member_id <= last
    ]


def read_settings(column: str | None) -> DeskSettings:
    """The settings of a row, without those that only a newer version knows."""
    if column is None:
        return DeskSettings()
    known = {
        name: value
        for name, value in json.loads(column).items()
        if name in DeskSettings.model_fields
    }
    return DeskSettings.model_validate_json(to_json(known))
