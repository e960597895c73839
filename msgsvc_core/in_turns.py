"""Work that is begun a little at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

#: Calls that begin in one turn of the event loop. Of hundred that begin together the answers come together
#: too, and whoever waits for the database waits behind all of them, and the database then for him.
A_TURN = 5


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """`items`, a few of them in each turn of the event loop."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % A_TURN == 0:
            await asyncio.sleep(0)
