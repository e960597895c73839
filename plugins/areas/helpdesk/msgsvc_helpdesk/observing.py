"""The half of the plugin's door that observes: what agents and customers are told of, and by what."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.files import StoredFile
from msgsvc_core.members import Member
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_helpdesk.agents.answering import Answering
from msgsvc_helpdesk.agents.desk import AgentDesk
from msgsvc_helpdesk.rating import Ratings


@hookimpl
async def on_events(service: Service, tx: Tx, events: Sequence[Event]) -> None:
    """Agents are told in their messengers, and customers asked how it went."""
    for event in events:
        await service.get(AgentDesk).on_event(tx, event)
        await service.get(Ratings).on_event(tx, event)


@hookimpl
async def on_file_fetched(service: Service, tx: Tx, file: StoredFile) -> None:
    """A customer's goes to the agent who has the ticket, an agent's to the customer."""
    await service.get(AgentDesk).on_file_fetched(tx, file)
    await service.get(Answering).on_file_fetched(tx, file)


@hookimpl
async def on_member_changed(service: Service, tx: Tx, before: Member, after: Member | None) -> None:
    """Tickets of who answers no customers any more go to the others."""
    await service.get(AgentDesk).on_member_changed(tx, before, after)
