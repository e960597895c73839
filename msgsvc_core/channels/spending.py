"""What channels spend on their platforms, within a budget of a day that all processes share."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.kernel.clock import Clock

DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Budget:
    """What a channel may spend a day, which begins at midnight UTC.

    Amounts are whole numbers of the smallest part that is paid: with `parts` 10, tenths of the `unit`, which
    is e.g. "Stars".
    """

    most: int
    unit: str
    parts: int = 1

    def in_units(self, amount: int) -> float:
        """An amount in whole units, for people."""
        return amount / self.parts


class ChannelSpending:
    """What a channel takes from its budget, before the call that costs it."""

    def __init__(self, *, clock: Clock, db: Database) -> None:
        self._clock = clock
        self._db = db

    def day(self) -> int:
        """Days since 1970, in UTC."""
        return day_of(self._clock.now_ms())

    async def take(self, channel: str, amount: int, budget: Budget) -> bool:
        """Takes `amount` of today's budget of the channel with that key; False if less is left.

        Raises `DatabaseUnavailable`.
        """
        if amount > budget.most:
            return False
        async with self._db.transaction() as tx:
            return await _take(tx, channel, self.day(), amount, budget.most)


def day_of(now_ms: int) -> int:
    """The day of a moment, in days since 1970 in UTC."""
    return now_ms // DAY_MS


async def spent(tx: Tx, channels: Sequence[str], day: int) -> dict[str, int]:
    """What channels have taken on a day, by key; those that took nothing are missing."""
    rows = await tx.fetch_all(
        "SELECT channel, spent FROM core_channel_spending WHERE day = :day"
        f" AND {in_array('channel', 'channels', tx.dialect)}",
        {"channels": array_param(channels, tx.dialect), "day": day},
    )
    return {row["channel"]: row["spent"] for row in rows}


async def _take(tx: Tx, channel: str, day: int, amount: int, limit: int) -> bool:
    # A process whose clock is behind spends nothing of the day before.
    return bool(
        await tx.execute(
            "INSERT INTO core_channel_spending (channel, day, spent)"
            " VALUES (:channel, :day, :amount) ON CONFLICT (channel) DO UPDATE SET day = :day,"
            " spent = :amount + CASE WHEN core_channel_spending.day = :day"
            " THEN core_channel_spending.spent ELSE 0 END"
            " WHERE core_channel_spending.day < :day OR (core_channel_spending.day = :day"
            " AND core_channel_spending.spent + :amount <= :most)",
            {"channel": channel, "day": day, "amount": amount, "most": limit},
        )
    )


async def delete(tx: Tx, channel: str) -> None:
    """The channel was removed."""
    await tx.execute(
        "DELETE FROM core_channel_spending WHERE channel = :channel", {"channel": channel}
    )
