"""Simulated faults: failures, delays and rate limits."""

import asyncio
from collections.abc import Awaitable, Callable

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.db import Database, Row, Tx
from msgsvc_sandbox import store
from msgsvc_sandbox.models import Fault
from msgsvc_sandbox.wakeups import Wakeups

#: Errors that the messenger can be configured to return, with the reasons of decision 0075.
REFUSALS = {
    Reason.USER_BLOCKED_BOT: "the user has blocked the bot",
    Reason.CHAT_NOT_FOUND: "the chat is missing or the account is deleted",
    Reason.BOT_BANNED: "the bot is banned by the platform",
    Reason.INVALID_MESSAGE: "the message's media or markup is invalid",
    Reason.RATE_LIMITED: "too many requests (429)",
    Reason.PLATFORM_UNAVAILABLE: "the platform is unavailable (503)",
    Reason.UNKNOWN: "something that has no name",
}

Sleep = Callable[[float], Awaitable[None]]


class Faults:
    """Reads and sets the faults, one set per channel, and applies them to calls."""

    def __init__(self, db: Database, wakeups: Wakeups, sleep: Sleep = asyncio.sleep) -> None:
        self._db = db
        self._wakeups = wakeups
        self._sleep = sleep

    async def get(self, channel: str) -> Fault:
        """How the channel misbehaves; a default `Fault` is one in good health."""
        async with self._db.read() as tx:
            return await _read(tx, channel)

    async def set(self, channel: str, fault: Fault) -> None:
        """Replaces the channel's switches, and notifies open pages."""
        async with self._db.transaction() as tx:
            await _write(tx, channel, fault)
            await store.raise_every_revision(tx)
            tx.on_commit(self._wakeups.ring_all)

    async def suffer(self, channel: str) -> None:
        """Takes as long as the switches say, and raises `DeliveryError` if they say so."""
        fault = await self._pop(channel)
        if fault.delay_s:
            await self._sleep(fault.delay_s)
        if fault.reason is not None:
            reason = Reason(fault.reason)
            retry_after_s = fault.retry_after_s if reason is Reason.RATE_LIMITED else None
            raise DeliveryError(reason, REFUSALS[reason], retry_after_s)

    async def _pop(self, channel: str) -> Fault:
        fault = await self.get(channel)
        if fault.remaining is None:
            return fault
        async with self._db.transaction() as tx:
            left = await tx.fetch_val(
                "UPDATE sandbox_faults SET remaining = remaining - 1"
                " WHERE channel = :channel AND remaining > 0 RETURNING remaining",
                {"channel": channel},
            )
            if left == 0:
                await _write(tx, channel, Fault())
                await store.raise_every_revision(tx)
                tx.on_commit(self._wakeups.ring_all)
        # None: another call took the last failure between our look and our count.
        return Fault() if left is None else fault


async def _read(tx: Tx, channel: str) -> Fault:
    row = await tx.fetch_one(
        "SELECT * FROM sandbox_faults WHERE channel = :channel", {"channel": channel}
    )
    return _fault(row) if row else Fault()


async def _write(tx: Tx, channel: str, fault: Fault) -> None:
    await tx.execute(
        "INSERT INTO sandbox_faults (channel, reason, retry_after_s, delay_ms, remaining)"
        " VALUES (:channel, :reason, :retry_after_s, :delay_ms, :remaining)"
        " ON CONFLICT (channel) DO UPDATE SET reason = excluded.reason,"
        " retry_after_s = excluded.retry_after_s, delay_ms = excluded.delay_ms,"
        " remaining = excluded.remaining",
        {
            "channel": channel,
            "reason": fault.reason,
            "retry_after_s": fault.retry_after_s,
            "delay_ms": round(fault.delay_s * 1000),
            "remaining": fault.remaining,
        },
    )


def _fault(row: Row) -> Fault:
    return Fault(
        reason=row["reason"],
        retry_after_s=row["retry_after_s"],
        delay_s=row["delay_ms"] / 1000,
        remaining=row["remaining"],
    )
