"""Which bulk actions on tickets are taken at all."""

import pytest
from pydantic import ValidationError

from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT
from msgsvc_helpdesk.bulk import TicketBulkActions
from msgsvc_helpdesk.bulk_models import TicketBulkActionBody

from .desk_of_fakes import new_core
from .desk_of_fakes import tickets as new_tickets


def _bulk_actions(core: FakeContext) -> TicketBulkActions:
    return TicketBulkActions(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        members=core.members,
        subscribers=core.subscribers,
        tickets=new_tickets(core),
        most=10,
    )


async def test_a_member_who_is_not_there_is_refused_before_a_job() -> None:
    core = new_core()
    body = TicketBulkActionBody(action="assign", value="mem_nobody", all=True)
    async with core.db.transaction() as tx:
        with pytest.raises(NotFound):
            await _bulk_actions(core).start(tx, PROJECT, body)

    assert not core.jobs.enqueued


def test_a_tag_has_the_shape_of_tags() -> None:
    with pytest.raises(ValidationError):
        TicketBulkActionBody(action="add_tag", value=" vip", all=True)
