"""Presence in tickets, built from fakes."""

from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT, FakeDatabase
from msgsvc_helpdesk.assignment import Assignment
from msgsvc_helpdesk.dashboard.presence import Presence
from msgsvc_helpdesk.viewers import TicketViewers

from .desk_of_fakes import hire, new_core, tx_of
from .test_inbox import open_page


async def test_an_open_page_is_recorded_for_its_viewer_without_an_audit_entry() -> None:
    core = new_core()
    db = FakeDatabase(replies={"INTO helpdesk_views": 1})
    presence = Presence(db=db, viewers=TicketViewers(clock=core.clock))
    page = await open_page(core, tx_of())
    await presence.mark_seen(page, "tkt_1", typing=True)

    [(_, params)] = db.statements
    assert (params["project_id"], params["ticket_id"]) == (PROJECT, "tkt_1")
    assert params["typed_ms"] == params["now_ms"] == core.clock.now_ms()


async def test_nobody_is_assigned_where_that_is_done_by_hand() -> None:
    core: FakeContext = new_core()
    hire(core)
    by_hand = Assignment(members=core.members, default="manual")
    by_turn = Assignment(members=core.members, default="round_robin")

    assert await by_hand.next_agent(tx_of(), PROJECT) is None
    assert await by_turn.next_agent(tx_of(), PROJECT) == "mem_mia"
