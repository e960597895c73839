"""A limiter for many processes: the times of the latest hits, in Redis."""

import asyncio
import time
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Unavailable
from msgsvc_core.limits.contract import WhenAway, Window, check_limit
from msgsvc_core.limits.memory import MemoryLimiter

#: Timeout of a call to Redis in seconds, including the connection. It needs well under a millisecond.
TIMEOUT_S = 0.25

#: Seconds between attempts to reach an unavailable Redis; hits between them don't wait for it.
RETRY_S = 1.0

#: Seconds between two log lines about the same outage.
LOG_EVERY_S = 60.0

#: Calls in flight per process. More would only queue in Redis, which runs one script at a time.
MAX_CALLS = 32

#: Milliseconds for which a key outlives its window. Redis expires keys by its own clock; the margin keeps
#: them for an injected clock that does not advance.
EXPIRY_MARGIN_MS = 60_000

# The members of a sorted set are hits, their scores the milliseconds at which they were made. Hits of one
# millisecond expire together, so their number makes the next member unique.
HIT_OR_PEEK = """
local limit, window_ms, take = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == 'hit'
local now
if ARGV[4] == '' then
  local parts = redis.call('TIME')
  now = tonumber(parts[1]) * 1000 + math.floor(tonumber(parts[2]) / 1000)
else
  now = tonumber(ARGV[4])
end
local now_text = string.format('%.0f', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window_ms))
-- A clock that was set back would keep the key shut until it has caught up.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now_text, '+inf')
local used = redis.call('ZCARD', KEYS[1])
local allowed = used < limit
if allowed and take then
  local twins = redis.call('ZCOUNT', KEYS[1], now_text, now_text)
  redis.call('ZADD', KEYS[1], now_text, now_text .. '-' .. twins)
  redis.call('PEXPIRE', KEYS[1], window_ms + tonumber(ARGV[5]))
  used = used + 1
end
-- Of a lowered limit the next slot frees with the hit that brings their number below it.
local rank = math.max(0, used - limit)
local since = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')[2]
return {allowed and 1 or 0, used, (tonumber(since) or now) + window_ms, now}
"""

log = structlog.get_logger(__name__)


class RedisUnavailable(Exception):
    """Redis did not respond in time, or responded with an error."""


def redis_client(url: str, timeout_s: float = TIMEOUT_S) -> Redis:
    """A client that connects on first use, and never retries a call.

    A hit whose response was lost may have been counted: a retry would take a second slot.
    """
    return Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
    )


class RedisLimiter:
    """An exact sliding window over every process that uses the same Redis; see `Limiter`.

    The time is Redis' own, because the clocks of machines may differ by more than a window. With
    `server_time=False` it is `clock`'s, for one machine or a test. Hits counted locally, while Redis is
    unavailable, use `clock` in either case.

    `client` becomes the limiter's, which closes it. A call that takes longer than `timeout_s` counts as an
    outage. `monotonic` returns seconds for the pauses between attempts.
    """

    def __init__(
        self,
        client: Redis,
        clock: Clock,
        *,
        prefix: str = "msgsvc:limits:",
        server_time: bool = True,
        timeout_s: float = TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._clock = clock
        self._prefix = prefix
        self._server_time = server_time
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._script = client.register_script(HIT_OR_PEEK)
        self._local = MemoryLimiter(clock)
        self._calls = asyncio.Semaphore(MAX_CALLS)
        #: When Redis is tried again; None while it is available.
        self._retry_at: float | None = None
        self._logged_at: float | None = None

    async def open(self) -> None:
        """Connects. An outage of Redis is logged, and does not prevent the start."""
        await self.check()

    async def close(self) -> None:
        """Closes the connections."""
        # They belong to a loop that may end now; a restarted service may use another.
        self._calls = asyncio.Semaphore(MAX_CALLS)
        await self._client.aclose()

    async def check(self) -> str | None:
        """What is wrong with Redis; None if it responds. Calls it even between two attempts."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._client.ping()
        except (RedisError, OSError) as error:
            self._failed(error)
            return self._reason(error)
        self._succeeded()
        return None

    async def hit(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        check_limit(limit, window_s)
        try:
            return await self._call("hit", key, limit, window_s)
        except RedisUnavailable:
            _refuse_if(when_away)
            return await self._local.hit(key, limit, window_s)

    async def peek(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        check_limit(limit, window_s)
        try:
            return await self._call("peek", key, limit, window_s)
        except RedisUnavailable:
            _refuse_if(when_away)
            return await self._local.peek(key, limit, window_s)

    async def _call(self, action: str, key: str, limit: int, window_s: int) -> Window:
        """Raises `RedisUnavailable`, immediately between two reconnection attempts."""
        # Waiting for a free call does not mean that Redis is unavailable, so it is outside the timeout.
        async with self._calls:
            if not self._may_try():
                raise RedisUnavailable
            now = "" if self._server_time else str(self._clock.now_ms())
            try:
                async with asyncio.timeout(self._timeout_s):
                    allowed, used, frees_at_ms, now_ms = await self._script(
                        keys=[f"{self._prefix}{window_s}:{key}"],
                        args=[limit, window_s * 1000, action, now, EXPIRY_MARGIN_MS],
                    )
            except (RedisError, OSError) as error:
                self._failed(error)
                raise RedisUnavailable from error
        self._succeeded()
        return Window.at(
            now_ms, allowed=allowed == 1, limit=limit, used=used, frees_at_ms=frees_at_ms
        )

    def _may_try(self) -> bool:
        """True while Redis is available; during an outage, once per `RETRY_S`."""
        if self._retry_at is None:
            return True
        now = self._monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_S
        return True

    def _failed(self, error: Exception) -> None:
        now = self._monotonic()
        self._retry_at = now + RETRY_S
        if self._logged_at is None or now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            log.warning("redis_away_limits_counted_locally", error=self._reason(error))

    def _succeeded(self) -> None:
        if self._retry_at is not None:
            self._retry_at = None
            log.info("redis_back_limits_shared")

    def _reason(self, error: Exception) -> str:
        return str(error) or f"no answer within {self._timeout_s:g} s"


def _refuse_if(when_away: WhenAway) -> None:
    if when_away == "refuse":
        raise Unavailable(
            "the limit of this call can't be checked right now", retry_after_s=int(RETRY_S)
        ) from None
