"""Coalesces concurrent requests into one transaction."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Generic, TypeVar

from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import DatabaseUnavailable, Deadlock
from msgsvc_core.db.retrying import retry_on_deadlock
from msgsvc_core.db.tx import Tx
from msgsvc_core.kernel.tracing import Span, current_span, within
from msgsvc_core.kernel.values import value_object

R = TypeVar("R")
V = TypeVar("V")

#: Maximum requests per transaction.
REQUESTS_PER_BATCH = 500

#: Seconds for which a batch waits for row locks before its requests are retried one by one: one locked row
#: must not delay requests for others.
BATCH_WAIT_S = 0.25

#: Takes requests of several callers; returns a value or an error for each, in their order.
Work = Callable[[Tx, Sequence[R]], Awaitable[Sequence[V | Exception]]]


@value_object
class _Submitted(Generic[R, V]):
    """A request, its caller's future and span; it waits for the write lock until the loop time `until_s`."""

    request: R
    done: asyncio.Future[V]
    until_s: float
    span: Span | None


class TransactionBatcher(Generic[R, V]):
    """Coalesces concurrent `submit` calls into one transaction; each caller gets its own result.

    For changes that are one conditional statement for any number of rows, such as exchanging a code: a
    commit costs the same for one row as for hundreds. An error that the work returns goes to its caller
    only and undoes nothing; an error that it raises undoes the batch, and each request is retried in its
    own transaction. `inline`, `durable` and `background` are those of `Database.transaction`; `wait_s` is
    how long a batch waits for locks, None for work that takes none.
    """

    def __init__(
        self,
        db: Database,
        work: Work[R, V],
        *,
        inline: bool = False,
        durable: bool = True,
        background: bool = False,
        wait_s: float | None = BATCH_WAIT_S,
    ) -> None:
        self._db = db
        self._work = work
        self._inline = inline
        self._durable = durable
        self._background = background
        self._wait_s = wait_s
        self._waiting: deque[_Submitted[R, V]] = deque()
        #: While one batch waits for PostgreSQL the other is read or written here; SQLite has one writer.
        self._max_concurrent = 1 if db.dialect == "sqlite" else 2
        self._running: set[asyncio.Task[None]] = set()
        self._alone: set[asyncio.Task[None]] = set()

    async def submit(self, request: R, tx: Tx | None = None) -> V:
        """Result of the work, after the commit. Raises what the work raises, and `DatabaseUnavailable`.

        With `tx` the request runs there, alone. Cancelling the caller withdraws the request until the
        transaction starts; after that it runs regardless.
        """
        if tx is not None:
            return _value((await self._work(tx, [request]))[0])
        loop = asyncio.get_running_loop()
        done: asyncio.Future[V] = loop.create_future()
        self._waiting.append(_Submitted(request, done, self._db.write_deadline(), current_span()))
        if len(self._running) < self._max_concurrent:
            # Not the first caller's context: its request id would appear in the logs of all.
            task = loop.create_task(self._run(), context=Context())
            self._running.add(task)
        return await done

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while self._waiting:
                await self._run_batch(self._next_batch())
        finally:
            # Here rather than in a done callback: a request submitted in between would see a running task.
            self._running.discard(task)

    def _next_batch(self) -> list[_Submitted[R, V]]:
        batch: list[_Submitted[R, V]] = []
        while self._waiting and len(batch) < REQUESTS_PER_BATCH:
            pending = self._waiting.popleft()
            if not pending.done.cancelled():
                batch.append(pending)
        return batch

    async def _run_batch(self, batch: Sequence[_Submitted[R, V]]) -> None:
        if not batch:
            return
        until_s = min(pending.until_s for pending in batch)
        try:
            # A transaction of several belongs to the trace of none.
            with within(batch[0].span if len(batch) == 1 else None):
                outcomes = await self._in_transactions(
                    [pending.request for pending in batch], until_s
                )
        except asyncio.CancelledError:
            # The event loop is stopping; it is unknown whether the commit was made.
            for pending in batch:
                pending.done.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - re-raised in each caller
            is_away = isinstance(error, DatabaseUnavailable) and not isinstance(error, Deadlock)
            if len(batch) > 1 and not is_away:
                # One of them fails or waits for a lock; the others are independent of it.
                for one in batch:
                    task = asyncio.create_task(self._run_batch([one]))
                    self._alone.add(task)
                    task.add_done_callback(self._alone.discard)
                return
            outcomes = [error] * len(batch)
        for pending, outcome in zip(batch, outcomes, strict=True):
            if pending.done.done():
                continue
            if isinstance(outcome, Exception):
                pending.done.set_exception(outcome)
            else:
                pending.done.set_result(outcome)

    async def _in_transactions(
        self, requests: Sequence[R], until_s: float
    ) -> Sequence[V | Exception]:
        """Outcomes of the requests; a single one is retried after a deadlock."""
        if len(requests) > 1:
            return await self._in_transaction(requests, until_s)
        return await retry_on_deadlock(partial(self._in_transaction, requests, until_s))

    async def _in_transaction(
        self, requests: Sequence[R], until_s: float
    ) -> Sequence[V | Exception]:
        async with self._db.transaction(
            inline=self._inline,
            durable=self._durable,
            background=self._background,
            until_s=until_s,
        ) as tx:
            if len(requests) > 1 and self._wait_s is not None:
                await tx.wait_for_locks(self._wait_s)
            outcomes = await self._work(tx, requests)
            if len(outcomes) != len(requests):
                raise RuntimeError(f"{len(outcomes)} outcomes of {len(requests)} requests")
            return outcomes


def _value(outcome: V | Exception) -> V:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
