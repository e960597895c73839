"""Waits for background work without fixed sleeps."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import MINUTE_MS, Clock
from msgsvc_core.service import Service
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.runners import in_flight

T = TypeVar("T")

#: Timeout in seconds for background work on a busy machine, against tests that hang.
PATIENCE_S = 60.0


async def settled(service: Service, *, timeout_s: float = PATIENCE_S) -> None:
    """Returns when no job is due or running, and no handler here is still working after its commit. Jobs
    that wait for a stopped or rate-limited bot are not due. Raises `TimeoutError`."""

    async def idle() -> bool:
        return await is_idle(service.db, service.clock, partial(in_flight, service))

    await until(idle, timeout_s=timeout_s)


async def is_idle(db: Database, clock: Clock, in_flight: Callable[[], int]) -> bool:
    """Whether no job is due or running, nor one of `in_flight`, which counts handlers that still work."""
    # Counted before and after: what a handler enqueues at its end is found by the query between the two.
    return not in_flight() and not await has_work(db, clock) and not in_flight()


async def has_work(db: Database, clock: Clock) -> bool:
    """Whether a job is running, or due and not held up by its bot."""
    now_ms = clock.now_ms()
    async with db.read() as tx:
        first_ms = await tx.fetch_val(
            "SELECT MIN(CASE state WHEN 'running' THEN 0 ELSE run_at_ms END) FROM core_jobs"
            " WHERE state = 'running' OR (state = 'ready' AND run_at_ms <= :soon_ms AND NOT EXISTS"
            " (SELECT 1 FROM core_channel_states AS s WHERE core_jobs.lane = 'channel:' || s.channel"
            " AND (s.status = 'stopped' OR s.paused_until_ms > :now_ms"
            " OR (s.outage_since_ms IS NOT NULL AND s.outage_trial = 0))))",
            {"now_ms": now_ms, "soon_ms": now_ms + MINUTE_MS},
        )
    # By the time after the query: what was enqueued between the two is due as well.
    return first_ms is not None and first_ms <= clock.now_ms()


async def until(
    found: Callable[[], Awaitable[T | None]],
    *,
    timeout_s: float = PATIENCE_S,
    interval_s: float = 0.005,
) -> T:
    """The result of `found` once it is true. Raises `TimeoutError`, later on a slow machine."""
    async with asyncio.timeout(patient(timeout_s)):
        while True:
            if answer := await found():
                return answer
            await asyncio.sleep(interval_s)  # polled: the condition depends on the database
