"""Rate limits of codes per subscriber, and of attempts to verify them."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import TooEarly
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import store
from msgsvc_otp.errors import OtpRateLimited
from msgsvc_otp.models import OneTimeCode
from msgsvc_otp.settings import OtpSettings

#: Milliseconds of the window in which codes and guesses are counted (decision 0075: an hour).
WINDOW_MS = 3_600_000


async def lock(tx: Tx, project_id: str, subscriber_id: str) -> None:
    """Locks sending to the subscriber, and verifying, until the transaction ends."""
    await tx.lock(f"otp of {project_id} {subscriber_id}")


async def lock_people(
    tx: Tx, subscribers: Subscribers, project_id: str, people: Sequence[str]
) -> list[str]:
    """Keeps others from the codes of a person, known by several subscribers, and the person from being erased
    meanwhile. Returns the subscribers that there are, always in the same order.

    The subscribers first, as an erasure has them: PostgreSQL looks for them again when a transaction changes
    a code twice, and the two would wait for each other.
    """
    keys = [(project_id, each) for each in people]
    known = sorted(each for _, each in await subscribers.lock_existing(tx, keys))
    for each in known:
        await lock(tx, project_id, each)
    return known


async def check_send(
    tx: Tx, settings: OtpSettings, request: OneTimeCode, people: Sequence[str], *, now_ms: int
) -> None:
    """Counts the codes of a person's subscribers. Raises `OtpRateLimited` beyond the hourly limit, and
    `TooEarly` too soon after the previous code."""
    limit = settings.sends_per_hour
    issued = await store.list_issued(
        tx, request.project_id, people, since_ms=now_ms - WINDOW_MS, limit=limit
    )
    if len(issued) == limit:
        raise OtpRateLimited(
            "more than {limit} codes in an hour for this subscriber",
            limit=limit,
            retry_after_s=_seconds(issued[-1].at_ms + WINDOW_MS - now_ms),
        )
    last_ms = next((one.at_ms for one in issued if one.purpose == request.purpose), None)
    if last_ms is None:
        return
    left_ms = last_ms + settings.resend_after_s * 1000 - now_ms
    if left_ms > 0:
        raise TooEarly(
            "the last code was sent less than {seconds} s ago",
            seconds=settings.resend_after_s,
            retry_after_s=_seconds(left_ms),
        )


async def check_guess(
    tx: Tx, settings: OtpSettings, code: OneTimeCode, people: Sequence[str], *, now_ms: int
) -> None:
    """Whether the attempt that `code` has just counted may be compared. Raises `OtpRateLimited`.

    The first attempt of a code is always compared, so that a user who has the code can't be locked out by
    others' guesses. This costs one guess per code sent, which is limited itself.
    """
    if code.attempts == 1:
        return
    guessed = await store.list_guessed(tx, code.project_id, people, since_ms=now_ms - WINDOW_MS)
    # All but the one at hand.
    wrong = sum(one.wrong for one in guessed) - 1
    if wrong >= settings.guesses_per_hour:
        raise OtpRateLimited(
            "more than {limit} wrong codes in an hour for this subscriber; the first guess"
            " at a new code is taken all the same",
            limit=settings.guesses_per_hour,
            retry_after_s=_seconds(_freed_ms(guessed, wrong, settings.guesses_per_hour) - now_ms),
        )


def _freed_ms(guessed: Sequence[store.Guessed], wrong: int, limit: int) -> int:
    """When so many of the wrong guesses are an hour old that another may follow."""
    for one in guessed:
        wrong -= one.wrong
        if wrong < limit:
            return one.at_ms + WINDOW_MS
    return guessed[-1].at_ms + WINDOW_MS


def _seconds(ms: int) -> int:
    """Rounded up, for `Retry-After`."""
    return max(1, -(-ms // 1000))
