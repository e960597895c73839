"""Turns: who shares a key goes one after another, the others side by side."""

import asyncio

from msgsvc_core.channels.outbound.ordering import FifoKeyLock, RetryOrder
from msgsvc_core.jobs import Job
from msgsvc_devkit.work import PATIENCE_S


class Walkers:
    """Each takes its keys, notes that it began, and goes on when it is told to."""

    def __init__(self) -> None:
        self.turns = FifoKeyLock()
        self.began: list[str] = []
        self.may_end: dict[str, asyncio.Event] = {}

    def start(self, name: str, keys: str) -> asyncio.Task[None]:
        self.may_end[name] = asyncio.Event()
        return asyncio.create_task(self._walk(name, keys))

    async def _walk(self, name: str, keys: str) -> None:
        async with self.turns.acquire(keys):
            self.began.append(name)
            await self.may_end[name].wait()


async def rest() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_shares_no_key_waits_for_nobody() -> None:
    walkers = Walkers()
    tasks = [walkers.start("one", "ab"), walkers.start("two", "cd")]
    await rest()

    assert walkers.began == ["one", "two"]
    for event in walkers.may_end.values():
        event.set()
    await asyncio.gather(*tasks)


async def test_who_shares_one_comes_after_in_the_order_of_coming() -> None:
    walkers = Walkers()
    tasks = [walkers.start(name, keys) for name, keys in (("1", "ab"), ("2", "bc"), ("3", "ca"))]
    await rest()
    assert walkers.began == ["1"]
    walkers.may_end["1"].set()
    await rest()
    assert walkers.began == ["1", "2"]
    walkers.may_end["2"].set()
    await rest()

    assert walkers.began == ["1", "2", "3"]
    walkers.may_end["3"].set()
    await asyncio.gather(*tasks)
    assert not walkers.turns._under_way


async def test_who_is_cancelled_while_waiting_lets_nobody_overtake() -> None:
    walkers = Walkers()
    first, second, third = (walkers.start(name, "a") for name in "123")
    await rest()
    second.cancel()
    await rest()
    assert walkers.began == ["1"]
    walkers.may_end["1"].set()
    walkers.may_end["3"].set()
    await asyncio.gather(first, second, third, return_exceptions=True)

    assert walkers.began == ["1", "3"]
    assert not walkers.turns._under_way


async def test_who_fails_makes_room() -> None:
    turns = FifoKeyLock()
    try:
        async with turns.acquire("a"):
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass

    async with asyncio.timeout(PATIENCE_S), turns.acquire("a"):
        assert turns._under_way


# ---- jobs that went back ------------------------------------------------------------------------


def job(number: int, *, due_ms: int = 0, to: str = "ann", priority: int = 50) -> Job:
    payload = {"message_id": f"m{number}", "subscriber_id": to}
    return Job(
        f"job_{number:03}", "deliver", "channel:a", payload, 1, 1, 0, "prj", priority, due_ms
    )


def test_a_later_job_waits_for_an_earlier_one_that_went_back() -> None:
    order = RetryOrder()
    order.record(job(1), 5000)

    assert order.behind(job(2), 0) == 5000
    assert order.behind(job(2, to="ben"), 0) is None
    assert order.behind(job(2, priority=0), 0) is None


def test_an_earlier_job_does_not_wait_for_a_later_one() -> None:
    order = RetryOrder()
    order.record(job(2), 5000)

    assert order.behind(job(1), 0) is None


def test_who_came_back_holds_nobody_up() -> None:
    order = RetryOrder()
    order.record(job(1), 5000)

    assert order.behind(job(1, due_ms=5000), 0) is None
    assert order.behind(job(2), 0) is None
    assert not order


def test_a_job_that_never_comes_back_is_waited_for_only_once() -> None:
    order = RetryOrder()
    order.record(job(1), 5000)
    until_ms = order.behind(job(2), 0)
    assert until_ms is not None
    order.record(job(2), until_ms)

    assert order.behind(job(2, due_ms=until_ms), 0) is None
    assert not order


def test_who_was_claimed_before_an_earlier_job_went_back_waits_whatever_the_clock_says() -> None:
    order = RetryOrder()
    order.claimed([job(1, due_ms=17_000), job(2, due_ms=17_000)])
    # Meanwhile the clock is set back by seven seconds.
    order.record(job(1), 11_000)

    assert order.behind(job(2, due_ms=17_000), 0) == 11_000


def test_who_was_claimed_later_does_not_wait_for_a_job_that_was_due_and_not_claimed() -> None:
    order, first = RetryOrder(), job(1)
    order.claimed([first])
    order.record(first, 5000)
    order.ended([first])
    order.claimed([job(2, due_ms=6000)])

    assert order.behind(job(2, due_ms=6000), 0) is None
    assert not order


def test_a_job_claimed_while_an_earlier_one_was_being_written_back_waits_for_it() -> None:
    order, first = RetryOrder(), job(1)
    order.claimed([first])
    order.record(first, 5000)
    order.claimed([job(2, due_ms=6000)])

    assert order.behind(job(2, due_ms=6000), 0) == 5000
    order.ended([first])
    assert order.behind(job(2, due_ms=6000), 0) == 5000
    order.claimed([job(1, due_ms=5000)])
    assert order.behind(job(2, due_ms=6000), 0) == 5000


# ---- jobs of a runner that crashed --------------------------------------------------------------


def test_a_later_job_waits_for_one_that_was_interrupted_and_is_not_claimed_yet() -> None:
    order = RetryOrder()
    order.interrupted([job(1)])

    until_ms = order.behind(job(2), 1000)
    assert until_ms is not None
    assert until_ms > 1000
    assert order.behind(job(2, to="ben"), 1000) is None
    assert order.behind(job(0), 1000) is None
    first, second, again = job(1), job(2), job(2)
    order.claimed([second])
    order.claimed([first])
    assert order.behind(second, 1000) is not None
    order.claimed([again])
    order.ended([second])
    assert order.behind(again, 1000) is None
    order.ended([first])
    assert not order


def test_one_that_was_deleted_meanwhile_holds_nobody_up() -> None:
    order = RetryOrder()
    order.interrupted([job(1), job(3)])
    order.interrupted([job(3)])

    assert order.behind(job(2), 1000) is None
    assert order.behind(job(4), 1000) is not None
