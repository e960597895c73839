"""Settings of a desk."""

import json

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.kernel.time_zones import zone
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_helpdesk.models import API
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.service_levels import store
from msgsvc_helpdesk.service_levels.desk_hours import DeskHours
from msgsvc_helpdesk.service_levels.hours_models import Opening, UpdateHoursBody
from msgsvc_helpdesk.service_levels.models import Targets, UpdateSlaBody
from msgsvc_helpdesk.service_levels.settings import REFRESH_JOB, SlaSettings

from .desk import add_ticket, now

MONDAY = Opening(day="monday", opens="09:00", closes="18:00")
SUNDAY = Opening(day="sunday", opens="20:00", closes="24:00")


@pytest.fixture
def hours(core: MemoryCore) -> DeskHours:
    return core.get(DeskHours)


async def test_hours_are_kept_in_the_order_of_the_week(tx: Tx, hours: DeskHours) -> None:
    await hours.change(tx, PROJECT, UpdateHoursBody(openings=[SUNDAY, MONDAY]))

    assert (await hours.settings(tx, PROJECT)).openings == [MONDAY, SUNDAY]


async def test_hours_of_a_newer_version_are_read_without_what_is_not_known(
    tx: Tx, hours: DeskHours
) -> None:
    column = json.dumps({"timezone": "Asia/Tokyo", "openings": [], "from_the_future": 1})
    await store.write_hours(tx, PROJECT, column)

    assert (await hours.of(tx, PROJECT)).zone == zone("Asia/Tokyo")


async def test_tickets_follow_changed_hours_where_there_are_targets(
    core: MemoryCore, tx: Tx, hours: DeskHours
) -> None:
    await hours.change(tx, PROJECT, UpdateHoursBody())
    without_targets = await core.jobs_named(tx, REFRESH_JOB)
    # Which refreshes the tickets by itself.
    await core.get(SlaSettings).change(tx, PROJECT, UpdateSlaBody())
    before = await core.jobs_named(tx, REFRESH_JOB)
    await hours.change(tx, PROJECT, UpdateHoursBody())
    after = await core.jobs_named(tx, REFRESH_JOB)

    assert without_targets == []
    assert len(after) == len(before) + 1


async def test_an_urgent_ticket_is_due_by_its_targets(core: MemoryCore, tx: Tx) -> None:
    settings = UpdateSlaBody(urgent=Targets(first_response_seconds=900, counted_in="calendar"))
    await core.get(SlaSettings).change(tx, PROJECT, settings)
    ticket = await add_ticket(core, tx)
    urgent = await core.get(Tickets).set_priority(tx, PROJECT, ticket.ticket_id, "urgent", API)
    clocks = await core.get(Tickets).sla.of(tx, PROJECT, ticket.ticket_id)

    assert urgent == await now(core, tx, ticket)
    assert urgent.due_at_ms == core.clock.now_ms() + 15 * MINUTE_MS
    assert [(clock.target, clock.status) for clock in clocks] == [("first_response", "running")]
