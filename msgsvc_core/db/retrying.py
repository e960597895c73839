"""Transactions that the database gave up for others, begun anew."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from msgsvc_core.db.errors import Deadlock

T = TypeVar("T")

#: Times that a transaction is begun: by the third, who was in its way has long been committed.
TRIES = 3

log = structlog.get_logger(__name__)


async def retry_on_deadlock(transaction: Callable[[], Awaitable[T]]) -> T:
    """What `transaction` returns, which begins one and commits it. It is called up to `TRIES` times, so
    what it changes besides, it changes after the commit. Raises `Deadlock` after the last time."""
    for _ in range(TRIES - 1):
        try:
            return await transaction()
        except Deadlock as error:
            log.warning("transaction_begun_anew", error=str(error))
    return await transaction()
