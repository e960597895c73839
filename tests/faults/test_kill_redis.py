"""kill -9 of Redis while limits are counted in it: they go on locally, and are shared again after."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msgsvc_core.clock import SystemClock
from msgsvc_core.errors import Unavailable
from msgsvc_core.limits.redis import RETRY_S, RedisLimiter, redis_client

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server"),
]


class Seconds:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def running_redis(port: int, folder: Path) -> Iterator[None]:
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "redis-server does not listen"
            time.sleep(0.02)
        else:
            return


async def test_limits_survive_the_death_of_redis_and_are_shared_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seconds = Seconds()
    one, other = (
        RedisLimiter(redis_client(f"redis://127.0.0.1:{port}/0"), SystemClock(), monotonic=seconds)
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
