"""Steps at a time of day: in the chain's time zone, over both changes of the clocks."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from msgsvc_devkit import FakeClock
from msgsvc_drip.definition import DripDefinition
from msgsvc_drip.schedule import due_after, is_time

from .conftest import DAY, HOUR, MINUTE, Shop


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def iso(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M")


def course(at: str, zone: str, **delay: int) -> DripDefinition:
    """A chain of one step."""
    step: dict[str, Any] = {"delay": delay, "message": {"text": "x"}, "at_local_time": at}
    return DripDefinition.model_validate({"steps": [step], "timezone": zone})


BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


@pytest.mark.parametrize(
    ("now", "zone", "delay", "at", "due"),
    [
        # Days are those of the calendar: the evening before counts as a day before.
        ("2026-01-15T12:00+00:00", BERLIN, {"days": 1}, "10:00", "2026-01-16T09:00"),
        ("2026-01-15T22:30+00:00", BERLIN, {"days": 1}, "10:00", "2026-01-16T09:00"),
        ("2026-01-15T23:30+00:00", BERLIN, {"days": 1}, "10:00", "2026-01-17T09:00"),
        ("2026-01-15T08:59+00:00", BERLIN, {"days": 0}, "10:00", "2026-01-15T09:00"),
        ("2026-01-15T09:01+00:00", BERLIN, {"days": 0}, "10:00", "2026-01-16T09:00"),
        # Hours and minutes pass first.
        ("2026-01-15T08:30+00:00", BERLIN, {"minutes": 30}, "10:00", "2026-01-15T09:00"),
        ("2026-01-15T08:30+00:00", BERLIN, {"minutes": 31}, "10:00", "2026-01-16T09:00"),
        ("2026-01-15T12:00+00:00", BERLIN, {"hours": 24}, "10:00", "2026-01-17T09:00"),
        # The hour changes, the time of day does not.
        ("2026-03-28T12:00+00:00", BERLIN, {"days": 1}, "10:00", "2026-03-29T08:00"),
        ("2026-10-24T12:00+00:00", BERLIN, {"days": 1}, "10:00", "2026-10-25T09:00"),
        ("2026-03-07T18:00+00:00", NEW_YORK, {"days": 1}, "10:00", "2026-03-08T14:00"),
        ("2026-10-31T18:00+00:00", NEW_YORK, {"days": 1}, "10:00", "2026-11-01T15:00"),
        # 02:30 is left out: 03:00 is the next minute that there is.
        ("2026-03-28T12:00+00:00", BERLIN, {"days": 1}, "02:30", "2026-03-29T01:00"),
        ("2026-03-07T18:00+00:00", NEW_YORK, {"days": 1}, "02:30", "2026-03-08T07:00"),
        # 02:30 comes twice, 01:30 in New York: the first one it is.
        ("2026-10-24T12:00+00:00", BERLIN, {"days": 1}, "02:30", "2026-10-25T00:30"),
        ("2026-10-31T18:00+00:00", NEW_YORK, {"days": 1}, "01:30", "2026-11-01T05:30"),
        # Between the two, the first is over; the second is none.
        ("2026-10-25T00:45+00:00", BERLIN, {"hours": 0}, "02:30", "2026-10-26T01:30"),
        # At midnight, where midnight is left out.
        ("2026-09-05T12:00+00:00", "America/Santiago", {"days": 1}, "00:00", "2026-09-06T04:00"),
        ("2026-01-15T12:00+00:00", "Asia/Kathmandu", {"days": 1}, "10:00", "2026-01-16T04:15"),
    ],
)
def test_step_is_due_at_its_time_of_day(
    now: str, zone: str, delay: dict[str, int], at: str, due: str
) -> None:
    chain = course(at, zone, **delay)

    assert iso(due_after(chain, chain.steps[0], ms(now))) == due


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK])
@pytest.mark.parametrize("at", ["02:30", "01:30", "10:00"])
def test_a_year_of_daily_steps_has_each_day_once(zone: str, at: str) -> None:
    chain = course(at, zone, days=1)
    moment, days = ms("2026-01-01T18:00+00:00"), set()
    for _ in range(365):
        moment = due_after(chain, chain.steps[0], moment)
        days.add(datetime.fromtimestamp(moment / 1000, ZoneInfo(zone)).date())

    assert len(days) == 365


@pytest.mark.parametrize(
    ("now", "later"),
    [
        ("2026-01-15T09:00+00:00", None),
        ("2026-01-15T10:00+00:00", None),
        ("2026-01-15T10:01+00:00", "2026-01-16T09:00"),
        ("2026-01-15T23:30+00:00", "2026-01-16T09:00"),
    ],
)
def test_step_that_missed_its_time_by_an_hour_waits_for_the_next(now: str, later: str) -> None:
    chain = course("10:00", BERLIN, days=1)
    found = is_time(chain, chain.steps[0], ms(now), late_minutes=60)

    assert (found if found is None else iso(found)) == later


@pytest.mark.both_databases
async def test_chain_keeps_its_time_of_day_over_a_change_of_the_clocks(
    shop: Shop, clock: FakeClock
) -> None:
    clock.set_by((ms("2026-03-27T08:30+00:00") - clock.now_ms()) / 1000)
    steps = [
        {"delay": {"days": days}, "message": {"text": text}, "at_local_time": "10:00"}
        for text, days in (("Friday", 0), ("Saturday", 1), ("Sunday", 1), ("Tuesday", 2))
    ]
    drip_id = await shop.chain(steps=steps, timezone=BERLIN)
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(30 * MINUTE - 1) == []
    assert await shop.after(1) == ["Friday"]
    assert await shop.after(DAY - 1) == ["Friday"]
    assert await shop.after(1) == ["Friday", "Saturday"]
    # The night is an hour shorter.
    assert await shop.after(DAY - HOUR - 1) == ["Friday", "Saturday"]
    assert await shop.after(1) == ["Friday", "Saturday", "Sunday"]
    assert await shop.after(2 * DAY) == ["Friday", "Saturday", "Sunday", "Tuesday"]


async def test_pause_that_ends_at_night_leaves_the_time_of_day(shop: Shop) -> None:
    step = {"delay": {"days": 1}, "message": {"text": "Good day"}, "at_local_time": "10:00"}
    drip_id = await shop.chain(steps=[step])
    await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)
    await shop.call(f"/drips/{drip_id}/pause")
    await shop.after(14 * HOUR)
    await shop.call(f"/drips/{drip_id}/resume")

    # It is 03:00; 21 hours were left, so midnight is what the shift comes to.
    assert await shop.after(21 * HOUR) == []
    assert await shop.after(10 * HOUR - 1) == []
    assert await shop.after(1) == ["Good day"]
