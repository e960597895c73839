"""Limits in the database, which hold across restarts and processes: the times of the latest hits."""

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_core.limits.contract import WhenAway, Window, check_limit
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.security import digest

#: Milliseconds by which clocks of machines may differ. Hits from further in the future are deleted: otherwise
#: a clock that was set back would block the key until it has caught up.
SKEW_MS = 60_000

#: A hit counts until its window has passed.
RETENTION = RetentionRule("core_limit_hits", "expires_at_ms")


@value_object
class _Hits:
    """The numbers of the first and the newest hit in the window; without hits, `newest` is `first - 1`."""

    first: int
    newest: int

    @property
    def count(self) -> int:
        return self.newest - self.first + 1


class StoredHits:
    """An exact sliding window in the caller's transaction: a rollback frees the slot."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def hit(self, tx: Tx, key: str, limit: int, window_s: int) -> Window:
        """Like `Limiter.hit`. Concurrent hits of the key wait until the transaction ends."""
        check_limit(limit, window_s)
        stored_key = digest(f"{window_s}:{key}")
        await tx.lock(f"limit:{stored_key}")
        now_ms = self._clock.now_ms()
        newest_ms = await self._delete_future(tx, stored_key, now_ms)
        hits = await _inside(tx, stored_key, now_ms - window_s * 1000)
        await tx.execute(
            "DELETE FROM core_limit_hits WHERE key = :key AND number < :first",
            {"key": stored_key, "first": hits.first},
        )
        allowed = hits.count < limit
        if allowed:
            hits = _Hits(hits.first, hits.newest + 1)
            # Never before the previous one, on any machine's clock: times increase with numbers.
            at_ms = max(now_ms, newest_ms)
            await tx.insert(
                "core_limit_hits",
                {
                    "key": stored_key,
                    "number": hits.newest,
                    "at_ms": at_ms,
                    "expires_at_ms": at_ms + window_s * 1000,
                },
            )
        return await _window(tx, stored_key, hits, limit, window_s, now_ms, allowed=allowed)

    async def peek(self, tx: Tx, key: str, limit: int, window_s: int) -> Window:
        """Like `Limiter.peek`."""
        check_limit(limit, window_s)
        stored_key, now_ms = digest(f"{window_s}:{key}"), self._clock.now_ms()
        hits = await _inside(tx, stored_key, now_ms - window_s * 1000)
        allowed = hits.count < limit
        return await _window(tx, stored_key, hits, limit, window_s, now_ms, allowed=allowed)

    async def _delete_future(self, tx: Tx, stored_key: str, now_ms: int) -> int:
        """The time of the newest remaining hit, 0 without any."""
        newest = (
            "SELECT at_ms FROM core_limit_hits WHERE key = :key ORDER BY number DESC LIMIT 1",
            {"key": stored_key},
        )
        newest_ms: int = await tx.fetch_val(*newest) or 0
        if newest_ms <= now_ms + SKEW_MS:
            return newest_ms
        await tx.execute(
            "DELETE FROM core_limit_hits WHERE key = :key AND at_ms > :now_ms",
            {"key": stored_key, "now_ms": now_ms},
        )
        return await tx.fetch_val(*newest) or 0


class DatabaseLimiter:
    """A limiter for services without Redis; see `Limiter`.

    A strict limit (`when_away` is `refuse`) is counted in the database, which every process shares and which
    survives restarts. A limit that bounds load is counted by each process: a commit for each request would
    cost more than what it bounds. Don't call it inside a transaction: on SQLite the two would deadlock;
    `StoredHits` is for that.
    """

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._stored = StoredHits(clock)
        self._memory = MemoryLimiter(clock)

    async def hit(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        if when_away == "count_locally":
            return await self._memory.hit(key, limit, window_s)
        check_limit(limit, window_s)
        async with self._db.transaction(inline=True) as tx:
            return await self._stored.hit(tx, key, limit, window_s)

    async def peek(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        if when_away == "count_locally":
            return await self._memory.peek(key, limit, window_s)
        async with self._db.read() as tx:
            return await self._stored.peek(tx, key, limit, window_s)

    async def open(self) -> None:
        """Does nothing: the database is opened by its owner."""

    async def close(self) -> None:
        """Does nothing; the counters are kept."""

    async def check(self) -> None:
        """Always healthy: an unavailable database is reported elsewhere."""


async def _inside(tx: Tx, stored_key: str, since_ms: int) -> _Hits:
    """The hits after that time."""
    row = await tx.fetch_one(
        "SELECT (SELECT number FROM core_limit_hits WHERE key = :key AND at_ms > :since_ms"
        " ORDER BY number LIMIT 1) AS first,"
        " (SELECT number FROM core_limit_hits WHERE key = :key ORDER BY number DESC LIMIT 1) AS newest",
        {"key": stored_key, "since_ms": since_ms},
    )
    assert row is not None
    newest = row["newest"] or 0
    return _Hits(newest + 1 if row["first"] is None else row["first"], newest)


async def _window(
    tx: Tx, stored_key: str, hits: _Hits, limit: int, window_s: int, now_ms: int, *, allowed: bool
) -> Window:
    since_ms = now_ms
    if hits.count:
        # If the limit was lowered, the next slot is freed with the hit that brings their number below it.
        since_ms = await tx.fetch_val(
            "SELECT at_ms FROM core_limit_hits WHERE key = :key AND number = :number",
            {"key": stored_key, "number": hits.first + max(0, hits.count - limit)},
        )
    return Window.at(
        now_ms,
        allowed=allowed,
        limit=limit,
        used=hits.count,
        frees_at_ms=since_ms + window_s * 1000,
    )
