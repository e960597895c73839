"""Transactions that are made together: many callers come at once, and share one commit."""

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
from msgsvc_core.kernel.values import value_object

R = TypeVar("R")
V = TypeVar("V")

#: Requests of one transaction.
REQUESTS_PER_BATCH = 500

#: Seconds that a batch waits for rows that other transactions hold, before each goes its own way:
#: one row that is held for long must not hold up those who want others.
BATCH_WAIT_S = 0.25

#: Takes requests of several callers; answers each, in their order, with a value or an error.
Work = Callable[[Tx, Sequence[R]], Awaitable[Sequence[V | Exception]]]


@value_object
class _Asked(Generic[R, V]):
    """A request and the caller who waits for its answer; it waits for others until the loop's time
    `until_s`."""

    request: R
    done: asyncio.Future[V]
    until_s: float


class TransactionBatcher(Generic[R, V]):
    """`do` as if alone; in truth the requests of all who wait go into one transaction.

    For changes that are one conditional statement for any number of rows, such as exchanging a code:
    a commit costs the same for one as for hundreds. An error that the work answers with is its
    caller's alone, and undoes nothing; one that it raises undoes the batch, and each is done again in
    a transaction of its own. `few` and `on_disk` are those of `Database.transaction`;
    `wait_s` is how long a batch waits for locks, None for work that waits for none.
    """

    def __init__(
        self,
        db: Database,
        work: Work[R, V],
        *,
        few: bool = False,
        on_disk: bool = True,
        wait_s: float | None = BATCH_WAIT_S,
    ) -> None:
        self._db = db
        self._work = work
        self._few = few
        self._on_disk = on_disk
        self._wait_s = wait_s
        self._waiting: deque[_Asked[R, V]] = deque()
        #: While one batch waits for PostgreSQL the other is read or written here; SQLite has one writer.
        self._at_once = 1 if db.dialect == "sqlite" else 2
        self._under_way: set[asyncio.Task[None]] = set()
        self._alone: set[asyncio.Task[None]] = set()

    async def do(self, request: R, tx: Tx | None = None) -> V:
        """What the work answers, after the commit. Raises what it raises, `DatabaseUnavailable`.

        With `tx` it is done there, alone. A caller who is cancelled before the transaction begins
        takes the request along; later, it is done all the same.
        """
        if tx is not None:
            return _value((await self._work(tx, [request]))[0])
        loop = asyncio.get_running_loop()
        done: asyncio.Future[V] = loop.create_future()
        self._waiting.append(_Asked(request, done, self._db.write_deadline()))
        if len(self._under_way) < self._at_once:
            # Not the first caller's context: its request id would stand in the logs of all.
            task = loop.create_task(self._do_all(), context=Context())
            self._under_way.add(task)
        return await done

    async def _do_all(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            while self._waiting:
                await self._do(self._take())
        finally:
            # Here and not when the task is done: who comes in between would find it still at work.
            self._under_way.discard(task)

    def _take(self) -> list[_Asked[R, V]]:
        batch: list[_Asked[R, V]] = []
        while self._waiting and len(batch) < REQUESTS_PER_BATCH:
            asked = self._waiting.popleft()
            if not asked.done.cancelled():
                batch.append(asked)
        return batch

    async def _do(self, batch: Sequence[_Asked[R, V]]) -> None:
        if not batch:
            return
        until_s = min(asked.until_s for asked in batch)
        try:
            outcomes = await self._in_transactions([asked.request for asked in batch], until_s)
        except asyncio.CancelledError:
            # The loop is ending; whether the commit was made is not known.
            for asked in batch:
                asked.done.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - raised to whoever asked
            is_away = isinstance(error, DatabaseUnavailable) and not isinstance(error, Deadlock)
            if len(batch) > 1 and not is_away:
                # One of them is at fault, or waits for somebody; the others are not, and don't.
                for one in batch:
                    task = asyncio.create_task(self._do([one]))
                    self._alone.add(task)
                    task.add_done_callback(self._alone.discard)
                return
            outcomes = [error] * len(batch)
        for asked, outcome in zip(batch, outcomes, strict=True):
            if asked.done.done():
                continue
            if isinstance(outcome, Exception):
                asked.done.set_exception(outcome)
            else:
                asked.done.set_result(outcome)

    async def _in_transactions(
        self, requests: Sequence[R], until_s: float
    ) -> Sequence[V | Exception]:
        """What becomes of the requests; one by itself is begun anew after a deadlock."""
        if len(requests) > 1:
            return await self._in_transaction(requests, until_s)
        return await retry_on_deadlock(partial(self._in_transaction, requests, until_s))

    async def _in_transaction(
        self, requests: Sequence[R], until_s: float
    ) -> Sequence[V | Exception]:
        async with self._db.transaction(
            few=self._few, on_disk=self._on_disk, until_s=until_s
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
