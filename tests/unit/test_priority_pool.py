"""A pool of one connection that interactive and background tasks wait for."""

import asyncio

import pytest

from msgsvc_core.db.priority_pool import PriorityPool


@pytest.fixture
def pool() -> PriorityPool[str]:
    made: PriorityPool[str] = PriorityPool()
    made.put("connection")
    return made


async def started(*coroutines) -> list[asyncio.Task]:
    """Tasks that have run up to their first wait, in this order."""
    tasks = []
    for coroutine in coroutines:
        tasks.append(asyncio.create_task(coroutine))
        await asyncio.sleep(0)
    return tasks


async def order(pool: PriorityPool[str], kinds: str) -> str:
    """In which order tasks get the item, which is taken: `i` is interactive, `b` in the background."""
    got: list[str] = []

    async def use(kind: str) -> None:
        item = await pool.wait(background=kind == "b")
        got.append(kind)
        pool.put(item)

    item = pool.take()
    assert item
    tasks = await started(*(use(kind) for kind in kinds))
    pool.put(item)
    await asyncio.gather(*tasks)
    return "".join(got)


async def test_a_free_item_is_taken_at_once(pool):
    assert pool.take() == "connection"
    assert pool.take() is None


async def test_tasks_of_one_kind_have_their_turn_in_order_of_arrival(pool):
    got = []

    async def use(name: str) -> None:
        item = await pool.wait()
        got.append(name)
        pool.put(item)

    item = pool.take()
    tasks = await started(use("first"), use("second"), use("third"))
    pool.put(item)
    await asyncio.gather(*tasks)

    assert got == ["first", "second", "third"]


async def test_interactive_tasks_go_first_and_the_background_has_every_other_turn(pool):
    assert await order(pool, "bbbiii") == "ibibib"
    assert await order(pool, "bbi") == "ibb"
    assert await order(pool, "iib") == "ibi"
    assert await order(pool, "bb") == "bb"


async def test_a_cancelled_task_loses_no_item(pool):
    item = pool.take()
    given, waiting, last = await started(pool.wait(), pool.wait(), pool.wait())
    waiting.cancel()
    pool.put(item)
    # It has been given the item, and is cancelled before it runs.
    given.cancel()

    assert await last == "connection"
    assert given.cancelled() or waiting.cancelled()
