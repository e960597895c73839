"""How many messages of a mailing may begin now, by its `per_minute`: evenly spread, exact in the sum.

`Mailing.next_us` is when the next one is due. It moves on by a step for each message, whoever sends it.
"""

from msgsvc_core.mailings.models import Mailing

MINUTE_US = 60_000_000

#: Microseconds that a mailing may catch up after it was late.
CATCH_UP_US = 1_000_000

#: Milliseconds between two looks, at most and at least, and messages that are worth one: each look is a
#: transaction.
MAX_CHECK_MS, MIN_CHECK_MS, MIN_PER_CHECK = 100, 20, 20


def capacity(mailing: Mailing, now_ms: int) -> int:
    """How many may begin now."""
    waited_us = now_ms * 1000 - _since_us(mailing, now_ms)
    return 0 if waited_us < 0 else waited_us * _per_minute(mailing) // MINUTE_US + 1


def after(mailing: Mailing, now_ms: int, begun: int) -> int:
    """When the next one is due after `begun` that begin now, in Unix microseconds."""
    return _since_us(mailing, now_ms) - (-begun * MINUTE_US // _per_minute(mailing))


def retry_at_ms(mailing: Mailing, now_ms: int) -> int:
    """When to look again, in Unix milliseconds."""
    return max(now_ms + MAX_CHECK_MS, due_ms(mailing))


def due_ms(mailing: Mailing) -> int:
    """When the next one is due, in Unix milliseconds."""
    return -(-mailing.next_us // 1000)


def check_interval_ms(mailing: Mailing) -> int | None:
    """Milliseconds between looks by who waits for the next; None if that takes too long to wait."""
    step_us = MINUTE_US // _per_minute(mailing)
    if step_us >= MAX_CHECK_MS * 1000:
        return None
    return min(MAX_CHECK_MS, max(MIN_CHECK_MS, MIN_PER_CHECK * step_us // 1000))


def _since_us(mailing: Mailing, now_ms: int) -> int:
    """When the next one was due, but for what is too late to be caught up."""
    # Half a step at least: a slow pace would lose a little with each message otherwise.
    catch_up_us = max(CATCH_UP_US, MINUTE_US // _per_minute(mailing) // 2)
    return max(mailing.next_us, now_ms * 1000 - catch_up_us)


def _per_minute(mailing: Mailing) -> int:
    assert mailing.per_minute is not None, "only asked of mailings with a pace"
    return mailing.per_minute
