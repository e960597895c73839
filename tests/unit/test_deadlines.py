"""Many calls have their time, by one timer."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from msgsvc_core.kernel.aio import TimeoutPool
from msgsvc_devkit.deadlines import patient


async def test_what_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError), TimeoutPool().timeout(0.05):
        await asyncio.sleep(10)
    assert 0.05 <= time.monotonic() - began < 5


async def test_each_call_has_its_own_time() -> None:
    deadlines, ended = TimeoutPool(), list[str]()

    async def call(name: str, allowed_s: float, takes_s: float) -> None:
        try:
            with deadlines.timeout(allowed_s):
                await asyncio.sleep(takes_s)
            ended.append(f"{name} in time")
        except TimeoutError:
            ended.append(f"{name} too late")

    await asyncio.gather(
        call("slow", 0.3, 10), call("hasty", 0.1, 10), call("quick", 0.1, 0), call("calm", 10, 0.2)
    )
    assert ended == ["quick in time", "hasty too late", "calm in time", "slow too late"]


async def test_a_timer_that_rang_for_calls_long_over_rings_for_the_next() -> None:
    deadlines = TimeoutPool()
    with deadlines.timeout(0.05):
        pass
    await asyncio.sleep(0.02)
    with pytest.raises(TimeoutError), deadlines.timeout(0.05):
        await asyncio.sleep(10)


def test_uvloops_timers_know_no_less_than_a_millisecond() -> None:
    async def too_long(deadlines: TimeoutPool, seconds: float) -> None:
        with pytest.raises(TimeoutError), deadlines.timeout(seconds):
            await asyncio.sleep(10)

    async def call() -> None:
        deadlines = TimeoutPool()
        await asyncio.gather(*(too_long(deadlines, 0.0001 * number) for number in range(50)))

    uvloop.run(call())


def test_another_loop_has_a_timer_of_its_own() -> None:
    deadlines = TimeoutPool()

    async def call(allowed_s: float, takes_s: float) -> None:
        with deadlines.timeout(allowed_s):
            await asyncio.sleep(takes_s)

    asyncio.run(call(0.2, 0))
    with pytest.raises(TimeoutError):
        asyncio.run(call(0.3, 10))


async def test_calls_that_follow_one_another_set_no_timers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, deadlines, timers = asyncio.get_running_loop(), TimeoutPool(), list[float]()
    call_at = loop.call_at

    def count(when: float, callback: Callable[..., Any], *args: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, callback, *args)

    monkeypatch.setattr(loop, "call_at", count)
    for _ in range(100):
        with deadlines.timeout(10):
            pass
    assert len(timers) == 1


async def test_who_is_cancelled_from_outside_is_not_told_of_a_time_limit() -> None:
    async def call() -> None:
        with TimeoutPool().timeout(10):
            await asyncio.sleep(10)

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_of_the_call_come_through() -> None:
    deadlines = TimeoutPool()
    with pytest.raises(LookupError), deadlines.timeout(10):
        raise LookupError


async def test_who_is_cancelled_as_the_time_ends_is_cancelled() -> None:
    async def call() -> None:
        with TimeoutPool().timeout(0):
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                task.cancel()
                raise

    task = asyncio.create_task(call())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_call_that_ended_in_time_is_not_cancelled_later() -> None:
    deadlines = TimeoutPool()
    with deadlines.timeout(0.02):
        pass
    await asyncio.sleep(0.05)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_after_a_timeout_the_task_goes_on() -> None:
    with pytest.raises(TimeoutError), TimeoutPool().timeout(0.01):
        await asyncio.sleep(10)
    await asyncio.sleep(0)
    async with asyncio.timeout(patient(10)):
        await asyncio.sleep(0)
