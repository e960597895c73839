"""Which bulk actions on tickets are taken at all."""

import pytest
from pydantic import ValidationError

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.bulk_actions.actions import TicketBulkActions
from msgsvc_helpdesk.bulk_actions.models import StartTicketBulkActionBody


async def test_a_member_who_is_not_there_is_refused_before_a_job(core: MemoryCore, tx: Tx) -> None:
    body = StartTicketBulkActionBody(action="assign", value="mem_nobody", all=True)
    with pytest.raises(NotFound):
        await core.get(TicketBulkActions).start(tx, PROJECT, body)

    assert await core.pending_jobs(tx) == []


def test_a_tag_has_the_shape_of_tags() -> None:
    with pytest.raises(ValidationError):
        StartTicketBulkActionBody(action="add_tag", value=" vip", all=True)
