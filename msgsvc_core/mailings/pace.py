"""The number of a mailing's messages that may start now, by its `per_minute`: evenly spread, exact in total.

`Mailing.next_us` is when the next one is due. It advances by a step for each message, on any bot.
"""

from msgsvc_core.mailings.models import Mailing

MINUTE_US = 60_000_000

#: Microseconds that a late mailing may catch up.
CATCH_UP_US = 1_000_000

#: Maximum and minimum milliseconds between two checks, and the minimum number of messages per check: each
#: check is a transaction.
MAX_CHECK_MS, MIN_CHECK_MS, MIN_PER_CHECK = 100, 20, 20


def capacity(mailing: Mailing, now_ms: int) -> int:
    """How many messages may start now."""
    waited_us = now_ms * 1000 - _since_us(mailing, now_ms)
    return 0 if waited_us < 0 else waited_us * _per_minute(mailing) // MINUTE_US + 1


def after(mailing: Mailing, now_ms: int, begun: int) -> int:
    """When the next one is due after `begun` have started now, in Unix microseconds."""
    return _since_us(mailing, now_ms) - (-begun * MINUTE_US // _per_minute(mailing))


def retry_at_ms(mailing: Mailing, now_ms: int) -> int:
    """When to check again, in Unix milliseconds."""
    return max(now_ms + MAX_CHECK_MS, due_ms(mailing))


def due_ms(mailing: Mailing) -> int:
    """When the next one is due, in Unix milliseconds."""
    return -(-mailing.next_us // 1000)


def check_interval_ms(mailing: Mailing) -> int | None:
    """Milliseconds between checks while waiting for the next message; None if that takes too long."""
    step_us = MINUTE_US // _per_minute(mailing)
    if step_us >= MAX_CHECK_MS * 1000:
        return None
    return min(MAX_CHECK_MS, max(MIN_CHECK_MS, MIN_PER_CHECK * step_us // 1000))


def _since_us(mailing: Mailing, now_ms: int) -> int:
    """When the next one was due, limited by what may be caught up."""
    # Half a step at least: otherwise a slow pace would lose a little with each message.
    catch_up_us = max(CATCH_UP_US, MINUTE_US // _per_minute(mailing) // 2)
    return max(mailing.next_us, now_ms * 1000 - catch_up_us)


def _per_minute(mailing: Mailing) -> int:
    assert mailing.per_minute is not None, "only asked of mailings with a pace"
    return mailing.per_minute
