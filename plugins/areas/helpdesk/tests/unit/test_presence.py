"""Presence in tickets."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.dashboard.presence import Presence
from msgsvc_helpdesk.team.assignment import Assignment
from msgsvc_helpdesk.team.models import Viewer
from msgsvc_helpdesk.team.viewers import TicketViewers

from .desk import add_ticket, hire
from .pages import open_page


async def test_an_open_page_is_recorded_for_its_viewer_without_an_audit_entry(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        ticket, mia = await add_ticket(core, tx), await hire(core, tx)
        page = await open_page(core, tx, member=mia)
    # The transaction of the page, which the audit log would be written in, is over.
    await core.get(Presence).mark_seen(page, ticket.ticket_id, typing=True)

    async with core.db.read() as tx:
        present = await core.get(TicketViewers).present(tx, PROJECT)
    assert present == [Viewer(ticket.ticket_id, mia.member_id, core.clock.now_ms(), True)]
    with pytest.raises(NotFound):
        await core.get(Presence).mark_seen(page, "tkt_9", typing=False)


async def test_nobody_is_assigned_where_that_is_done_by_hand(core: MemoryCore, tx: Tx) -> None:
    await hire(core, tx)
    by_hand = Assignment(members=core.members, default="manual")
    by_turn = Assignment(members=core.members, default="round_robin")

    assert await by_hand.next_agent(tx, PROJECT) is None
    assert await by_turn.next_agent(tx, PROJECT) == "mem_mia"
