"""The outbound gates of all channels, and the batches of their lanes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.lanes import LANE, channel_of, lane_of
from msgsvc_core.channels.outbound.gate import BATCH, BATCHES, OutboundGate
from msgsvc_core.channels.outbound.ordering import receiver_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.sections import JobSettings
from msgsvc_core.db import Database
from msgsvc_core.jobs.contract import Job, JobContext, LaneSpec
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """Jobs of one channel, which is None if it was removed: see `OutboundGates.batch`.

    `repeatable` is whether a call with a lost response may be repeated: see `Capabilities.repeatable`.
    """

    ctx: JobContext
    channel: Channel | None
    gate: OutboundGate
    jobs: Sequence[Job]
    repeatable: bool


class OutboundGates:
    """The gates of all channels, by channel key."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        channels: Channels,
        states: ChannelStates,
        outages: ChannelOutages,
        metrics: ChannelMetrics,
        settings: JobSettings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._new_gate = partial(
            OutboundGate,
            clock=clock,
            db=db,
            jobs=jobs,
            channels=channels,
            states=states,
            outages=outages,
            metrics=metrics,
            settings=settings,
        )
        self._gates: dict[str, OutboundGate] = {}

    def __getitem__(self, key: str) -> OutboundGate:
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = self._new_gate(key)
        return gate

    @asynccontextmanager
    async def batch(self, ctx: JobContext, jobs: Sequence[Job]) -> AsyncIterator[OutboundBatch]:
        """The jobs of one lane, with their channel, which is not closed while the block runs.

        Starts when earlier batches with the same recipients have ended. Jobs that would overtake others have
        been rescheduled, and are not in the batch.
        """
        key = channel_of(jobs[0].lane)
        gate = self[key]
        async with (
            self._channels.borrow(key) as channel,
            gate.turns.acquire(map(receiver_of, jobs)),
        ):
            try:
                left = await gate.defer_overtaking(ctx, jobs)
                repeatable = channel is not None and channel.capabilities.repeatable
                yield OutboundBatch(ctx, channel, gate, left, repeatable)
            except Exception:
                gate.on_failed(jobs)
                raise

    def changed(self, key: str, *, stopped: bool) -> None:
        """Notifies the gate and the runner of a change that was committed in this process."""
        self[key].changed(stopped=stopped)
        self._jobs.wake(lane_of(key), self._clock.now_ms())

    def outage_changed(self, key: str) -> None:
        """Notifies them of a change of the outage of the channel's platform."""
        self[key].outage_changed()
        self._jobs.wake(lane_of(key), self._clock.now_ms())

    @property
    def lanes(self) -> LaneSpec:
        """The lanes of all channels. A bot with rate limits or a slow platform has more, smaller batches:
        see `OutboundGate.capacity`."""
        return LaneSpec(LANE, concurrency=BATCHES, batch=BATCH, exclusive=True, gate=self.gate_of)

    def gate_of(self, lane: str) -> OutboundGate:
        """The gate of a lane `channel:<key>`."""
        return self[channel_of(lane)]
