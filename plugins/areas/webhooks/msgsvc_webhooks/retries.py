"""Classifies attempts and plans retries: a quick burst, then growing intervals."""

import random
from dataclasses import dataclass
from enum import Enum, auto

from msgsvc_webhooks.models import Attempt

#: Seconds from the end of an attempt to the next one, for the first retries.
BURST_S = (1.0, 2.0, 4.0)

#: Seconds from the start of the first attempt to each later one.
LADDER_S = (30.0, 120.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)

#: Share by which a step of the ladder comes earlier or later, so that deliveries that failed
#: together are not all tried again together.
JITTER = 0.1

#: Retries after the first attempt.
LAST_STEP = len(BURST_S) + len(LADDER_S)

#: Statuses by which a receiver says "later", although they are 4xx: timeout, too early, throttled.
LATER_STATUSES = frozenset({408, 425, 429})

GONE_STATUS = 410


class Verdict(Enum):
    """The next state of a delivery after an attempt."""

    DELIVERED = auto()
    RETRY = auto()
    FAILED = auto()
    #: As failed, and the receiver wants no more: its webhook is disabled.
    GONE = auto()


def classify(attempt: Attempt, *, retry_later_statuses: bool) -> Verdict:
    """The verdict on `attempt`; `retry_later_statuses` is for 408, 425 and 429."""
    status = attempt.status_code
    if attempt.forbidden:
        return Verdict.FAILED
    if status == GONE_STATUS:
        return Verdict.GONE
    if status in LATER_STATUSES and retry_later_statuses:
        return Verdict.RETRY
    if status is not None and 400 <= status < 500:
        return Verdict.FAILED
    if status is not None and 200 <= status < 300 and attempt.error is None:
        return Verdict.DELIVERED
    return Verdict.RETRY


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """`step` of the plan, from 1, is due in `after_s` seconds."""

    step: int
    after_s: float


def next_attempt(
    step: int, elapsed_s: float, retry_after_s: float | None = None
) -> NextAttempt | None:
    """The attempt after a failed one; None at the end of the plan.

    `step` is the plan's step of the failed attempt (0 is the first attempt), `elapsed_s` the seconds since
    the start of the first one. `retry_after_s` delays the next attempt, at most to the end of the plan.
    Steps that are overdue are merged into one.
    """
    step += 1
    if step > LAST_STEP:
        return None
    at_s = _planned_at(step, elapsed_s)
    if retry_after_s is not None:
        at_s = max(at_s, min(elapsed_s + retry_after_s, LADDER_S[-1]))
    # A slow receiver, a long Retry-After, or our own downtime: the steps in between would now
    # follow upon each other without a pause, which the ladder is there to give.
    while len(BURST_S) < step < LAST_STEP and _rung_s(step + 1) <= at_s:
        step += 1
    return NextAttempt(step, at_s - elapsed_s)


def _planned_at(step: int, elapsed_s: float) -> float:
    """Seconds after the first attempt."""
    if step <= len(BURST_S):
        return elapsed_s + BURST_S[step - 1]
    spread = 1 + random.uniform(-JITTER, JITTER)  # noqa: S311 - no secret
    return max(_rung_s(step) * spread, elapsed_s + BURST_S[-1])


def _rung_s(step: int) -> float:
    return LADDER_S[step - len(BURST_S) - 1]
