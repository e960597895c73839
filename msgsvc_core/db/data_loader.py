"""Coalesces concurrent lookups by key into one query."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import DatabaseUnavailable
from msgsvc_core.db.tx import Tx

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Maximum keys per query.
KEYS_PER_QUERY = 500

#: Takes the distinct keys; returns the values that exist, by key.
Load = Callable[[Tx, Sequence[K]], Awaitable[Mapping[K, V]]]


class DataLoader(Generic[K, V]):
    """Coalesces concurrent `get` calls into one query; each caller gets its own result.

    The query starts after the last of these calls, so every caller sees what was committed before its call.
    Nothing is cached.
    """

    def __init__(self, db: Database, load: Load[K, V]) -> None:
        self._db = db
        self._load = load
        self._waiting: dict[K, list[asyncio.Future[V | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def get(self, key: K, tx: Tx | None = None) -> V | None:
        """The value, or None if there is none. Raises what the query raises.

        With `tx` it is queried there, separately: this sees the transaction's own writes.
        """
        if tx is not None:
            return (await self._load(tx, [key])).get(key)
        loop = asyncio.get_running_loop()
        found: asyncio.Future[V | None] = loop.create_future()
        self._waiting.setdefault(key, []).append(found)
        if self._task is None:
            # Not the first caller's context: its request id would appear in the logs of all.
            self._task = loop.create_task(self._run(), context=Context())
        return await found

    async def get_many(self, keys: Collection[K], tx: Tx) -> Mapping[K, V]:
        """The values there are, by one query in `tx`."""
        return await self._load(tx, [*keys]) if keys else {}

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._load_next()
        finally:
            self._task = None

    async def _load_next(self) -> None:
        keys = list(self._waiting)[:KEYS_PER_QUERY]
        await self._load_keys({key: self._waiting.pop(key) for key in keys})

    async def _load_keys(self, futures: Mapping[K, Sequence[asyncio.Future[V | None]]]) -> None:
        try:
            values = await self._db.read_inline(lambda tx: self._load(tx, list(futures)))
        except asyncio.CancelledError:
            for found in _open(futures):
                found.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - re-raised in each caller
            if len(futures) > 1 and not isinstance(error, DatabaseUnavailable):
                # One of the keys is invalid, e.g. contains a NUL; the others are not.
                for key, waiting in futures.items():
                    await self._load_keys({key: waiting})
                return
            for found in _open(futures):
                found.set_exception(error)
            return
        for key, waiting in futures.items():
            for found in waiting:
                if not found.done():
                    found.set_result(values.get(key))


def _open(
    futures: Mapping[K, Sequence[asyncio.Future[V | None]]],
) -> list[asyncio.Future[V | None]]:
    return [found for waiting in futures.values() for found in waiting if not found.done()]
