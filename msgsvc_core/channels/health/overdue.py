"""Ends what has waited too long for a channel that makes no calls: its bot is stopped, or its platform has an
outage.

The handlers of a closed lane's jobs don't run, so nothing else would end them: without this they would be
sent days late (docs/decisions/0055-outages.md).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgsvc_core.channels.failures import Reason, WaitedTooLong
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.kernel.values import value_object

JOB = "channel.overdue"

#: Seconds between two looks. What waits ends at most this much too late.
EVERY_S = 30.0

#: Jobs or recipients that end in one transaction, and transactions of one kind in a look.
GROUP, GROUPS = 200, 50


@value_object
class ClosedChannel:
    """A channel that makes no calls, and since when, in Unix milliseconds. `reason` and `why` are those of
    messages that have waited too long."""

    key: str
    since_ms: int
    reason: Reason
    why: str

    def failure(self, waited_ms: int) -> WaitedTooLong:
        """The failure of a message that has waited so long, in milliseconds."""
        return WaitedTooLong(self.reason, f"{self.why} for {waited_ms / 3_600_000:g} hours")


class WaitingWork(Protocol):
    """Work that waits in the lanes of channels."""

    async def end_overdue(self, ctx: JobContext, closed: ClosedChannel) -> bool:
        """Ends what has waited too long for a closed channel. Returns whether nothing of it is left: a look
        ends at most `GROUPS` groups."""
        ...


#: Ends what has expired on any channel.
EndExpired = Callable[[JobContext], Awaitable[None]]


class OverdueWork:
    """The job that looks at closed channels, and at what has expired."""

    def __init__(
        self,
        *,
        states: ChannelStates,
        work: Sequence[WaitingWork],
        end_expired: EndExpired,
    ) -> None:
        self._states = states
        self._work = work
        self._end_expired = end_expired

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.run, every_s=EVERY_S)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Looks at all channels."""
        await self._end_expired(ctx)
        async with ctx.reading() as tx:
            states = await self._states.troubled(tx)
        for state in states:
            await self.end(ctx, state)

    async def end(self, ctx: JobContext, state: ChannelState) -> bool:
        """Ends what has waited too long for a channel in this state. Returns whether nothing of it is
        left."""
        closed = closed_channel(state)
        if closed is None:
            return True
        return all([await each.end_overdue(ctx, closed) for each in self._work])

    async def before_resume(self, ctx: JobContext, state: ChannelState) -> bool:
        """As `end`, before calls are made again: what is overdue, or has expired, is not to be sent."""
        await self._end_expired(ctx)
        return await self.end(ctx, state)


def closed_channel(state: ChannelState) -> ClosedChannel | None:
    """None while the channel makes calls, or its platform has asked the bot to wait."""
    out_since_ms = state.outage_since_ms
    if state.stopped:
        since_ms = state.changed_at_ms
        return ClosedChannel(
            state.channel,
            since_ms if out_since_ms is None else min(since_ms, out_since_ms),
            Reason(state.reason) if state.reason in set(Reason) else Reason.BOT_BANNED,
            "the bot has been stopped",
        )
    if out_since_ms is None:
        return None
    reason = Reason.PLATFORM_UNAVAILABLE
    return ClosedChannel(state.channel, out_since_ms, reason, "the messenger has not answered")
