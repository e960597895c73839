"""Routes: the hours of a step, and whom its steps reach."""

from datetime import UTC, datetime
from typing import Any

import pytest

from msgsvc_core.channels import Capabilities
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import SubscriberNotFound, ValidationFailed
from msgsvc_core.routing import RouteHours, RouteStep
from msgsvc_core.routing.hours import is_within, next_opening_ms
from msgsvc_core.routing.models import Choice, CreateRouteBody, read_steps, steps_to_column
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core

NOON_MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z
STEPS = (RouteStep(channel="messenger_a", within_seconds=60), RouteStep(channel="messenger_b"))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def hours(begins: str, ends: str, timezone: str = "Europe/Berlin") -> RouteHours:
    return RouteHours.model_validate({"from": begins, "to": ends, "timezone": timezone})


@pytest.mark.parametrize(
    ("begins", "ends", "moment", "within"),
    [
        ("08:00", "22:00", "2026-01-05T07:00", True),
        ("08:00", "22:00", "2026-01-05T06:59", False),
        ("08:00", "22:00", "2026-01-05T20:59", True),
        ("08:00", "22:00", "2026-01-05T21:00", False),
        # Summer: the same local hours an hour earlier.
        ("08:00", "22:00", "2026-07-05T06:00", True),
        ("08:00", "22:00", "2026-07-05T05:59", False),
        ("22:00", "06:00", "2026-01-05T21:00", True),
        ("22:00", "06:00", "2026-01-05T04:59", True),
        ("22:00", "06:00", "2026-01-05T05:00", False),
        ("18:00", "24:00", "2026-01-05T22:59", True),
        ("18:00", "24:00", "2026-01-05T23:00", False),
    ],
)
def test_hours_are_local_and_may_go_past_midnight(
    begins: str, ends: str, moment: str, within: bool
) -> None:
    assert is_within(hours(begins, ends), at(moment)) is within


@pytest.mark.parametrize(
    ("begins", "ends", "moment", "opens"),
    [
        ("08:00", "22:00", "2026-01-05T12:00", "2026-01-05T12:00"),
        ("08:00", "22:00", "2026-01-05T05:00", "2026-01-05T07:00"),
        ("08:00", "22:00", "2026-01-05T22:00", "2026-01-06T07:00"),
        # Clocks go forward in the night: at 08:00 of summer time.
        ("08:00", "22:00", "2026-03-28T22:00", "2026-03-29T06:00"),
        # And back: at 08:00 of winter time.
        ("08:00", "22:00", "2026-10-24T21:00", "2026-10-25T07:00"),
        # 02:30 does not exist on that day: from the next minute that does.
        ("02:30", "04:00", "2026-03-29T00:00", "2026-03-29T01:00"),
        # Nor do any of these hours: on the next day.
        ("02:15", "02:45", "2026-03-29T00:00", "2026-03-30T00:15"),
        # It comes twice on that day.
        ("02:30", "02:45", "2026-10-25T00:50", "2026-10-25T01:30"),
    ],
)
def test_the_next_opening_is_right_when_clocks_change(
    begins: str, ends: str, moment: str, opens: str
) -> None:
    assert next_opening_ms(hours(begins, ends), at(moment)) == at(opens)


def test_steps_are_stored_without_loss() -> None:
    night = hours("22:00", "06:00", "UTC")
    steps = (*STEPS, RouteStep(channel="sms", hours=night, on_unknown="continue"))

    assert read_steps(steps_to_column(steps)) == steps


async def choose(
    core: MemoryCore, tx: Tx, steps: tuple[RouteStep, ...] = STEPS, **options: Any
) -> Choice:
    """The steps for the person `ann`, unless another is named."""
    person = {} if "subscriber_id" in options else {"external_id": "ann"}
    options = {"now_ms": NOON_MS, "tx": tx, **person, **options}
    return await core.routes.chooser.choose(PROJECT, steps, **options)


async def person(
    core: MemoryCore, tx: Tx, subscriber_id: str, channel: str, status: str = "active"
) -> None:
    await core.person(tx, subscriber_id, channel=channel, external_id="ann", status=status)


async def test_steps_that_reach_the_person_are_candidates_in_their_order(
    core: MemoryCore, tx: Tx
) -> None:
    await person(core, tx, "sub_2", "messenger_b")
    await person(core, tx, "sub_1", "messenger_a")

    choice = await choose(core, tx)

    found = [(each.step, each.recipient.subscriber_id) for each in choice.candidates]
    assert found == [(0, "sub_1"), (1, "sub_2")]
    assert [each.channel.key for each in choice.candidates] == ["messenger_a", "messenger_b"]
    assert choice.skipped == ()


async def test_each_step_that_is_passed_over_says_why(core: MemoryCore, tx: Tx) -> None:
    await person(core, tx, "sub_1", "messenger_a", "blocked")

    blocked = await choose(core, tx)
    # Not a consent.
    await core.subscribers.unblock(tx, "messenger_a", "1")
    await person(core, tx, "sub_2", "messenger_b")
    stopped_bot = core.channels["messenger_b"]
    await core.service.get(ChannelStates).stop(tx, stopped_bot, "bot_banned", "Unauthorized")
    stopped = await choose(core, tx)

    assert [each.reason for each in blocked.skipped] == ["blocked", "no_subscriber"]
    assert [each.reason for each in stopped.skipped] == ["unsubscribed", "channel_stopped"]
    assert stopped.candidates == ()


async def test_a_step_outside_its_hours_says_when_they_begin(core: MemoryCore, tx: Tx) -> None:
    await person(core, tx, "sub_1", "messenger_a")
    steps = (RouteStep(channel="messenger_a", hours=hours("18:00", "20:00", "UTC")),)

    choice = await choose(core, tx, steps)

    assert [each.reason for each in choice.skipped] == ["outside_hours"]
    assert choice.opens_at_ms == at("2026-03-01T18:00")


async def test_a_code_reaches_an_unsubscribed_person_by_their_address(
    core: MemoryCore, tx: Tx
) -> None:
    core.recording().capabilities = Capabilities(addresses=True)
    await person(core, tx, "sub_1", "messenger_a", "unsubscribed")
    await person(core, tx, "sub_2", "messenger_b", "unsubscribed")

    choice = await choose(core, tx, for_code=True)

    assert [each.step for each in choice.candidates] == [0]
    assert [each.reason for each in choice.skipped] == ["unsubscribed"]


async def test_all_subscribers_of_a_person_are_found_by_one_of_them(
    core: MemoryCore, tx: Tx
) -> None:
    await person(core, tx, "sub_1", "messenger_a")
    await person(core, tx, "sub_2", "messenger_b")
    await core.person(tx, "sub_3")

    both = await choose(core, tx, subscriber_id="sub_2")
    alone = await choose(core, tx, subscriber_id="sub_3")

    assert [each.recipient.subscriber_id for each in both.candidates] == ["sub_1", "sub_2"]
    assert [each.recipient.subscriber_id for each in alone.candidates] == ["sub_3"]
    with pytest.raises(SubscriberNotFound):
        await choose(core, tx, external_id="nobody")


async def test_steps_before_the_first_are_left_out(core: MemoryCore, tx: Tx) -> None:
    await person(core, tx, "sub_1", "messenger_a")
    await person(core, tx, "sub_2", "messenger_b")

    choice = await choose(core, tx, first=1)

    assert [each.step for each in choice.candidates] == [1]


@pytest.mark.parametrize("most", [1, 2])
async def test_a_route_has_as_many_steps_as_the_settings_allow(most: int) -> None:
    limits = {"route_steps": most, "route_wait_s": 59}
    async with memory_core(limits=limits) as core, core.db.transaction() as tx:
        with pytest.raises(ValidationFailed) as refused:
            await core.routes.create(tx, PROJECT, CreateRouteBody(name="Urgent", steps=[*STEPS]))

    assert str(refused.value).startswith("steps: " if most == 1 else "steps[0].within_seconds: ")
