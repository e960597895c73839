"""kill -9 of Redis while limits are counted in it: they go on locally, and are shared again after."""

import shutil
from pathlib import Path

import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.kernel.errors import Unavailable
from msgsvc_core.limits.redis import RETRY_S, RedisLimiter, redis_client
from tests.faults.redis_server import running_redis
from tests.ports import free_ports
from tests.process import PATIENCE_S

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server"),
]


class Seconds:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_limits_survive_the_death_of_redis_and_are_shared_again(tmp_path: Path) -> None:
    port = free_ports()
    seconds = Seconds()
    # A Redis that is only slow, on a busy machine, is not to count as dead.
    one, other = (
        RedisLimiter(
            redis_client(f"redis://127.0.0.1:{port}/0", PATIENCE_S),
            SystemClock(),
            timeout_s=PATIENCE_S,
            monotonic=seconds,
        )
        for _ in range(2)
    )

    async def passed(*limiters: RedisLimiter) -> list[int]:
        return [
            sum(
                [
                    (await limiter.hit("a", 5, 60, when_away="count_locally")).allowed
                    for _ in range(9)
                ]
            )
            for limiter in limiters
        ]

    with running_redis(port, tmp_path):
        before = await passed(one, other)
    while_away = await passed(one, other)
    with pytest.raises(Unavailable):
        await one.hit("guess", 5, 60, when_away="refuse")
    seconds.now += RETRY_S
    # The new one knows neither the script nor the hits.
    with running_redis(port, tmp_path):
        after = await passed(one, other)
        await one.close()
        await other.close()

    assert before == [5, 0]
    assert while_away == [5, 5]
    assert after == [5, 0]
