"""What every rate limiter promises, run over each back end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.db import CORE_MIGRATIONS, Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.limits import DatabaseLimiter, Limiter, MemoryLimiter, Window
from msgsvc_core.limits.redis import RedisLimiter, redis_client
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import REDIS_URL_VARIABLE, redis_url

START_MS = 1_795_167_000_250


class ManualClock:
    def __init__(self) -> None:
        self.ms = START_MS

    def time(self) -> float:
        return self.ms / 1000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@asynccontextmanager
async def memory(clock: Clock) -> AsyncIterator[Limiter]:
    yield MemoryLimiter(clock)


@asynccontextmanager
async def redis(clock: Clock) -> AsyncIterator[Limiter]:
    client = redis_client(redis_url(), 30)
    prefix = f"msgsvc-test:{new_token()}:"
    limiter = RedisLimiter(client, clock, prefix=prefix, server_time=False, timeout_s=30)
    try:
        yield limiter
        # Else the memory that stands in for it would have passed the test.
        assert await limiter.check() is None
        assert len(limiter._local) == 0
    finally:
        if keys := [key async for key in client.scan_iter(f"{prefix}*")]:
            await client.delete(*keys)
        await limiter.close()


@asynccontextmanager
async def stored(database: Database, clock: Clock) -> AsyncIterator[Limiter]:
    async with database.transaction() as tx:
        await tx.execute("DELETE FROM core_limit_hits")
    yield DatabaseLimiter(database, clock)


Factory = Callable[[Clock], AbstractAsyncContextManager[Limiter]]
NEEDS_REDIS = pytest.mark.skipif(
    not has("redis"), reason=f"Redis does not answer; {REDIS_URL_VARIABLE} names one"
)


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="session",
    params=["memory", pytest.param("redis", marks=NEEDS_REDIS), "sqlite", "postgresql"],
)
async def factory(
    request: pytest.FixtureRequest, databases: dict[str, SQLiteDatabases | PostgresDatabases]
) -> AsyncIterator[Factory]:
    if request.param in {"memory", "redis"}:
        yield memory if request.param == "memory" else redis
        return
    if request.param not in databases:
        pytest.skip("PostgreSQL does not answer")
    url = await databases[request.param].fresh([CORE_MIGRATIONS])
    database = Database(url, synchronous="OFF")
    await database.connect()
    yield partial(stored, database)
    await database.disconnect()
    await databases[request.param].give_back(url)


async def test_limit_hits_are_allowed_and_the_next_is_refused(factory: Factory):
    async with factory(ManualClock()) as limiter:
        answers = [await limiter.hit("a", 3, 60) for _ in range(4)]

    assert [answer.allowed for answer in answers] == [True, True, True, False]
    assert [answer.remaining for answer in answers] == [2, 1, 0, 0]
    assert {answer.limit for answer in answers} == {3}


async def test_slot_frees_exactly_one_window_after_its_hit(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        await limiter.hit("a", 1, 60)
        clock.ms += 59_999
        early = await limiter.hit("a", 1, 60)
        clock.ms += 1
        due = await limiter.hit("a", 1, 60)

    assert not early.allowed
    assert due.allowed


async def test_window_slides_instead_of_starting_anew(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        await limiter.hit("a", 2, 60)
        clock.ms += 50_000
        await limiter.hit("a", 2, 60)
        clock.ms += 10_000
        first = await limiter.hit("a", 2, 60)
        second = await limiter.hit("a", 2, 60)

    assert first.allowed
    assert not second.allowed


async def test_reset_is_the_oldest_hit_plus_the_window_rounded_up(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        first = await limiter.hit("a", 2, 60)
        clock.ms += 5_000
        second = await limiter.hit("a", 2, 60)
        refused = await limiter.hit("a", 2, 60)

    assert first.reset_at == second.reset_at == refused.reset_at == 1_795_167_061


async def test_wait_is_rounded_up_and_enough(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        allowed = await limiter.hit("a", 1, 60)
        clock.ms += 10_001
        refused = await limiter.hit("a", 1, 60)
        clock.ms += refused.retry_after_s * 1000
        again = await limiter.hit("a", 1, 60)

    assert allowed.retry_after_s == 0
    assert refused.retry_after_s == 50
    assert again.allowed


async def test_wait_is_at_least_one_second(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        await limiter.hit("a", 1, 60)
        clock.ms += 59_999
        refused = await limiter.hit("a", 1, 60)

    assert refused.retry_after_s == 1


async def test_refused_hits_do_not_prolong_the_wait(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        await limiter.hit("a", 1, 60)
        for _ in range(59):
            clock.ms += 1_000
            await limiter.hit("a", 1, 60)
        clock.ms += 1_000
        answer = await limiter.hit("a", 1, 60)

    assert answer.allowed


async def test_peek_at_an_empty_window_shows_all_of_it(factory: Factory):
    async with factory(ManualClock()) as limiter:
        answer = await limiter.peek("a", 5, 60)

    assert answer == Window(
        allowed=True, limit=5, remaining=5, reset_at=1_795_167_061, retry_after_s=0
    )


async def test_peek_takes_no_slot(factory: Factory):
    async with factory(ManualClock()) as limiter:
        for _ in range(3):
            await limiter.peek("a", 1, 60)
        hit = await limiter.hit("a", 1, 60)
        full = await limiter.peek("a", 1, 60)
        refused = await limiter.hit("a", 1, 60)

    assert hit.allowed
    assert full == refused


async def test_keys_do_not_touch_one_another(factory: Factory):
    async with factory(ManualClock()) as limiter:
        await limiter.hit("a", 1, 60)
        other = await limiter.hit("b", 1, 60)

    assert other.allowed


async def test_windows_of_one_key_are_counted_apart(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        await limiter.hit("a", 1, 3600)
        short = await limiter.hit("a", 1, 1)
        clock.ms += 2_000
        await limiter.hit("a", 1, 1)
        long = await limiter.hit("a", 1, 3600)

    assert short.allowed
    assert not long.allowed


async def test_lowered_limit_waits_until_enough_hits_are_gone(factory: Factory):
    clock = ManualClock()
    async with factory(clock) as limiter:
        for _ in range(3):
            await limiter.hit("a", 3, 60)
            clock.ms += 10_000
        refused = await limiter.hit("a", 1, 60)
        clock.ms += refused.retry_after_s * 1000
        again = await limiter.hit("a", 1, 60)

    assert refused.retry_after_s == 50
    assert refused.remaining == 0
    assert again.allowed


async def test_simultaneous_hits_get_no_slot_twice(factory: Factory):
    async with factory(ManualClock()) as limiter:
        answers = await asyncio.gather(*(limiter.hit("a", 10, 60) for _ in range(50)))

    assert sum(answer.allowed for answer in answers) == 10


@pytest.mark.parametrize(("limit", "window_s"), [(0, 60), (-1, 60), (1, 0)])
async def test_senseless_limit_is_refused(factory: Factory, limit: int, window_s: int):
    async with factory(ManualClock()) as limiter:
        with pytest.raises(ValueError, match="at least 1"):
            await limiter.hit("a", limit, window_s)


#: Pauses in milliseconds around the edges of a window of a few seconds.
PAUSES = st.one_of(st.sampled_from([0, 1, 999, 1000, 1001, 2999, 3000]), st.integers(0, 4000))


@settings(max_examples=200, deadline=None)
@given(
    limit=st.integers(1, 5),
    window_s=st.integers(1, 3),
    steps=st.lists(st.tuples(PAUSES, st.sampled_from("ab"), st.booleans()), max_size=60),
)
async def test_any_sequence_is_answered_as_a_list_of_all_hits_would(
    factory: Factory, limit: int, window_s: int, steps: list[tuple[int, str, bool]]
):
    clock = ManualClock()
    taken: dict[str, list[int]] = {"a": [], "b": []}
    async with factory(clock) as limiter:
        for pause_ms, key, only_look in steps:
            clock.ms += pause_ms
            since_ms = clock.ms - window_s * 1000
            inside = [ms for ms in taken[key] if ms > since_ms]
            answer = await (limiter.peek if only_look else limiter.hit)(key, limit, window_s)

            assert answer.allowed == (len(inside) < limit)
            if answer.allowed and not only_look:
                taken[key].append(clock.ms)
                inside.append(clock.ms)
            assert answer.remaining == limit - len(inside)
            frees_ms = (inside[0] if inside else clock.ms) + window_s * 1000
            assert answer.reset_at == -(-frees_ms // 1000)
