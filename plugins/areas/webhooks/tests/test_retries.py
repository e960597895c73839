"""The retry plan, without a network or a clock."""

import pytest

from msgsvc_webhooks.models import Attempt
from msgsvc_webhooks.retries import LADDER_S, LAST_STEP, Verdict, classify, next_attempt


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msgsvc_webhooks.retries.random.uniform", lambda low, high: 0.0)


def times_of_all_attempts(*, duration_s: float) -> list[float]:
    """When each attempt begins, if all fail and take that long."""
    times, step = [0.0], 0
    while planned := next_attempt(step, times[-1] + duration_s):
        times.append(times[-1] + duration_s + planned.after_s)
        step = planned.step
    return times


@pytest.mark.usefixtures("no_jitter")
def test_burst_of_1_2_and_4_seconds_is_followed_by_the_ladder_from_the_first_attempt():
    times = times_of_all_attempts(duration_s=0)

    assert times == [0, 1, 3, 7, 30, 120, 600, 3600, 21600, 86400]


@pytest.mark.usefixtures("no_jitter")
def test_receiver_that_always_times_out_gets_every_attempt():
    times = times_of_all_attempts(duration_s=10)

    assert times == [0, 11, 23, 37, 51, 120, 600, 3600, 21600, 86400]


def test_ladder_is_spread_by_a_tenth_each_way():
    planned = [next_attempt(LAST_STEP - 1, 21600) for _ in range(2000)]
    times = [21600 + attempt.after_s for attempt in planned if attempt]

    assert min(times) >= 0.9 * 86400
    assert max(times) <= 1.1 * 86400
    assert max(times) - min(times) > 0.15 * 86400


def test_burst_is_not_spread():
    assert {next_attempt(0, 0).after_s for _ in range(50)} == {1.0}


@pytest.mark.usefixtures("no_jitter")
def test_steps_missed_while_we_were_down_become_one():
    planned = next_attempt(3, 7200)

    assert planned is not None
    assert planned.after_s == 4
    assert planned.step == LADDER_S.index(3600) + 4


@pytest.mark.usefixtures("no_jitter")
def test_retry_after_puts_the_next_attempt_off():
    planned = next_attempt(0, 0, retry_after_s=90)

    assert planned is not None
    assert planned.after_s == 90


@pytest.mark.usefixtures("no_jitter")
def test_retry_after_never_brings_an_attempt_forward():
    planned = next_attempt(3, 7, retry_after_s=1)

    assert planned is not None
    assert planned.after_s == 23


@pytest.mark.usefixtures("no_jitter")
def test_retry_after_is_capped_at_the_end_of_the_ladder():
    planned = next_attempt(4, 100, retry_after_s=30 * 86400)

    assert planned is not None
    assert planned.after_s == 86400 - 100
    assert next_attempt(planned.step, 86400) is None


def test_retry_after_adds_no_attempt_to_the_last_one():
    assert next_attempt(LAST_STEP, 86400, retry_after_s=60) is None


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.DELIVERED),
        (204, Verdict.DELIVERED),
        (299, Verdict.DELIVERED),
        (301, Verdict.RETRY),
        (307, Verdict.RETRY),
        (400, Verdict.FAILED),
        (401, Verdict.FAILED),
        (404, Verdict.FAILED),
        (408, Verdict.RETRY),
        (410, Verdict.GONE),
        (425, Verdict.RETRY),
        (429, Verdict.RETRY),
        (499, Verdict.FAILED),
        (500, Verdict.RETRY),
        (503, Verdict.RETRY),
        (None, Verdict.RETRY),
    ],
)
def test_verdict_on_a_status(status: int | None, verdict: Verdict):
    assert classify(Attempt(0, 1, status), retry_later_statuses=True) is verdict


@pytest.mark.parametrize("status", [408, 425, 429])
def test_every_4xx_ends_a_delivery_when_the_setting_is_off(status: int):
    assert classify(Attempt(0, 1, status), retry_later_statuses=False) is Verdict.FAILED


def test_incomplete_success_is_retried():
    assert classify(Attempt(0, 1, 200, "broke off"), retry_later_statuses=True) is Verdict.RETRY


def test_forbidden_target_is_not_retried():
    attempt = Attempt(0, 1, None, "not public", forbidden=True)

    assert classify(attempt, retry_later_statuses=True) is Verdict.FAILED
