"""Restrictions by a bot's platform: paused until a time, or stopped.

Stored in the database for the next owner of the channel's lane, and for the API.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

import structlog
from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.channels.contract import Channel, ChannelHealth
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, Row, Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.values import value_object

_COLUMNS = (
    "channel, status, reason, detail, paused_until_ms, changed_at_ms, outage_since_ms,"
    " outage_detail, outage_probes, outage_trial, outage_probe_at_ms, interrupted_since_ms,"
    " interrupted_reason, interrupted_detail"
)

#: Later than any moment, in Unix milliseconds.
EVER_MS = 2**53

#: Milliseconds for which a report about a message says something about its bot.
REPORT_MS = HOUR_MS

log = structlog.get_logger(__name__)


@value_object
class ChannelState:
    """A channel's state. `channel` is its key; `reason` and `detail` say why it was stopped.

    `outage_since_ms` is the start of its platform's outage, None without one; `outage_detail` the last
    error. After `outage_probes` probes the next one is at `outage_probe_at_ms`; `outage_trial` is the probe
    that succeeded, after which a few real calls are made, else 0.

    `interrupted_since_ms` is the start of an interruption of receiving, None while it receives.
    """

    channel: str
    status: str
    reason: str | None
    detail: str | None
    paused_until_ms: int
    changed_at_ms: int
    outage_since_ms: int | None = None
    outage_detail: str | None = None
    outage_probes: int = 0
    outage_trial: int = 0
    outage_probe_at_ms: int | None = None
    interrupted_since_ms: int | None = None
    interrupted_reason: str | None = None
    interrupted_detail: str | None = None

    @property
    def stopped(self) -> bool:
        return self.status == "stopped"


class ChannelRecovered(ResponseModel):
    """Fields of `channel.recovered`."""

    channel: str = Field(
        description="Name of the project's own channel.", examples=[examples.CHANNEL]
    )


class ChannelStopped(ChannelRecovered):
    """Fields of `channel.stopped`."""

    reason: str = Field(
        description="Why the messenger refuses the bot, for programs: one of those of `delivery.failed`.",
        examples=["bot_banned"],
    )
    detail: str = Field(
        description="The messenger's own text, for people.", examples=["Unauthorized"]
    )


class ChannelUnavailable(ChannelStopped):
    """Fields of `channel.unavailable`."""

    reason: str = Field(
        description="Always `platform_unavailable`.", examples=["platform_unavailable"]
    )
    detail: str = Field(
        description="The error of the last call to the messenger, for people.",
        examples=["no answer within 30 seconds"],
    )


class StateObserver(Protocol):
    """Called after the commit with changes of a channel's state."""

    def changed(self, key: str, *, stopped: bool) -> None:
        """The channel was stopped or resumed, or made another bot's."""

    def outage_changed(self, key: str) -> None:
        """Its platform's outage is over, or is on trial."""


BeforeResume = Callable[[JobContext, ChannelState], Awaitable[bool]]
OnStopped = Callable[[Tx, Channel, str, str], Awaitable[None]]
OnRecovered = Callable[[Tx, Channel], Awaitable[None]]


class ChannelStates:
    """Which channels are stopped, paused or unavailable. `observers` are called with changes.

    `on_stopped` and `on_recovered` are awaited in the transaction of the change, once each.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        events: Events,
        channels: Channels,
        check_every_s: float,
        on_stopped: OnStopped,
        on_recovered: OnRecovered,
    ) -> None:
        self._clock = clock
        self._db = db
        self._events = events
        self._channels = channels
        self._check_every_s = check_every_s
        self._on_stopped = on_stopped
        self._on_recovered = on_recovered
        self.observers: list[StateObserver] = []
        #: Awaited before a channel makes calls again, with what restricts it; False keeps it from doing so
        #: now.
        self.before_resume: list[BeforeResume] = []

    @property
    def spec(self) -> JobSpec:
        """The recurring job that checks stopped bots."""
        return JobSpec("channel.check", self.check_stopped, every_s=self._check_every_s)

    async def stop(self, tx: Tx, channel: Channel, reason: str, detail: str) -> bool:
        """Has no more calls made but `check`, until that succeeds; False if it is so already.

        What is queued waits. `reason` is for programs, e.g. `bot_banned`, `detail` for an operator.
        """
        if not await self._stop(tx, channel.key, reason, detail):
            return False
        if channel.identity.project_id is not None:
            fields = {"channel": channel.name, "reason": reason, "detail": detail}
            await self._emit(tx, channel.identity.project_id, "channel.stopped", fields)
        await self._on_stopped(tx, channel, reason, detail)
        tx.on_commit(
            lambda: log.error("channel_stopped", channel=channel.key, reason=reason, detail=detail)
        )
        tx.on_commit(partial(self._notify_changed, channel.key, stopped=True))
        return True

    async def stop_by_report(self, tx: Tx, channel_key: str, detail: str, at_ms: int) -> bool:
        """Stops a channel because its platform reports, of a message that it had accepted, that it takes none
        of the bot any more; `at_ms` is the report's time.

        False, and no change, for a report that is late, or from before the channel last worked again:
        platforms repeat theirs for days.
        """
        channel = self._channels.get(channel_key)
        if channel is None or at_ms < self._clock.now_ms() - REPORT_MS:
            return False
        state = await self.find(tx, channel_key)
        if state is not None and not state.stopped and at_ms <= state.changed_at_ms:
            return False
        return await self.stop(tx, channel, str(Reason.BOT_BANNED), detail)

    async def resume(
        self, tx: Tx, channel: Channel, *, stopped_until_ms: int | None = None
    ) -> bool:
        """Has what is queued sent again; False if the channel was not stopped, or was after
        `stopped_until_ms`."""
        if not await self._work(tx, channel.key, stopped_until_ms):
            return False
        await self.announce_recovery(tx, channel)
        tx.on_commit(lambda: log.warning("channel_recovered", channel=channel.key))
        tx.on_commit(partial(self._notify_changed, channel.key, stopped=False))
        return True

    async def apply_health(
        self, channel: Channel, health: ChannelHealth, *, asked_at_ms: int
    ) -> bool:
        """Stops or resumes the channel by what its `check` found; True if that changed anything.

        It does not if the channel was changed while its platform was asked: that was another bot. And
        a bot that was banned since it was asked stays stopped.
        """
        if self._channels.get(channel.key) is not channel:
            return False
        if not health.revoked:
            state = await self._db.read_inline(lambda tx: self.find(tx, channel.key))
            if state is None or not state.stopped:
                return False
        async with self._db.transaction() as tx:
            if health.revoked:
                return await self.stop(tx, channel, Reason.BOT_BANNED, health.detail)
            works = health.ok and not health.refuses_messages
            return works and await self.resume(tx, channel, stopped_until_ms=asked_at_ms)

    async def pause(self, tx: Tx, channel_key: str, until_ms: int) -> None:
        """Remembers, for the next owner of the lane, that no call may be made before."""
        await tx.execute(
            "INSERT INTO core_channel_states (channel, paused_until_ms, changed_at_ms)"
            " VALUES (:channel, :until_ms, :now_ms) ON CONFLICT (channel)"
            " DO UPDATE SET paused_until_ms = :until_ms"
            " WHERE core_channel_states.paused_until_ms < :until_ms",
            {
                "channel": channel_key,
                "until_ms": until_ms,
                "now_ms": self._clock.now_ms(),
            },
        )

    async def clear_stop(self, tx: Tx, channel_key: str) -> None:
        """The channel's settings have changed, and the bot may well work now; a pause still holds."""
        if await self._work(tx, channel_key):
            tx.on_commit(partial(self._notify_changed, channel_key, stopped=False))
        if await self.clear_outage(tx, channel_key):
            tx.on_commit(partial(self.outage_changed, channel_key))

    async def delete(self, tx: Tx, channel_key: str) -> None:
        """The channel was removed, or has another bot."""
        await tx.execute(
            "DELETE FROM core_channel_states WHERE channel = :channel", {"channel": channel_key}
        )
        tx.on_commit(partial(self._notify_changed, channel_key, stopped=False))
        tx.on_commit(partial(self.outage_changed, channel_key))

    async def announce_recovery(self, tx: Tx, channel: Channel) -> None:
        """Emits that sending resumed, also to the project if the channel is its own."""
        if channel.identity.project_id is not None:
            fields = {"channel": channel.name}
            await self._emit(tx, channel.identity.project_id, "channel.recovered", fields)
        await self._on_recovered(tx, channel)

    async def clear_outage(self, tx: Tx, channel_key: str) -> bool:
        """Nothing is known any more of an outage of the channel's platform; False if there was none."""
        return bool(
            await tx.execute(
                "UPDATE core_channel_states SET outage_since_ms = NULL, outage_detail = NULL,"
                " outage_probes = 0, outage_trial = 0, outage_probe_at_ms = NULL"
                " WHERE channel = :channel AND outage_since_ms IS NOT NULL",
                {"channel": channel_key},
            )
        )

    def outage_changed(self, channel_key: str) -> None:
        """Notifies the observers that the platform's outage is over, or on trial."""
        for observer in self.observers:
            observer.outage_changed(channel_key)

    async def find(self, tx: Tx, channel_key: str) -> ChannelState | None:
        """None where there was never anything to say."""
        row = await tx.fetch_one(
            f"SELECT {_COLUMNS} FROM core_channel_states WHERE channel = :channel",
            {"channel": channel_key},
        )
        return None if row is None else _state(row)

    async def find_stopped(self, tx: Tx, keys: Sequence[str]) -> dict[str, bool]:
        """True for those of the channels, by their keys, that are stopped."""
        rows = await tx.fetch_all(
            "SELECT channel FROM core_channel_states WHERE status = 'stopped'"
            f" AND {in_array('channel', 'keys', tx.dialect)}",
            {"keys": array_param(keys, tx.dialect)},
        )
        return {row["channel"]: True for row in rows}

    async def troubled(self, tx: Tx) -> list[ChannelState]:
        """Channels that are stopped, paused, in an outage, or not receiving."""
        rows = await tx.fetch_all(
            f"SELECT {_COLUMNS} FROM core_channel_states"
            " WHERE status = 'stopped' OR paused_until_ms > :now_ms OR outage_since_ms IS NOT NULL"
            " OR interrupted_since_ms IS NOT NULL"
            " ORDER BY channel",
            {"now_ms": self._clock.now_ms()},
        )
        return [_state(row) for row in rows]

    async def check_stopped(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """The job that asks the platforms of stopped bots whether they may work again."""
        async with self._db.read() as tx:
            found = await self.troubled(tx)
        channels = self._channels
        await asyncio.gather(
            *(
                self._check(ctx, channels[state.channel], state)
                for state in found
                if state.stopped and state.channel in channels
            )
        )

    async def may_resume(self, ctx: JobContext, state: ChannelState) -> bool:
        """Whether a channel in this state may make calls again: whatever must not be sent has ended."""
        return all([await before(ctx, state) for before in self.before_resume])

    async def _check(self, ctx: JobContext, channel: Channel, state: ChannelState) -> None:
        asked_at_ms = self._clock.now_ms()
        async with self._channels.keep_open(channel):
            health = await check_channel(channel)
        works = health.ok and not health.revoked and not health.refuses_messages
        if works and await self.may_resume(ctx, state):
            await self.apply_health(channel, health, asked_at_ms=asked_at_ms)

    async def _work(self, tx: Tx, channel_key: str, stopped_until_ms: int | None = None) -> bool:
        """Whether the channel was stopped, until that moment if there is one; it no longer is."""
        return bool(
            await tx.execute(
                "UPDATE core_channel_states SET status = 'working', reason = NULL, detail = NULL,"
                " changed_at_ms = :now_ms WHERE channel = :channel AND status = 'stopped'"
                " AND changed_at_ms <= :until_ms",
                {
                    "channel": channel_key,
                    "now_ms": self._clock.now_ms(),
                    # Of another process's clock, which may be ahead of ours.
                    "until_ms": EVER_MS if stopped_until_ms is None else stopped_until_ms,
                },
            )
        )

    async def _stop(self, tx: Tx, channel_key: str, reason: str, detail: str) -> bool:
        """Whether the channel was working; it no longer is."""
        return bool(
            await tx.execute(
                "INSERT INTO core_channel_states (channel, status, reason, detail, changed_at_ms)"
                " VALUES (:channel, 'stopped', :reason, :detail, :now_ms) ON CONFLICT (channel)"
                " DO UPDATE SET status = 'stopped', reason = :reason, detail = :detail,"
                " changed_at_ms = :now_ms WHERE core_channel_states.status <> 'stopped'",
                {
                    "channel": channel_key,
                    "reason": reason,
                    "detail": detail,
                    "now_ms": self._clock.now_ms(),
                },
            )
        )

    def _notify_changed(self, channel_key: str, *, stopped: bool) -> None:
        for observer in self.observers:
            observer.changed(channel_key, stopped=stopped)

    async def _emit(self, tx: Tx, project_id: str, name: str, fields: dict[str, str]) -> None:
        await self._events.emit(tx, project_id, name, fields)


def _state(row: Row) -> ChannelState:
    return ChannelState(**{name: row[name] for name in _COLUMNS.replace(" ", "").split(",")})
