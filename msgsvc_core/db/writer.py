"""The group-commit writer: units that arrive together are committed together.

A commit costs the same for one row as for hundreds. So while one batch is being committed the next
one gathers, and under load a commit carries what dozens of requests wrote; alone, a unit waits for
nobody. See docs/decisions/0012-group-commit.md.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from typing import Protocol

from msgsvc_core.db.write_batch import WriteBatch, call_all

#: Units of one batch. Beyond some hundreds a batch gains nothing, and its first unit waits longer.
UNITS_PER_BATCH = 500

#: What became of a unit: None if it is committed.
Outcome = Exception | None


class Batches(Protocol):
    """Commits a batch on one kind of database."""

    #: Batches that may be under way at once.
    at_once: int

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        """What became of each unit. Raises what befell all of them, of which nothing is written. Where
        others write, it waits for them until the loop's time `until_s`."""
        ...


class _Waiting:
    """A unit and the caller who waits for its commit, which is to begin by the loop's time `until_s`."""

    __slots__ = ("committed", "unit", "until_s")

    def __init__(self, unit: WriteBatch, committed: asyncio.Future[None], until_s: float) -> None:
        self.unit = unit
        self.committed = committed
        self.until_s = until_s


class GroupWriter:
    """`write` returns when the unit is committed, in whatever company."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._queue: deque[_Waiting] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._is_starting = False

    async def write(self, unit: WriteBatch, until_s: float) -> None:
        """Commits `unit`, which waits for others until the loop's time `until_s`.

        Raises `Taken`, `Refused`, `LockTimeout` or `DatabaseUnavailable`.

        A caller who is cancelled before the batch begins takes the unit out of it; later, the unit
        is written all the same.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(unit, loop.create_future(), until_s)
        self._queue.append(waiting)
        if not self._is_starting:
            self._is_starting = True
            # Not at once: what else this turn of the loop brings shall join. And not in this caller's
            # context, whose request id would stand in the logs of all.
            loop.call_soon(self._start, context=Context())
        await waiting.committed

    async def close(self) -> None:
        """Returns when everything handed over so far is committed or refused."""
        while self._queue or self._under_way:
            self._start()
            # None is, where all who waited were cancelled.
            if self._under_way:
                await asyncio.wait(set(self._under_way))

    def _start(self) -> None:
        self._is_starting = False
        while self._queue and len(self._under_way) < self._batches.at_once:
            batch = self._take()
            if batch:
                task = asyncio.create_task(self._commit(batch))
                self._under_way.add(task)
                task.add_done_callback(self._ended)

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._queue and len(batch) < UNITS_PER_BATCH:
            waiting = self._queue.popleft()
            if not waiting.committed.cancelled():
                batch.append(waiting)
        return batch

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._start()

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        try:
            # Who came later is refused with the first: by then somebody has kept the file for long.
            until_s = min(waiting.until_s for waiting in batch)
            outcomes = await self._batches.commit([waiting.unit for waiting in batch], until_s)
        except asyncio.CancelledError:
            # The loop is ending; whether the commit was made is not known.
            for waiting in batch:
                waiting.committed.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - handed to every caller of the batch
            outcomes = [error] * len(batch)
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if outcome is None:
                call_all(waiting.unit.after_commit)
            if waiting.committed.done():
                continue
            if outcome is None:
                waiting.committed.set_result(None)
            else:
                waiting.committed.set_exception(outcome)
