"""Work begins a little at a time."""

import asyncio

from msgsvc_core.kernel.aio import BATCH, yield_every


async def test_a_few_begin_in_each_turn_of_the_loop() -> None:
    begun: list[int] = []

    def begin(number: int) -> None:
        begun.append(number)

    async def begin_all() -> None:
        async for number in yield_every(range(2 * BATCH + 1)):
            begin(number)

    work = asyncio.create_task(begin_all())
    counts: list[int] = []
    while not work.done():
        await asyncio.sleep(0)
        counts.append(len(begun))
    assert counts == [BATCH, 2 * BATCH, 2 * BATCH + 1]
    assert begun == list(range(2 * BATCH + 1))


async def test_nothing_to_do_is_no_turn() -> None:
    assert [each async for each in yield_every([])] == []
