"""The schedule of a mailing with a pace: exact in the sum, and never more than a second's worth late."""

import pytest

from msgsvc_core.mailings import Mailing, pace

NOW_MS = 1_768_478_400_000


def mailing(per_minute: int, next_us: int = NOW_MS * 1000) -> Mailing:
    return Mailing(
        project_id="prj_1",
        job_id="job_1",
        source="test",
        status="running",
        content="{}",
        audience={"all": True},
        permission=None,
        metadata=None,
        per_minute=per_minute,
        expires_at_ms=None,
        send_at_ms=None,
        total=100,
        sent=0,
        failed=0,
        skipped=0,
        error=None,
        resend_of=None,
        created_at_ms=NOW_MS,
        started_at_ms=NOW_MS,
        finished_at_ms=None,
        expanded_to=None,
        next_us=next_us,
        timed_from_ms=NOW_MS,
        timed_from=0,
    )


@pytest.mark.parametrize("per_minute", [1, 7, 60, 90, 600, 3001, 60_000])
@pytest.mark.parametrize("look_ms", [7, 100, 400])
def test_no_minute_has_more_messages_and_a_long_time_has_as_many(
    per_minute: int, look_ms: int
) -> None:
    made = mailing(per_minute)
    begun: list[int] = []
    minutes = 5
    for now_ms in range(NOW_MS, NOW_MS + minutes * 60_000, look_ms):
        room = pace.capacity(made, now_ms)
        if room:
            made.next_us = pace.after(made, now_ms, room)
            begun += [now_ms] * room

    in_first_minute = sum(at < NOW_MS + 60_000 for at in begun)
    assert in_first_minute <= per_minute
    assert abs(len(begun) - per_minute * minutes) <= max(1, per_minute * minutes * 0.01)


def test_what_came_late_is_caught_up_by_a_second_at_most() -> None:
    late = mailing(600, next_us=(NOW_MS - 3_600_000) * 1000)

    assert pace.capacity(late, NOW_MS) == 11


@pytest.mark.parametrize("per_minute", [1, 30])
def test_slow_pace_catches_up_nothing(per_minute: int) -> None:
    late = mailing(per_minute, next_us=(NOW_MS - 3_600_000) * 1000)

    assert pace.capacity(late, NOW_MS) == 1
    late.next_us = pace.after(late, NOW_MS, 1)
    assert pace.capacity(late, NOW_MS) == 0


def test_next_look_is_when_the_next_message_is_due_and_no_sooner_than_a_tenth() -> None:
    assert pace.retry_at_ms(mailing(1, (NOW_MS + 5000) * 1000 + 1), NOW_MS) == NOW_MS + 5001
    assert pace.retry_at_ms(mailing(60_000, NOW_MS * 1000 + 1000), NOW_MS) == NOW_MS + 100


@pytest.mark.parametrize("per_minute", [7, 90_000, 700_000, 999_999])
def test_a_minutes_messages_take_a_minute_where_the_step_is_no_whole_microsecond(
    per_minute: int,
) -> None:
    made = mailing(per_minute)

    assert pace.after(made, NOW_MS, per_minute) == (NOW_MS + 60_000) * 1000


@pytest.mark.parametrize(
    ("per_minute", "look_ms"), [(600, None), (601, 100), (12_000, 100), (60_000, 20), (10**6, 20)]
)
def test_the_next_is_waited_for_where_it_comes_soon_and_for_no_few(
    per_minute: int, look_ms: int | None
) -> None:
    assert pace.check_interval_ms(mailing(per_minute)) == look_ms
