"""How many may be in flight to a platform, by how quickly it answers."""

import asyncio
from collections import deque

import pytest

from msgsvc_core.channels.outbound.concurrency import ConcurrencyLimit

LEAST, MOST = 8, 300


class Platform:
    """Answers each call after `takes_s`, in the order in which they began, and `per_s` at most in a second;
    as many are called as the limit allows."""

    def __init__(self, takes_s: float, per_s: float = float("inf")) -> None:
        self.now_s = 1000.0
        self.takes_s, self.per_s = takes_s, per_s
        self.limit = ConcurrencyLimit(least=LEAST, most=MOST, now_s=lambda: self.now_s)
        self.slots = self.limit.slots()
        self._calls: deque[tuple[float, float]] = deque()
        self._last_s = 0.0
        #: The most that were in flight.
        self.most = 0

    def run(self, seconds: float) -> int:
        """How many calls were answered meanwhile."""
        ends_s, answers = self.now_s + seconds, 0
        while True:
            while self.limit.available > 0:
                self._last_s = max(self.now_s + self.takes_s, self._last_s + 1 / self.per_s)
                self._calls.append((self.now_s, self._last_s))
                self.slots.set(self.slots.count + 1)
            self.most = max(self.most, self.slots.count)
            if self._calls[0][1] > ends_s:
                self.now_s = ends_s
                return answers
            began_s, self.now_s = self._calls.popleft()
            self.limit.answered(began_s)
            self.slots.set(self.slots.count - 1)
            answers += 1


def test_few_are_in_flight_before_anything_was_answered() -> None:
    platform = Platform(takes_s=0.005)

    platform.run(0.001)

    assert platform.limit.in_flight == LEAST


def test_a_quick_platform_soon_has_as_many_as_there_may_be() -> None:
    platform = Platform(takes_s=0.005)

    platform.run(0.05)

    assert platform.limit.limit == MOST


def test_a_platform_that_takes_two_seconds_never_has_more_than_the_first() -> None:
    platform = Platform(takes_s=2.0)

    answers = platform.run(20)

    assert (platform.most, answers) == (LEAST, 10 * LEAST)


def test_a_platform_that_becomes_slow_has_few_once_its_calls_are_answered() -> None:
    platform = Platform(takes_s=0.005)
    platform.run(5)
    platform.takes_s = 2.0

    platform.run(5)

    assert platform.limit.in_flight == LEAST


def test_a_platform_that_hangs_gets_nothing_new() -> None:
    platform = Platform(takes_s=0.005)
    platform.run(5)
    platform.slots.set(0)  # the calls of before were answered in the end

    platform.now_s += 2.0

    assert platform.limit.available == LEAST


def test_a_platform_with_a_queue_has_hardly_more_than_it_answers_in_a_second() -> None:
    platform = Platform(takes_s=0.02, per_s=50)

    answers = platform.run(20)

    assert platform.most <= 1.25 * 50
    assert answers >= 0.99 * 20 * 50


def test_a_platform_that_is_quick_again_soon_has_as_many_as_before() -> None:
    platform = Platform(takes_s=2.0)
    platform.run(10)
    platform.takes_s = 0.005

    platform.run(2.05)

    assert platform.limit.limit == MOST


def test_what_was_measured_long_ago_says_nothing() -> None:
    platform = Platform(takes_s=0.005)
    platform.run(1.5)
    platform.slots.set(0)

    platform.now_s += 60

    assert platform.limit.limit == LEAST


def test_a_trickle_is_no_reason_to_have_many_in_flight() -> None:
    platform = Platform(takes_s=0.005)
    for _ in range(600):
        platform.limit.answered(platform.now_s)
        platform.now_s += 0.05

    assert platform.limit.limit <= LEAST + 22


def test_calls_that_nobody_answers_leave_room_for_fewer() -> None:
    platform = Platform(takes_s=0.005)
    platform.run(0.05)
    for _ in range(10):
        platform.limit.unanswered()

    assert platform.limit.limit == MOST - 10


def test_mailings_leave_a_third_for_what_is_more_urgent() -> None:
    limit = ConcurrencyLimit(least=9, most=9, now_s=lambda: 0.0)
    first, second = limit.slots(bulk=True), limit.slots(bulk=True)
    first.set(4)
    second.set(second.available)

    assert (second.count, first.available, limit.available) == (2, 0, 3)


def test_mailings_take_nothing_from_jobs_that_are_claimed() -> None:
    limit = ConcurrencyLimit(least=9, most=9, now_s=lambda: 0.0)
    limit.claimed(["a", "b", "c", "d", "e"])
    mailing, single = limit.slots(bulk=True), limit.slots()
    assert (mailing.available, limit.claimable) == (4, 4)

    single.acquire(["a", "b"])
    limit.dropped(["c"])

    assert (mailing.available, limit.claimable, limit.available) == (5, 5, 7)


def test_one_mailing_goes_on_however_small_the_limit() -> None:
    limit = ConcurrencyLimit(least=1, most=9, now_s=lambda: 0.0)

    assert limit.slots(bulk=True).available == 1


async def test_who_waits_goes_on_when_something_has_left_its_slot() -> None:
    limit = ConcurrencyLimit(least=1, most=9, now_s=lambda: 0.0)
    with limit.slots() as slots:
        slots.acquire(["a"])
        waiting = asyncio.create_task(limit.until_available())
        await asyncio.sleep(0)
        assert not waiting.done()

    await waiting
    assert limit.in_flight == 0


async def test_who_waits_goes_on_when_the_limit_grows() -> None:
    limit = ConcurrencyLimit(least=1, most=9, now_s=lambda: 0.0)
    limit.slots().acquire(["a"])
    waiting = asyncio.create_task(limit.until_available())
    await asyncio.sleep(0)

    limit.answered(0.0)

    await waiting


async def test_a_failed_block_leaves_its_slots() -> None:
    limit = ConcurrencyLimit(least=8, most=9, now_s=lambda: 0.0)

    with pytest.raises(ValueError, match="lost"), limit.slots() as slots:
        slots.acquire(["a", "b"])
        raise ValueError("lost")

    assert limit.in_flight == 0
