"""Settings of a desk, built from fakes."""

import json

import pytest

from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.kernel.time_zones import zone
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT
from msgsvc_helpdesk.hours import DeskHours
from msgsvc_helpdesk.hours_models import HoursBody, Opening
from msgsvc_helpdesk.models import API
from msgsvc_helpdesk.sla_models import SlaBody, Targets
from msgsvc_helpdesk.sla_settings import REFRESH_JOB, SlaSettings

from .desk_of_fakes import TICKET, new_core, tickets, tx_of, written

MONDAY = Opening(day="monday", opens="09:00", closes="18:00")
SUNDAY = Opening(day="sunday", opens="20:00", closes="24:00")


@pytest.fixture
def core() -> FakeContext:
    return new_core()


def desk_hours(core: FakeContext) -> DeskHours:
    return DeskHours(sla=SlaSettings(jobs=core.jobs))


async def test_hours_are_kept_in_the_order_of_the_week(core: FakeContext) -> None:
    tx = tx_of(others={"INTO helpdesk_desks": 1})
    await desk_hours(core).change(tx, PROJECT, HoursBody(openings=[SUNDAY, MONDAY]))

    [kept] = tx.params_of("INTO helpdesk_desks")
    assert [one["day"] for one in json.loads(kept["hours"])["openings"]] == ["monday", "sunday"]


async def test_hours_of_a_newer_version_are_read_without_what_is_not_known(
    core: FakeContext,
) -> None:
    column = json.dumps({"timezone": "Asia/Tokyo", "openings": [], "from_the_future": 1})
    tx = tx_of(others={"SELECT hours": [{"hours": column}]})

    assert (await desk_hours(core).of(tx, PROJECT)).zone == zone("Asia/Tokyo")


async def test_tickets_follow_changed_hours_where_there_are_targets(core: FakeContext) -> None:
    with_targets = {"SELECT sla, hours": [{"sla": "{}", "hours": None}], "INTO helpdesk_desks": 1}
    await desk_hours(core).change(tx_of(others=with_targets), PROJECT, HoursBody())
    await desk_hours(core).change(tx_of(others={"INTO helpdesk_desks": 1}), PROJECT, HoursBody())

    assert [job.name for job in core.jobs.enqueued] == [REFRESH_JOB]


async def test_an_urgent_ticket_is_due_by_its_targets(core: FakeContext) -> None:
    settings = SlaBody(urgent=Targets(first_reply_minutes=15, counted_in="calendar"))
    sla = {"SELECT sla, hours": [{"sla": settings.model_dump_json(), "hours": None}]}
    tx = tx_of(TICKET, others=sla)
    ticket = await tickets(core).set_priority(tx, PROJECT, "tkt_1", "urgent", API)

    assert ticket.due_at_ms == written(tx)["due_at_ms"] == core.clock.now_ms() + 15 * MINUTE_MS
    [clock] = tx.params_of("INTO helpdesk_sla_clocks")
    assert (clock["target"], clock["state"]) == ("first_reply", "running")
