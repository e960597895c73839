"""A Redis that is away or silent: who is counted locally, who is refused, and how long it takes."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress

import pytest
import structlog.testing

from msgsvc_core.kernel.errors import Unavailable
from msgsvc_core.limits import redis as redis_limits
from msgsvc_core.limits.redis import RedisLimiter, redis_client
from msgsvc_devkit import FakeClock


class Seconds:
    """Monotonic time that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Door:
    """A port that speaks as much of Redis as a ping takes, counts who comes, and can fall silent."""

    def __init__(self) -> None:
        self.asked = 0
        self.silent = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while await reader.read(4096):
                self.asked += 1
                if self.silent:
                    await asyncio.sleep(3600)
                writer.write(b"-ERR this is only a door\r\n")


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def closed_port() -> Iterator[int]:
    # Bound and not listening: nobody else gets it, and who connects is refused.
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
async def away(closed_port: int, seconds: Seconds) -> AsyncIterator[RedisLimiter]:
    client = redis_client(f"redis://:hunter2-hunter2@127.0.0.1:{closed_port}/0")
    limiter = RedisLimiter(client, FakeClock(), monotonic=seconds)
    yield limiter
    await limiter.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Accepts connections, by way of the system's backlog, and never answers."""
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1000)
        yield listening


@pytest.fixture
async def silent(listener: socket.socket, seconds: Seconds) -> AsyncIterator[RedisLimiter]:
    client = redis_client(f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
    limiter = RedisLimiter(client, FakeClock(), monotonic=seconds)
    yield limiter
    await limiter.close()


def came(listener: socket.socket) -> int:
    """How many have connected until now."""
    listener.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


async def test_hits_that_may_are_counted_in_this_process(away: RedisLimiter) -> None:
    answers = [await away.hit("a", 2, 60, when_away="count_locally") for _ in range(3)]
    looked = await away.peek("a", 2, 60, when_away="count_locally")

    assert [answer.allowed for answer in answers] == [True, True, False]
    assert looked == answers[-1]


async def test_hits_that_stop_guessing_are_refused(away: RedisLimiter) -> None:
    with pytest.raises(Unavailable) as hit:
        await away.hit("a", 2, 60, when_away="refuse")
    with pytest.raises(Unavailable):
        await away.peek("a", 2, 60, when_away="refuse")

    assert (hit.value.status, hit.value.retryable, hit.value.retry_after_s) == (503, True, 1)


async def test_a_hit_that_does_not_say_is_refused(away: RedisLimiter) -> None:
    with pytest.raises(Unavailable):
        await away.hit("a", 2, 60)


async def test_a_silent_redis_is_waited_for_once_and_not_by_each_request(
    silent: RedisLimiter, listener: socket.socket
) -> None:
    began = time.perf_counter()
    answers = [await silent.hit("a", 10, 60, when_away="count_locally") for _ in range(200)]
    took_s = time.perf_counter() - began

    assert sum(answer.allowed for answer in answers) == 10
    assert took_s >= redis_limits.TIMEOUT_S
    assert came(listener) == 1


async def test_requests_that_come_together_wait_together(
    silent: RedisLimiter, listener: socket.socket
) -> None:
    answers = await asyncio.gather(
        *(silent.hit("a", 10, 60, when_away="count_locally") for _ in range(500))
    )

    assert sum(answer.allowed for answer in answers) == 10
    # The first waited side by side, and those behind them not at all.
    assert 1 <= came(listener) <= redis_limits.MAX_CALLS


async def test_redis_is_tried_again_once_a_second(seconds: Seconds) -> None:
    door = Door()
    server = await asyncio.start_server(door.serve, "127.0.0.1", 0)
    client = redis_client(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
    limiter = RedisLimiter(client, FakeClock(), monotonic=seconds)
    tried = []
    for pause_s in (0, 0.5, 0.49, 0.01, 0.5, 0.5):
        seconds.now += pause_s
        before = door.asked
        await limiter.hit("a", 10, 60, when_away="count_locally")
        tried.append(door.asked > before)
    await limiter.close()
    server.close()
    await server.wait_closed()

    assert tried == [True, False, False, True, False, True]


async def test_an_absence_is_logged_once_a_minute_without_the_password(
    away: RedisLimiter, seconds: Seconds
) -> None:
    with structlog.testing.capture_logs() as logs:
        for _ in range(100):
            await away.hit("a", 10, 60, when_away="count_locally")
            seconds.now += 1

    assert [entry["event"] for entry in logs] == ["redis_away_limits_counted_locally"] * 2
    assert "hunter2" not in str(logs)


async def test_a_check_says_what_is_wrong(away: RedisLimiter) -> None:
    wrong = await away.check()

    assert wrong
    assert "hunter2" not in wrong
