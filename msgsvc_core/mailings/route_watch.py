"""Looks after mailings with a route: who waits for a bot that can't work goes on without a call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgsvc_core.channels.health.states import ChannelState
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import route_ledger, store
from msgsvc_core.mailings.models import Mailing, MailingShard
from msgsvc_core.mailings.route_moves import MailingRoutes
from msgsvc_core.mailings.service import WATCH_JOB, WATCH_S, Mailings, watch_job
from msgsvc_core.routing.progress import CHANNEL_REMOVED, CHANNEL_STOPPED

#: Channels that are stopped or paused, or whose platform does not answer.
FindTroubled = Callable[[Tx], Awaitable[Sequence[ChannelState]]]

#: People who go on in one transaction.
GROUP = 500

#: Groups of which nobody has a channel that can be used now, before a look ends: the next one goes on behind
#: them. However many wait, a look is short, and the others of the mailing get its lock.
IDLE_GROUPS = 4


class RouteWatch:
    """The job that takes people on from bots that are stopped, and from those whose platform has not answered
    for as long as the step waits, or asks the bot to wait longer."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        channels: Channels,
        mailings: Mailings,
        routes: MailingRoutes,
        find_troubled: FindTroubled,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._mailings = mailings
        self._routes = routes
        self._find_troubled = find_troubled

    @property
    def spec(self) -> JobSpec:
        return JobSpec(WATCH_JOB, self.run, max_attempts=1000)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Looks at each mailing, and again later while it runs."""
        for job in jobs:
            key = job.project_id or "", str(job.payload["job_id"])
            async with ctx.reading() as tx:
                mailing = await store.find(tx, *key)
                stuck = {} if mailing is None else await self._find_stuck(tx, mailing)
            positions: dict[str, str] = {}
            for bot, why in stuck.items():
                if position := await self._take_groups_on(ctx, job, bot, why):
                    positions[bot] = position
            # The mailing before the job, as `resume` does: either this look finds it resumed, or the resume
            # finds no job left and makes one.
            lock = partial(store.lock, project_id=key[0], job_id=key[1])
            async with ctx.completing(job, first=lock) as tx:
                mailing = await store.find(tx, *key)
                if mailing is not None and mailing.status == "running":
                    run_at_ms = self._clock.now_ms() + WATCH_S * 1000
                    await self._jobs.enqueue(tx, watch_job(mailing, run_at_ms, positions))

    async def _find_stuck(self, tx: Tx, mailing: Mailing) -> dict[str, str]:
        """The bots that people must not wait for, each with the reason."""
        if mailing.status != "running":
            return {}
        troubled: Mapping[str, ChannelState] = {
            state.channel: state for state in await self._find_troubled(tx)
        }
        shards = [each.of_stage(mailing) for each in await store.list_shards(tx, *mailing.key)]
        found: dict[str, str] = {}
        for shard in shards:
            if not shard.is_done:
                why = await self._trouble(mailing, shard.bot, troubled.get(shard.bot))
                if why is not None:
                    found[shard.bot] = why
        return found

    async def _trouble(self, mailing: Mailing, bot: str, state: ChannelState | None) -> str | None:
        channel = await self._channels.find(bot)
        number = None if channel is None else mailing.step_of(channel.name)
        if number is None:
            return CHANNEL_REMOVED.text
        if state is None:
            return None
        if state.stopped:
            return CHANNEL_STOPPED.text
        within_seconds = mailing.steps[number].within_seconds
        return None if within_seconds is None else self._lateness(state, within_seconds * 1000)

    def _lateness(self, state: ChannelState, within_ms: int) -> str | None:
        """Why a bot can't send within the time of a step; None if it can."""
        now_ms = self._clock.now_ms()
        if state.outage_since_ms is not None and now_ms - state.outage_since_ms >= within_ms:
            return "its messenger does not answer"
        # A pause that is nearly over is waited for.
        if state.paused_until_ms - now_ms >= within_ms:
            return "its messenger asks to wait for longer than the step does"
        return None

    async def _take_groups_on(self, ctx: JobContext, job: Job, bot: str, why: str) -> str:
        """Takes people on from a bot, behind those of the previous look. Returns whom the next one comes
        after: "" if that is everybody."""
        after: str | None = job.payload.get("after", {}).get(bot, "")
        idle = 0
        while after is not None and idle < IDLE_GROUPS and not ctx.stopping:
            after, moved = await self._take_on(ctx, job, bot, why, after)
            idle = 0 if moved else idle + 1
        return after or ""

    async def _take_on(
        self, ctx: JobContext, job: Job, bot: str, why: str, after: str
    ) -> tuple[str | None, int]:
        """Takes the next people on from a bot. Returns the last of them, or None after all; and how many have
        another channel. The others wait on."""
        key = job.project_id or "", str(job.payload["job_id"])
        async with ctx.holding(job) as tx:
            locked = await store.lock_shard(tx, *key, bot)
            if locked is None or locked.mailing.status != "running":
                return None, 0
            mailing, shard = locked.mailing, locked.shard.of_stage(locked.mailing)
            waiting = await route_ledger.find_waiting(
                tx, mailing, bot, shard.in_flight, after, GROUP
            )
            if not waiting:
                await self._finish(tx, mailing, shard)
                return None, 0
            passed = [(each, mailing.steps[step].channel, why) for each, step in waiting.items()]
            stayed = await self._routes.pass_over(tx, mailing, passed)
            await ctx.progressed(tx, job)
            return max(waiting), len(waiting) - len(stayed)

    async def _finish(self, tx: Tx, mailing: Mailing, shard: MailingShard) -> None:
        """Nobody has to wait for a bot that can't work, if none of its people are left."""
        if shard.in_flight or await route_ledger.has_waiting(tx, mailing, shard.bot):
            return
        await store.set_shard(tx, *mailing.key, replace(shard, is_done=True))
        await self._mailings.complete(tx, mailing)
