"""The group-commit writer: units that arrive together are committed together.

A commit costs the same for one row as for hundreds. So while one group is being committed the next one is
collected, and under load a commit contains the writes of dozens of requests; without load, a unit is
committed at once. See docs/decisions/0012-group-commit.md.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context
from typing import Protocol

from msgsvc_core.db.write_batch import WriteBatch, call_all

#: Maximum units per commit. Beyond some hundreds a commit gains nothing, and its first unit waits longer.
UNITS_PER_BATCH = 500

#: Outcome of a unit: None if it is committed.
Outcome = Exception | None


class Batches(Protocol):
    """Commits units on one kind of database."""

    #: Maximum number of concurrent commits.
    max_concurrent: int

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        """The outcome of each unit. Raises an error that affects all of them; then nothing is written. Waits
        for the write lock until the loop time `until_s`."""
        ...


class _Waiting:
    """A write batch and its caller's future; the commit must start before the loop time `until_s`."""

    __slots__ = ("committed", "unit", "until_s")

    def __init__(self, unit: WriteBatch, committed: asyncio.Future[None], until_s: float) -> None:
        self.unit = unit
        self.committed = committed
        self.until_s = until_s


class GroupWriter:
    """Coalesces concurrent `write` calls into one commit; each returns once its unit is committed."""

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
            # Deferred, so that other writes of this iteration of the event loop can join; with an empty
            # context, so that this caller's request id doesn't appear in the logs of all.
            loop.call_soon(self._start, context=Context())
        await waiting.committed

    async def close(self) -> None:
        """Returns when all units passed so far are committed or have failed."""
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
            # The others fail with the first deadline: the file has been locked for long.
            until_s = min(waiting.until_s for waiting in batch)
            outcomes = await self._batches.commit([waiting.unit for waiting in batch], until_s)
        except asyncio.CancelledError:
            # The event loop is stopping; it is unknown whether the commit was made.
            for waiting in batch:
                waiting.committed.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - passed to every caller of the group
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
