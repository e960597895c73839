"""The order in which the parts of a lane's batches start, if a batch has jobs of several names."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgsvc_core.jobs.contract import Job

#: Of jobs with the same lane, name and priority, those claimed first start first.
_Kind = tuple[str, str, int]


class Start:
    """A place in the order; ended when its work has started, or never will."""

    def __init__(self, kinds: set[_Kind], earlier: list[asyncio.Future[None]]) -> None:
        self.kinds, self.earlier = kinds, earlier
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Starts:
    """Starts jobs of one kind in the order in which they were claimed.

    A batch runs its names one after the other, so that a message and a notice after it arrive in that order.
    During the first, the next batch may have jobs that must follow its second.
    """

    def __init__(self) -> None:
        self._waiting: list[Start] = []

    @asynccontextmanager
    async def places(self, parts: Sequence[Sequence[Job]]) -> AsyncIterator[list[Start]]:
        """A place for each part, after all earlier ones."""
        places = []
        for jobs in parts:
            kinds = {(job.lane, job.name, job.priority) for job in jobs}
            earlier = [other.started for other in self._waiting if other.kinds & kinds]
            places.append(Start(kinds, earlier))
        # Parts of one batch don't wait for one another: they run in sequence anyway.
        self._waiting += places
        try:
            yield places
        finally:
            for place in places:
                self._finish(place)

    async def reach(self, place: Start) -> None:
        """Waits until the work at `place` may start, and marks it as started."""
        if place.earlier:
            await asyncio.wait(place.earlier)
        self._finish(place)

    def _finish(self, place: Start) -> None:
        if not place.started.done():
            place.started.set_result(None)
            self._waiting.remove(place)
