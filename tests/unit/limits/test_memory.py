"""What the limiter in memory keeps, and by which time."""

import pytest

from msgsvc_core.limits import MemoryLimiter
from msgsvc_devkit import FakeClock


class ManualClock:
    def __init__(self) -> None:
        self.ms = 1_795_167_000_000

    def time(self) -> float:
        return self.ms / 1000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


async def test_idle_keys_are_dropped_while_others_are_used():
    clock = ManualClock()
    limiter = MemoryLimiter(clock)
    for number in range(10_000):
        await limiter.hit(f"ip:{number}", 5, 60)
    clock.ms += 60_000

    for _ in range(5_001):
        await limiter.hit("project", 300, 60)

    assert len(limiter) == 1


async def test_memory_does_not_grow_with_ever_new_keys():
    clock = ManualClock()
    limiter = MemoryLimiter(clock)
    most = 0
    for number in range(20_000):
        clock.ms += 60
        await limiter.hit(f"ip:{number}", 5, 60)
        most = max(most, len(limiter))

    # A thousand keys are inside their minute at any time; the sweep is at most one round behind.
    assert most <= 2_100


async def test_looking_at_keys_leaves_nothing_in_memory():
    limiter = MemoryLimiter(ManualClock())

    await limiter.peek("ip:1", 5, 60)

    assert len(limiter) == 0


async def test_sweep_drops_no_key_that_still_counts():
    clock = ManualClock()
    limiter = MemoryLimiter(clock)
    await limiter.hit("slow", 1, 3600)
    for number in range(2_000):
        clock.ms += 1_000
        await limiter.hit(f"fast:{number}", 1, 1)

    assert not (await limiter.hit("slow", 1, 3600)).allowed


@pytest.mark.parametrize("set_by_s", [-3600, 3600])
async def test_a_clock_that_is_set_neither_opens_nor_shuts_a_key(set_by_s: float) -> None:
    clock = FakeClock()
    limiter = MemoryLimiter(clock)
    await limiter.hit("a", 1, 60)
    clock.advance(20)
    clock.set_by(set_by_s)
    soon = await limiter.hit("a", 1, 60)
    clock.advance(40)
    later = await limiter.hit("a", 1, 60)

    assert not soon.allowed
    assert soon.retry_after_s == 40
    assert soon.reset_at == clock.time()
    assert later.allowed
