"""Work that is begun a little at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

#: Items of one turn of the event loop. Of a hundred calls that begin together all answers come together: the
#: database's answer waits behind them, and while its next one is awaited no call is left to be made.
A_TURN = 5


async def spread(items: Iterable[T]) -> AsyncIterator[T]:
    """`items`, a few of them in each turn of the event loop."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % A_TURN == 0:
            await asyncio.sleep(0)
