"""Whose turn it is in a chat, where several batches of a channel's lane are under way at once."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager


class Turns:
    """Lets who shares a key go one after another, in the order in which they came.

    A lane of a channel is drained by one runner, so knowing of this process is enough.
    """

    def __init__(self) -> None:
        #: Who has come and not ended yet, by key.
        self._under_way: defaultdict[Hashable, set[asyncio.Future[None]]] = defaultdict(set)

    @asynccontextmanager
    async def take(self, keys: Iterable[Hashable]) -> AsyncIterator[None]:
        """The block begins when all who came earlier with one of `keys` have left theirs."""
        own = set(keys)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        earlier = {future for key in own for future in self._under_way.get(key, ())}
        for key in own:
            self._under_way[key].add(ended)
        try:
            if earlier:
                await asyncio.wait(earlier)
            yield
        finally:
            for key in own:
                self._under_way[key].discard(ended)
                if not self._under_way[key]:
                    del self._under_way[key]
            ended.set_result(None)
