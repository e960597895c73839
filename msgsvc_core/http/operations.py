"""Liveness and readiness endpoints."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.reception.models import ReceptionAnswer, reception_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.limits import Limiter

#: Seconds that one check may take.
CHECK_TIMEOUT_S = 5.0

#: Seconds of them for the database to answer. The rest is for giving the connection back, which takes 2 s
#: when the database is silent.
DATABASE_TIMEOUT_S = 3.0

#: Seconds of those for starting a write: on SQLite another process may be writing.
WRITE_TIMEOUT_S = 2.0

#: Seconds for which a channel's health is remembered, so that probes don't burden its platform.
CHANNEL_HEALTH_S = 30.0

#: Seconds for which it is remembered how many jobs there are: of a million it takes 0.3 s to count them.
COUNTED_S = 5.0

#: Checks whose failure leaves a process able to serve. A balancer that took every process out when
#: Redis is away would make an outage of what the limits get over (docs/decisions/0003).
OPTIONAL_CHECKS = frozenset({"redis", "own_channels", "secret_keys", "quarantine"})

#: Prefix of the checks of configured messengers. An unavailable one is not a failure of this process:
#: requests are accepted, and their jobs wait (docs/decisions/0055-outages.md).
CHANNEL_CHECK = "channel:"

log = structlog.get_logger(__name__)


def operation_routes(
    readiness: "Readiness", is_operator: Callable[[Request], bool]
) -> list[BaseRoute]:
    """GET /healthz and /readyz. Details are for whom `is_operator` lets see them."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        if readiness.is_draining():
            # Without its checks: a slow database must not keep a balancer waiting.
            return JSONResponse({"status": "draining"}, status_code=503)
        checks = await readiness.checks()
        failing = {name for name, check in checks.items() if not check["ok"]}
        ready = all(name in OPTIONAL_CHECKS or name.startswith(CHANNEL_CHECK) for name in failing)
        status = "ok" if not failing else "degraded" if ready else "failing"
        return JSONResponse(
            # Details name hosts, bots and how much there is to do: they are the operator's.
            {"status": status, "checks": checks} if is_operator(request) else {"status": status},
            status_code=200 if ready else 503,
            headers={} if ready else {"Retry-After": "5"},
        )

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class Readiness:
    """Checks the database, the queue, the configured channels, and Redis if there is one.

    Projects' own channels are theirs to look at: a wrong token of one is no fault of the service.
    """

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        jobs: JobQueue,
        channels: Channels,
        states: ChannelStates,
        shelf: Shelf,
        limiter: Limiter,
        has_redis: bool,
        keys_are_lost: Callable[[], bool],
        is_quarantined: bool,
        is_draining: Callable[[], bool],
    ) -> None:
        self._db = db
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._states = states
        self._shelf = shelf
        self._limiter = limiter
        self._has_redis = has_redis
        self._keys_are_lost = keys_are_lost
        self._is_quarantined = is_quarantined
        #: Whether the process is about to stop, and serves only who has not noticed yet.
        self.is_draining = is_draining
        self._channel_health: dict[str, tuple[float, dict[str, Any]]] = {}
        #: When jobs were counted, and how many there were by state.
        self._counted: tuple[float, dict[str, int]] = (-COUNTED_S, {})
        #: Processes that run jobs, when they were counted.
        self._processes = 0
        #: How many items of configured channels were on their shelves then, by the channel's key, its name.
        self._shelved: dict[str, int] = {}

    async def checks(self) -> dict[str, dict[str, Any]]:
        """By name: `ok`, and a `detail` for the operator; `stopped` for a bot that is banned or
        revoked, `unavailable_since` for one whose platform does not answer, `paused_until` for one
        whose platform asks to wait, `reception` for one that receives nothing. `shelf` counts what
        could not be read or processed, where there is any."""
        checked, redis, troubled = await asyncio.gather(
            self._database_and_queue(), self._redis(), self._troubled()
        )
        checks = {**checked, **redis}
        if self._processes > 1 and not self._has_redis:
            detail = (
                f"each of {self._processes} processes counts a project's requests by itself, so up to"
                f" {self._processes} times limits.requests_per_minute are accepted: set redis_url"
            )
            # It works, and the operator should know.
            checks["limits"] = {"ok": True, "detail": detail}
        channels = self._channels.shared
        found = await asyncio.gather(*(self._channel(one, troubled) for one in channels))
        for channel, health in zip(channels, found, strict=True):
            state = troubled.get(channel.key)
            checks[f"{CHANNEL_CHECK}{channel.name}"] = _with_reception(
                self._with_pause(health, state), reception_of(channel, state)
            )
        if self._is_quarantined:
            detail = "nothing is sent or received: jobs wait, messengers are not called"
            checks["quarantine"] = {"ok": False, "detail": detail}
        if self._keys_are_lost():
            detail = "the database was written with a key that is not in secret_keys any more"
            checks["secret_keys"] = {"ok": False, "detail": detail}
        if self._shelved:
            # Somebody has to look at them; the process serves as well with them.
            checks["shelf"] = {"ok": True, "detail": self._shelved}
        # A pause ends by itself, and sooner than anybody would look.
        own = [
            troubled[one.key]
            for one in self._channels.own
            if one.key in troubled and not _is_only_paused(troubled[one.key])
        ]
        if own:
            stopped = sum(state.stopped for state in own)
            counts = {
                "stopped": stopped,
                "unavailable": sum(
                    not state.stopped and state.outage_since_ms is not None for state in own
                ),
                "interrupted": sum(state.interrupted_since_ms is not None for state in own),
            }
            checks["own_channels"] = {"ok": False, "detail": counts}
            if stopped:
                checks["own_channels"]["stopped"] = True
        return checks

    async def _troubled(self) -> dict[str, ChannelState]:
        """The channels that are stopped or paused, whose platform is away, or that receive nothing, by
        key."""
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S), self._db.read() as tx:
                troubled = await self._states.troubled(tx)
        except (DatabaseUnavailable, TimeoutError):
            return {}
        return {state.channel: state for state in troubled}

    async def _database_and_queue(self) -> dict[str, dict[str, Any]]:
        now_s = asyncio.get_running_loop().time()
        counted_s, jobs = self._counted
        db = self._db
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S):
                async with db.read() as tx:
                    if not await _can_write(tx):
                        raise DatabaseUnavailable("the database lets nobody write")
                    if now_s >= counted_s + COUNTED_S:
                        jobs = await self._jobs.count_by_state(tx)
                        shared = [channel.key for channel in self._channels.shared]
                        self._shelved = await self._shelf.count(tx, shared)
                        self._counted = now_s, jobs
                        now_ms = self._clock.now_ms()
                        self._processes = await self._jobs.count_runners(tx, now_ms)
                await db.check_writes(WRITE_TIMEOUT_S)
        except (DatabaseUnavailable, TimeoutError) as error:
            failing = {"ok": False, "detail": str(error) or "no answer in time"}
            return {"database": failing, "queue": failing}
        return {
            "database": {"ok": True, "detail": self._db.dialect},
            "queue": {
                "ok": True,
                "detail": {"ready": 0, "delayed": 0, "running": 0, "dead": 0, **jobs},
            },
        }

    async def _redis(self) -> dict[str, dict[str, Any]]:
        if not self._has_redis:
            return {}
        wrong = await self._limiter.check()
        if wrong is None:
            return {"redis": {"ok": True, "detail": "limits are shared"}}
        return {"redis": {"ok": False, "detail": f"limits are counted per process: {wrong}"}}

    async def _channel(
        self, channel: Channel, troubled: Mapping[str, ChannelState]
    ) -> dict[str, Any]:
        state = troubled.get(channel.key)
        # Neither is asked here: jobs do, and what they find sets the bot going.
        if state is not None and state.stopped:
            detail = f"stopped: {state.reason}: {state.detail}"
            return {"ok": False, "stopped": True, "detail": detail}
        if state is not None and state.outage_since_ms is not None:
            since = to_rfc3339(state.outage_since_ms)
            detail = f"its platform does not answer: {state.outage_detail}"
            return {"ok": False, "unavailable_since": since, "detail": detail}
        if self._is_quarantined:
            return {"ok": True, "detail": "not asked: the service is in quarantine"}
        now = self._clock.time()
        checked_at, health = self._channel_health.get(channel.name, (0.0, {}))
        if now - checked_at < CHANNEL_HEALTH_S:
            return health
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                result = await channel.check()
            health = {"ok": result.ok, "detail": result.detail}
            if result.revoked:
                await self._states.apply_health(channel, result, asked_at_ms=self._clock.now_ms())
                return {"ok": False, "stopped": True, "detail": result.detail}
        except TimeoutError:
            health = {"ok": False, "detail": "no answer in time"}
        except DatabaseUnavailable as error:
            health = {"ok": False, "detail": str(error)}
        except Exception as error:
            log.exception("channel_broke_contract", channel=channel.name)
            health = {"ok": False, "detail": type(error).__name__}
        self._channel_health[channel.name] = (now, health)
        return health

    def _with_pause(self, check: dict[str, Any], state: ChannelState | None) -> dict[str, Any]:
        """A channel's check, with the time until which its platform has asked it to wait."""
        if state is None or state.paused_until_ms <= self._clock.now_ms():
            return check
        until = to_rfc3339(state.paused_until_ms)
        detail = f"{check['detail']}; its platform asks to wait until {until}"
        return {**check, "detail": detail, "paused_until": until}


def _is_only_paused(state: ChannelState) -> bool:
    return not (
        state.stopped or state.outage_since_ms is not None or state.interrupted_since_ms is not None
    )


def _with_reception(check: dict[str, Any], reception: ReceptionAnswer | None) -> dict[str, Any]:
    """A channel's check, together with why it receives nothing, if so."""
    if reception is None or reception.status == "receiving":
        return check
    detail = f"{check['detail']}; receives nothing: {reception.detail}"
    return {**check, "ok": False, "detail": detail, "reception": reception.model_dump()}


async def _can_write(tx: Tx) -> bool:
    """Whether the server takes writes: after a failover, an old primary does not."""
    if tx.dialect == "sqlite":
        await tx.fetch_val("SELECT 1 AS one")
        return True
    return not await tx.fetch_val(
        "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
        " AS read_only"
    )
