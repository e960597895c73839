"""Outages of messengers' platforms: recorded in the database, probed with backoff, and ended.

During an outage nothing is sent on the channel, and its queued jobs are not attempted. See
`channels.outbound.circuit` for its detection, and docs/decisions/0055-outages.md.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from msgsvc_core.channels.contract import Channel, ChannelHealth
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Backoff, Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

OnUnavailable = Callable[[Tx, Channel, str], Awaitable[None]]

PROBE_JOB = "channel.probe"

#: Jitter of the wait between probes, as a fraction: many processes see the same outage.
JITTER = 0.2

#: Maximum characters of the stored reason.
DETAIL_LENGTH = 300

log = structlog.get_logger(__name__)


class ChannelOutages:
    """Outages of the platforms of all channels.

    `on_unavailable` is awaited in the transaction that records one; `wait_s` is the wait before the n-th
    probe.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        metrics: ChannelMetrics,
        channels: Channels,
        states: ChannelStates,
        wait_s: Backoff,
        on_unavailable: OnUnavailable,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._metrics = metrics
        self._channels = channels
        self._states = states
        self._wait_s = wait_s
        self._on_unavailable = on_unavailable

    @property
    def spec(self) -> JobSpec:
        """The job that probes. It is retried for as long as the outage lasts."""
        return JobSpec(PROBE_JOB, self.probe, max_attempts=1_000_000)

    async def start(self, tx: Tx, channel: Channel, detail: str) -> bool:
        """Records an outage and starts probing; False if it is recorded already.

        `detail` is for operators: the error of the last call.
        """
        now_ms = self._clock.now_ms()
        detail = detail[:DETAIL_LENGTH]
        probe_at_ms = now_ms + self._wait_ms(1)
        began = await tx.execute(
            "INSERT INTO core_channel_states (channel, changed_at_ms, outage_since_ms, outage_detail,"
            " outage_probe_at_ms) VALUES (:channel, :now_ms, :now_ms, :detail, :probe_at_ms)"
            " ON CONFLICT (channel) DO UPDATE SET outage_since_ms = :now_ms, outage_detail = :detail,"
            " outage_probes = 0, outage_trial = 0, outage_probe_at_ms = :probe_at_ms"
            " WHERE core_channel_states.outage_since_ms IS NULL",
            {
                "channel": channel.key,
                "now_ms": now_ms,
                "detail": detail,
                "probe_at_ms": probe_at_ms,
            },
        )
        if not began:
            return False
        job = _probe_job(channel.key, probe_at_ms)
        # The probe of an outage that has just ended may still be scheduled.
        await self._jobs.bring_forward(tx, job)
        await self._jobs.enqueue(tx, job)
        await self._emit_unavailable(tx, channel, detail)
        await self._on_unavailable(tx, channel, detail)
        tx.on_commit(lambda: log.error("channel_unavailable", channel=channel.key, detail=detail))
        tx.on_commit(partial(self._metrics.outage_began, channel.key))
        return True

    async def finish(self, tx: Tx, channel: Channel) -> bool:
        """Records that the platform is available; False if there was no outage."""
        if not await self._states.clear_outage(tx, channel.key):
            return False
        await self._states.announce_recovery(tx, channel)
        tx.on_commit(lambda: log.warning("channel_available", channel=channel.key))
        tx.on_commit(partial(self._states.outage_changed, channel.key))
        return True

    async def trial_failed(self, tx: Tx, channel: Channel, trial: int, detail: str) -> bool:
        """Records that a real call failed after a successful probe; False if the outage is over."""
        return bool(
            await tx.execute(
                "UPDATE core_channel_states SET outage_detail = :detail,"
                " outage_trial = CASE outage_trial WHEN :trial THEN 0 ELSE outage_trial END"
                " WHERE channel = :channel AND outage_since_ms IS NOT NULL",
                {"channel": channel.key, "trial": trial, "detail": detail[:DETAIL_LENGTH]},
            )
        )

    # ---- the probe ------------------------------------------------------------------------------

    async def probe(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """The probe job: checks the bot on an unavailable platform until it responds."""
        for job in jobs:
            await self._probe(ctx, job, job.payload["channel"])

    async def _probe(self, ctx: JobContext, job: Job, channel_key: str) -> None:
        async with ctx.reading() as tx:
            state = await self._states.find(tx, channel_key)
        channel = await self._channels.find(channel_key)
        if channel is None or state is None or state.outage_since_ms is None:
            async with ctx.completing(job):
                return
        asked_at_ms = self._clock.now_ms()
        async with self._channels.keep_open(channel):
            health = await check_channel(channel)
        if health.revoked:
            # The platform responds but refuses the bot: that is a stop, which is handled elsewhere.
            async with ctx.completing(job) as tx:
                await self.finish(tx, channel)
            await self._states.apply_health(channel, health, asked_at_ms=asked_at_ms)
        elif health.ok and not await self._states.may_resume(ctx, state):
            # The rest ends next, before any call.
            async with ctx.rescheduling(job, after_s=0, counts=False):
                return
        elif health.ok and not await self._has_work(ctx, channel_key):
            async with ctx.completing(job) as tx:
                await self.finish(tx, channel)
        else:
            await self._probe_again(ctx, job, state, health)

    async def _probe_again(
        self, ctx: JobContext, job: Job, state: ChannelState, health: ChannelHealth
    ) -> None:
        """Records the result of a probe: whether a few real calls may be tried, and the time of the next
        probe."""
        probes = state.outage_probes + 1
        wait_ms = self._wait_ms(probes + 1)
        async with ctx.rescheduling(job, after_s=wait_ms / 1000, counts=False) as tx:
            await tx.execute(
                "UPDATE core_channel_states SET outage_probes = :probes, outage_detail = :detail,"
                " outage_trial = :trial, outage_probe_at_ms = :probe_at_ms"
                " WHERE channel = :channel AND outage_since_ms IS NOT NULL",
                {
                    "channel": state.channel,
                    "probes": probes,
                    "trial": probes if health.ok else 0,
                    "detail": (not health.ok and health.detail[:DETAIL_LENGTH])
                    or state.outage_detail,
                    "probe_at_ms": self._clock.now_ms() + wait_ms,
                },
            )
            tx.on_commit(partial(self._states.outage_changed, state.channel))

    async def _has_work(self, ctx: JobContext, channel_key: str) -> bool:
        """Whether a call is queued on the channel: trials use only real calls."""
        soon_ms = self._clock.now_ms() + self._wait_ms(1)
        async with ctx.reading() as tx:
            return await self._jobs.has_due_by(tx, lane_of(channel_key), soon_ms)

    def _wait_ms(self, probe: int) -> int:
        """The wait before the n-th probe."""
        jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
        return round(self._wait_s(probe) * jitter * 1000)

    async def _emit_unavailable(self, tx: Tx, channel: Channel, detail: str) -> None:
        """Notifies the project that owns the channel; outages of shared channels are the operator's
        concern."""
        project_id = channel.identity.project_id
        if project_id is not None:
            reason = str(Reason.PLATFORM_UNAVAILABLE)
            fields = {"channel": channel.name, "detail": detail, "reason": reason}
            await self._events.emit(tx, project_id, "channel.unavailable", fields)


def _probe_job(channel_key: str, run_at_ms: int) -> NewJob:
    return NewJob(
        PROBE_JOB, {"channel": channel_key}, key=channel_key, run_at_ms=run_at_ms, traced=False
    )
