"""How many messages of a mailing may begin now, by its `per_minute`: evenly spread, exact in the sum.

`Mailing.next_us` is when the next one is due. It moves on by a step for each message, whoever sends it.
"""

from msgsvc_core.mailings.models import Mailing

MINUTE_US = 60_000_000

#: Microseconds that a mailing may catch up after it was late.
CATCH_UP_US = 1_000_000

#: Milliseconds between two looks at least: fast mailings send a few together.
LOOK_MS = 100


def room(mailing: Mailing, now_ms: int) -> int:
    """How many may begin now."""
    waited_us = now_ms * 1000 - _since_us(mailing, now_ms)
    return 0 if waited_us < 0 else waited_us // _step_us(mailing) + 1


def after(mailing: Mailing, now_ms: int, begun: int) -> int:
    """When the next one is due after `begun` that begin now, in Unix microseconds."""
    return _since_us(mailing, now_ms) + begun * _step_us(mailing)


def again_ms(mailing: Mailing, now_ms: int) -> int:
    """When to look again, in Unix milliseconds."""
    return max(now_ms + LOOK_MS, -(-mailing.next_us // 1000))


def _since_us(mailing: Mailing, now_ms: int) -> int:
    """When the next one was due, but for what is too late to be caught up."""
    # Half a step at least: a slow pace would lose a little with each message otherwise.
    catch_up_us = max(CATCH_UP_US, _step_us(mailing) // 2)
    return max(mailing.next_us, now_ms * 1000 - catch_up_us)


def _step_us(mailing: Mailing) -> int:
    assert mailing.per_minute is not None, "only asked of mailings with a pace"
    return MINUTE_US // mailing.per_minute
