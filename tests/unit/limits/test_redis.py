"""What the limiter in Redis does beyond the contract: whose time counts, and what is left behind."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.limits.redis import EXPIRY_MARGIN_MS, RedisLimiter, redis_client
from msgsvc_devkit import FakeClock
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import REDIS_URL_VARIABLE, redis_url

pytestmark = pytest.mark.skipif(
    not has("redis"), reason=f"Redis does not answer; {REDIS_URL_VARIABLE} names one"
)

REDIS_URL = redis_url()


@pytest.fixture
def prefix() -> str:
    return f"msgsvc-test:{new_token()}:"


@pytest.fixture
async def limiter(prefix: str) -> AsyncIterator[RedisLimiter]:
    limiter = RedisLimiter(redis_client(REDIS_URL, 30), FakeClock(), prefix=prefix, timeout_s=30)
    yield limiter
    await limiter.close()


async def test_machines_whose_clocks_differ_share_a_window(
    limiter: RedisLimiter, prefix: str
) -> None:
    ahead = FakeClock()
    ahead.advance(3600)
    other = RedisLimiter(redis_client(REDIS_URL, 30), ahead, prefix=prefix, timeout_s=30)
    passed = [(await each.hit("a", 3, 60)).allowed for each in (limiter, other) * 3]
    await other.close()

    assert passed == [True, True, True, False, False, False]


async def test_the_moment_at_which_a_slot_frees_is_in_the_servers_time(
    limiter: RedisLimiter,
) -> None:
    answer = await limiter.hit("a", 3, 60)

    # The tests' Redis is on this machine, or on one whose clock is near.
    assert answer.reset_at == pytest.approx(SystemClock().time() + 60, abs=30)


async def test_a_key_is_gone_a_minute_after_its_window(limiter: RedisLimiter, prefix: str) -> None:
    await limiter.hit("a", 3, 60)
    left_ms = await limiter._client.pttl(f"{prefix}60:a")

    assert 60_000 < left_ms <= 60_000 + EXPIRY_MARGIN_MS


async def test_a_look_leaves_no_key(limiter: RedisLimiter, prefix: str) -> None:
    await limiter.peek("a", 3, 60)

    assert not await limiter._client.exists(f"{prefix}60:a")


async def test_refused_hits_take_no_room(limiter: RedisLimiter, prefix: str) -> None:
    for _ in range(20):
        await limiter.hit("a", 3, 60)

    assert await limiter._client.zcard(f"{prefix}60:a") == 3


async def test_cancelled_calls_mix_up_no_answers(limiter: RedisLimiter) -> None:
    for turn in range(200):
        task = asyncio.create_task(limiter.hit("cancelled", 1000, 60))
        for _ in range(turn % 7):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    answers = [await limiter.hit("a", 3, 60) for _ in range(4)]

    assert [answer.remaining for answer in answers] == [2, 1, 0, 0]
    assert [answer.allowed for answer in answers] == [True, True, True, False]
