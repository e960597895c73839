"""Retries transactions that the database aborted because of a deadlock."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from msgsvc_core.db.errors import Deadlock

T = TypeVar("T")

#: Attempts; by the third, the conflicting transaction has long committed.
TRIES = 3

log = structlog.get_logger(__name__)


async def retry_on_deadlock(transaction: Callable[[], Awaitable[T]]) -> T:
    """Result of `transaction`, which opens and commits one. It is called up to `TRIES` times, so side
    effects belong after the commit. Raises `Deadlock` after the last attempt."""
    for _ in range(TRIES - 1):
        try:
            return await transaction()
        except Deadlock as error:
            log.warning("transaction_begun_anew", error=str(error))
    return await transaction()
