"""Expands a mailing's audience when it is due: the database writes the ledger in steps."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, OnDead, Stopping
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import audience_store, experiments, route_ledger, store
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.models import Mailing, MailingStatus
from msgsvc_core.mailings.service import EXPAND_JOB, Mailings, send_job, watch_job
from msgsvc_core.mailings.validation import AudienceNames

#: Subscribers read per transaction: some 10 ms, for which SQLite's other writers wait.
STEP = 5000


class MailingExpansion:
    """The job that writes the recipients of a mailing into the ledger, at most `most`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        mailings: Mailings,
        names: AudienceNames,
        most: int,
        on_dead: OnDead,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._mailings = mailings
        self._names = names
        self._most = most
        self._on_dead = on_dead

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            EXPAND_JOB,
            self.expand,
            max_attempts=1000,
            on_dead=self._on_dead,
            sends="broadcasts that have not begun",
            on_withdrawn=self._withdraw,
        )

    async def _withdraw(self, tx: Tx, job: Job) -> None:
        """It is paused, so that somebody looks whether the original has sent it."""
        await self._on_dead(tx, job, "")

    async def expand(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Continues after the last step; after the final one, starts sending."""
        for job in jobs:
            while await self._step(ctx, job):
                if ctx.stopping:
                    raise Stopping
            await self._begin_sending(ctx, job)

    async def _step(self, ctx: JobContext, job: Job) -> bool:
        """Writes the next recipients; False if there are no more, or the mailing is cancelled."""
        project_id = job.project_id or ""
        now_ms = self._clock.now_ms()
        async with ctx.holding(job) as tx:
            await store.start(tx, project_id, job.payload["job_id"], now_ms)
            mailing = await store.lock(tx, project_id, job.payload["job_id"])
            if mailing is None or mailing.expanded_to is None or not _goes_on(mailing):
                return False
            wanted = Audience.model_validate(mailing.audience)
            # Without its tags, a mailing to all except some would go to all.
            if missing := await self._names.find_missing(tx, project_id, wanted):
                await self._cancel(tx, mailing, f"when it was to begin: {missing.message}")
                return False
            end = await audience_store.step_end(tx, project_id, mailing.expanded_to, STEP)
            if mailing.route_id is not None:
                return await self._route_step(ctx, tx, job, mailing, wanted, end)
            if end is None:
                return False
            more = await audience_store.expand(
                tx,
                project_id,
                mailing.job_id,
                wanted,
                mailing.resend_of,
                after=mailing.expanded_to,
                until=end,
                before_ms=mailing.started_at_ms or now_ms,
            )
            await experiments.assign(tx, mailing, mailing.expanded_to, end)
            skipped = await audience_store.expand_unreachable(
                tx,
                project_id,
                mailing.job_id,
                wanted,
                after=mailing.expanded_to,
                until=end,
                before_ms=mailing.started_at_ms or now_ms,
            )
            more += skipped
            await store.expanded(tx, *mailing.key, more=more, skipped=skipped, expanded_to=end)
            await ctx.progressed(tx, job)
            return await self._is_within_limit(tx, mailing, more)

    async def _route_step(
        self,
        ctx: JobContext,
        tx: Tx,
        job: Job,
        mailing: Mailing,
        wanted: Audience,
        end: str | None,
    ) -> bool:
        """The same for a mailing with a route: first come all channels of everybody, up to the subscriber
        `end`; and when these are complete, the first one of each person."""
        if end is not None:
            after, before_ms = mailing.expanded_to or "", mailing.started_at_ms or 0
            await route_ledger.expand(
                tx, mailing, wanted, after=after, until=end, before_ms=before_ms
            )
            await store.expanded(tx, *mailing.key, more=0, skipped=0, expanded_to=end)
            await ctx.progressed(tx, job)
            return True
        after = mailing.chosen_to or ""
        end = await route_ledger.step_end(tx, mailing, after, STEP)
        if end is None:
            return False
        people = await route_ledger.choose_first(tx, mailing, after, end)
        await experiments.assign(tx, mailing, after, end)
        await store.chosen(tx, *mailing.key, people=people, chosen_to=end)
        await ctx.progressed(tx, job)
        return await self._is_within_limit(tx, mailing, people)

    async def _is_within_limit(self, tx: Tx, mailing: Mailing, more: int) -> bool:
        """Whether the audience is within the limit with `more` recipients; otherwise cancels the mailing."""
        limit = self._most
        if mailing.total + more <= limit:
            return True
        # It was within the limit when it was accepted; sending only to the first recipients would be worse.
        error = f"the audience had grown beyond {limit:,} subscribers when it was to begin"
        await self._cancel(tx, mailing, error)
        return False

    async def _cancel(self, tx: Tx, mailing: Mailing, error: str) -> None:
        """Ends a mailing of which nothing has been sent."""
        now_ms = self._clock.now_ms()
        before: tuple[MailingStatus, ...] = ("running", "paused")
        await store.set_status(tx, *mailing.key, "cancelled", before, now_ms=now_ms, error=error)
        await self._mailings.finish(tx, *mailing.key, "cancelled")

    async def _begin_sending(self, ctx: JobContext, job: Job) -> None:
        """Creates the shards, one for each bot; without any, the mailing is completed."""
        project_id = job.project_id or ""
        now_ms = self._clock.now_ms()
        mailing_id = job.payload["job_id"]
        # The same lock order as in `resume`: the mailing before the job.
        async with ctx.completing(
            job, first=lambda tx: store.lock(tx, project_id, mailing_id)
        ) as tx:
            await store.pause_if_disabled(tx, project_id, mailing_id, now_ms)
            mailing = await store.lock(tx, project_id, mailing_id)
            if mailing is None or mailing.expanded_to is None or not _goes_on(mailing):
                return
            wanted = Audience.model_validate(mailing.audience)
            missing = 0
            if wanted.names_alone and mailing.resend_of is None and mailing.route_id is None:
                # Recipients who don't exist have no row, but count as skipped like unsubscribed ones.
                missing = len(set(wanted.subscriber_ids or ())) - mailing.total
            await store.fixed(tx, mailing, now_ms, missing=missing)
            bots = await audience_store.bots_of(tx, *mailing.key)
            await store.add_shards(tx, *mailing.key, bots)
            if mailing.status == "running":
                await self._send(tx, mailing, bots)

    async def _send(self, tx: Tx, mailing: Mailing, bots: Sequence[str]) -> None:
        await self._jobs.enqueue(tx, *(send_job(mailing, bot) for bot in bots))
        if bots and len(mailing.steps) > 1:
            await self._jobs.enqueue(tx, watch_job(mailing))
        if not bots:
            await self._mailings.finish(tx, *mailing.key, "completed")


def _goes_on(mailing: Mailing) -> bool:
    """Whether the expansion continues: once started, a pause only stops the sending."""
    return mailing.started_at_ms is not None and mailing.status in {"running", "paused"}
