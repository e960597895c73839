"""Who has a ticket open, who writes in it, and what each person has not seen yet."""

from collections.abc import Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.team import view_store
from msgsvc_helpdesk.team.models import Viewer

#: Seconds for which somebody counts as present after their page was heard of; it tells every 10 s.
PRESENT_S = 25

#: Seconds for which somebody counts as typing after a key.
TYPING_S = 6


class TicketViewers:
    """Presence in tickets. It expires by itself: nothing has to be taken back."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def mark_seen(
        self, tx: Tx, project_id: str, ticket_id: str, viewer_id: str, *, typing: bool
    ) -> None:
        """Somebody has the ticket open now, and has seen it. Raises `NotFound` for one that is not there."""
        now_ms = self._clock.now_ms()
        if not await view_store.mark_seen(tx, project_id, ticket_id, viewer_id, now_ms, typing):
            raise NotFound("there is no ticket {name!r}", name=ticket_id)

    async def forget(self, tx: Tx, project_id: str, viewer_id: str) -> None:
        """Deletes what somebody has seen."""
        await view_store.forget(tx, project_id, viewer_id)

    async def present(self, tx: Tx, project_id: str, but: str = "") -> list[Viewer]:
        """Who has tickets of the project open, without the viewer `but`; last seen first."""
        now_ms = self._clock.now_ms()
        found = await view_store.list_since(
            tx, project_id, now_ms - PRESENT_S * 1000, now_ms - TYPING_S * 1000
        )
        return [viewer for viewer in found if viewer.viewer_id != but]

    async def unread(
        self, tx: Tx, project_id: str, viewer_id: str, tickets: Sequence[Ticket]
    ) -> frozenset[str]:
        """Of these tickets, the ids of those whose customer waits with words that the viewer has not seen."""
        waiting = [one for one in tickets if one.waiting_since_ms is not None]
        if not viewer_id or not waiting:
            return frozenset()
        ids = [one.ticket_id for one in waiting]
        seen: Mapping[str, int] = await view_store.seen(tx, project_id, viewer_id, ids)
        return frozenset(
            one.ticket_id for one in waiting if seen.get(one.ticket_id, -1) < one.last_message_at_ms
        )
