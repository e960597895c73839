"""What follows on a step of a route, and why a step can't be used: without a database."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from msgsvc_core.kernel.values import value_object
from msgsvc_core.routing import RouteHours, RouteStep
from msgsvc_core.routing.models import SkippedReason, Until
from msgsvc_core.routing.progress import (
    BLOCKED,
    CHANNEL_REMOVED,
    CHANNEL_STOPPED,
    EXPIRED,
    LATE,
    NO_SUBSCRIBER,
    OTHER_BOT,
    OTHER_PERSON,
    OUTSIDE_HOURS,
    UNSUBSCRIBED,
    End,
    Obstacle,
    StepStatus,
    Try,
    Wait,
    deadline_ms,
    ending,
    find_obstacle,
    following,
    hours_obstacle,
    is_done,
)

CAREFUL = (
    RouteStep(channel="push", until="read", within_seconds=60),
    RouteStep(channel="email"),
    RouteStep(channel="sms"),
)
BOLD = tuple(step.model_copy(update={"on_unknown": "continue"}) for step in CAREFUL)
NOTHING = (None, None)


@pytest.mark.parametrize(
    ("steps", "at", "status", "follows"),
    [
        (CAREFUL, 0, "sent", Wait()),
        # Nothing more is waited for: it was sent, which is the aim, or there is no step after it.
        (CAREFUL, 1, "sent", End()),
        (CAREFUL[:1], 0, "sent", End()),
        (CAREFUL, 0, LATE, Try(0)),
        (CAREFUL, 0, "failed", Try(0)),
        (CAREFUL, 0, "skipped", Try(0)),
        (CAREFUL, 0, "unknown", End()),
        (BOLD, 0, "unknown", Try(0)),
    ],
)
def test_what_became_of_a_step_decides_what_follows(
    steps: Sequence[RouteStep], at: int, status: Any, follows: object
) -> None:
    assert following(steps, at, status, NOTHING) == follows


@pytest.mark.parametrize(
    ("obstacles", "follows"),
    [
        ((SkippedReason.BLOCKED, None), Try(1)),
        ((SkippedReason.BLOCKED, SkippedReason.OUTSIDE_HOURS), End()),
        ((), End()),
    ],
)
def test_a_step_that_cannot_be_used_is_passed_over(
    obstacles: Sequence[SkippedReason | None], follows: object
) -> None:
    assert following(CAREFUL, 0, "failed", obstacles) == follows


@pytest.mark.parametrize(
    ("until", "by"),
    [
        ("sent", {"sent"}),
        ("delivered", {"delivered", "read"}),
        ("read", {"read"}),
        ("answered", {"answered"}),
    ],
)
def test_a_step_is_done_by_what_it_waits_for(until: Until, by: set[Until]) -> None:
    step = RouteStep(channel="push", until=until)

    assert {each for each in get_args(Until) if is_done(step, each)} == by


@pytest.mark.parametrize(("at", "left_ms"), [(0, 61_000), (1, None)])
def test_a_step_is_left_after_its_time(at: int, left_ms: int | None) -> None:
    assert deadline_ms(CAREFUL, at, 1000) == left_ms


def test_the_last_step_is_never_left() -> None:
    assert deadline_ms(CAREFUL[:1], 0, 1000) is None


@value_object
class Copy:
    channel: str
    status: StepStatus
    reason: str | None = None
    error: str | None = None
    subscriber_id: str | None = "sub_1"


PASSED = Copy("push", "skipped", reason="no_subscriber", subscriber_id=None)
FAILED = Copy("email", "failed", reason="rejected", error="no such mailbox")
DOUBTED = Copy("max", "unknown", reason="unknown", error="it broke off")
SENT = Copy("telegram", "sent")
SKIPPED = Copy("sms", "skipped", reason="unsubscribed", error="not subscribed")


@pytest.mark.parametrize(
    ("copies", "as_which"),
    [
        ((SENT, DOUBTED, FAILED, SKIPPED), SENT),
        ((FAILED, DOUBTED, SKIPPED), DOUBTED),
        ((PASSED, FAILED, SKIPPED), FAILED),
        ((PASSED, SKIPPED), SKIPPED),
        ((SKIPPED, PASSED), SKIPPED),
    ],
)
def test_a_route_ends_as_the_step_that_came_nearest(copies: Sequence[Copy], as_which: Copy) -> None:
    assert ending(copies).copy == as_which


def test_an_ending_says_what_became_of_each_step() -> None:
    assert ending((PASSED, FAILED)).why == "push: no_subscriber; email: no such mailbox"


@pytest.mark.parametrize(
    ("facts", "obstacle"),
    [
        ({}, None),
        ({"status": None}, NO_SUBSCRIBER),
        ({"status": "blocked"}, BLOCKED),
        ({"status": "unsubscribed", "has_channel": False}, UNSUBSCRIBED),
        ({"is_same_person": False}, OTHER_PERSON),
        ({"is_expired": True, "is_stopped": True}, EXPIRED),
        ({"has_channel": False, "is_stopped": True}, CHANNEL_REMOVED),
        ({"has_same_bot": False}, OTHER_BOT),
        ({"is_stopped": True}, CHANNEL_STOPPED),
        (
            {"missing_permission": "news", "is_stopped": True},
            Obstacle(SkippedReason.NO_PERMISSION, "the permission 'news' is not granted"),
        ),
    ],
)
def test_of_several_obstacles_the_lasting_one_is_named(
    facts: dict[str, Any], obstacle: Obstacle | None
) -> None:
    assert find_obstacle(**{"status": "active", **facts}) == obstacle


def test_a_step_has_hours() -> None:
    hours = RouteHours.model_validate({"from": "08:00", "to": "22:00"})
    step = RouteStep(channel="sms", hours=hours)
    noon, night = (datetime(2026, 3, 1, hour, tzinfo=UTC).timestamp() for hour in (12, 23))

    assert hours_obstacle(step, int(noon * 1000)) is None
    assert hours_obstacle(step, int(night * 1000)) == OUTSIDE_HOURS
    assert hours_obstacle(RouteStep(channel="sms"), int(night * 1000)) is None
