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

    #: Maximum number of concurrent commits.
    max_concurrent: int

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        """What became of each unit. Raises what befell all of them, of which nothing is written. Where
        others write, it waits for them until the loop's time `until_s`."""
        ...


class _Waiting:
    """A write batch and its caller's future; the commit must start before the loop time `until_s`."""

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
        self._running: set[asyncio.Task[None]] = set()
        self._is_starting = False

    async def write(self, unit: WriteBatch, until_s: float) -> None:
        """Commits `unit`; waits for the write lock until the loop time `until_s`.

        Raises `UniqueViolation`, `ConstraintViolation`, `LockTimeout` or `DatabaseUnavailable`.

        Cancelling the caller withdraws the batch until its commit starts; after that it is written
        regardless.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(unit, loop.create_future(), until_s)
        self._queue.append(waiting)
        if not self._is_starting:
            self._is_starting = True
            # Deferred, so that other writes of this turn of the loop can join; with an empty context, so
            # that the logs of all do not carry this caller's request id.
            loop.call_soon(self._start, context=Context())
        await waiting.committed

    async def close(self) -> None:
        """Returns when everything handed over so far is committed or refused."""
        while self._queue or self._running:
            self._start()
            # Empty if all callers were cancelled.
            if self._running:
                await asyncio.wait(set(self._running))

    def _start(self) -> None:
        self._is_starting = False
        while self._queue and len(self._running) < self._batches.max_concurrent:
            batch = self._next_batch()
            if batch:
                task = asyncio.create_task(self._commit(batch))
                self._running.add(task)
                task.add_done_callback(self._on_done)

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._queue and len(batch) < UNITS_PER_BATCH:
            waiting = self._queue.popleft()
            if not waiting.committed.cancelled():
                batch.append(waiting)
        return batch

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start()

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        try:
            # Later ones fail with the first: the file has been locked for long.
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
