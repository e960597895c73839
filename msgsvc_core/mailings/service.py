"""Starts mailings, and pauses, resumes and cancels them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import BULK, NORMAL, URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.mailings import audience_store, ledger, recipients, store
from msgsvc_core.mailings.audience import MOST_LOOKED_AT, Audience, AudienceBreakdown
from msgsvc_core.mailings.content import without_values
from msgsvc_core.mailings.models import (
    Mailing,
    MailingMessage,
    MailingProgress,
    MailingStatus,
    NewExperiment,
    NewMailing,
    OutcomeReason,
    PartOutcomes,
    Recipient,
)
from msgsvc_core.mailings.previews import Sample, message_for, samples
from msgsvc_core.mailings.validation import MailingValidation, PreparedMailing
from msgsvc_core.routing.models import steps_to_column
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.preferences_links import PreferencesLinks

#: Called with a mailing that has ended, or whose variants were all sent, in the transaction that records it.
OnEnded = Callable[[Tx, Mailing], Awaitable[None]]

#: Paid operations: the messages of a mailing when it is accepted, and the difference when it has ended.
OPERATION, SETTLEMENT = "broadcast.message", "broadcast.settlement"


#: The share of a mailing whose variants all get: there is no second stage.
ALL_PERCENT = 100

#: The jobs of a mailing: one that expands the audience, and one for each shard.
EXPAND_JOB, SEND_JOB = "mailing.expand", "mailing.send"


def expand_job(mailing: Mailing, run_at_ms: int | None) -> NewJob:
    """Starts a mailing, or continues its expansion."""
    return NewJob(
        EXPAND_JOB,
        {"job_id": mailing.job_id},
        key=mailing.job_id,
        project_id=mailing.project_id,
        run_at_ms=run_at_ms,
    )


def send_job(mailing: Mailing, bot: str, run_at_ms: int | None = None, tries: int = 0) -> NewJob:
    """Continues one shard of a mailing; `tries` counts checks of its file."""
    return NewJob(
        SEND_JOB,
        {"job_id": mailing.job_id, "tries": tries},
        lane=lane_of(bot),
        priority=BULK,
        key=f"{mailing.job_id}:{bot}",
        project_id=mailing.project_id,
        run_at_ms=run_at_ms,
    )


#: The job that looks after a mailing with a route, and seconds between its looks.
WATCH_JOB, WATCH_S = "mailing.route", 5


def watch_job(
    mailing: Mailing, run_at_ms: int | None = None, after: Mapping[str, str] | None = None
) -> NewJob:
    """Looks at the channels of a mailing with a route: by bot, at people who come after the given one."""
    payload: dict[str, Any] = {"job_id": mailing.job_id}
    return NewJob(
        WATCH_JOB,
        {**payload, "after": dict(after)} if after else payload,
        key=mailing.job_id,
        project_id=mailing.project_id,
        run_at_ms=run_at_ms,
    )


#: Milliseconds for which a more urgent job may be due before a mailing yields to it: usually the lane claims
#: it sooner, unless mailings use all its capacity.
LATE_MS = 100


class Mailings:
    """`service.mailings`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        billing: BillingGate,
        validation: MailingValidation,
        limits: LimitSettings,
        on_ended: OnEnded,
        on_tested: OnEnded,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._billing = billing
        self._validation = validation
        self._limits = limits
        self._on_ended = on_ended
        self._on_tested = on_tested

    async def start(self, tx: Tx, project_id: str, new: NewMailing) -> Mailing:
        """Starts a mailing, now or at its time. The audience is determined then.

        It is charged here. Raises `ValidationFailed` for an invalid message, and too many recipients;
        `NotFound` for an unknown template; `BillingBlocked`.
        """
        now_ms = self._clock.now_ms()
        prepared = await self._validation.prepare(tx, project_id, new)
        message = new.message
        begins_ms = now_ms if new.send_at_ms is None else new.send_at_ms
        mailing = Mailing(
            project_id=project_id,
            job_id=new.job_id or new_id("job"),
            source=new.source,
            status="scheduled",
            content=prepared.content,
            audience=new.audience.to_column(),
            permission=message.permission,
            metadata=message.metadata,
            per_minute=new.per_minute,
            expires_at_ms=message.expires_in and begins_ms + message.expires_in * 1000,
            send_at_ms=new.send_at_ms,
            total=prepared.total,
            sent=0,
            failed=0,
            skipped=0,
            error=None,
            resend_of=None,
            created_at_ms=now_ms,
            started_at_ms=None,
            finished_at_ms=None,
            expanded_to="",
            next_us=0,
            timed_from_ms=None,
            timed_from=0,
            charged=prepared.reachable,
            purged_at_ms=None,
            name=new.name,
            experiment=_experiment(new.experiment, prepared.variants),
            stage="test"
            if new.experiment is not None and new.experiment.share_percent < ALL_PERCENT
            else None,
            route_id=None if prepared.route is None else prepared.route.route_id,
            route_steps=None if prepared.route is None else steps_to_column(prepared.route.steps),
        )
        await self._add(tx, mailing)
        return mailing

    async def samples(self, tx: Tx, project_id: str, message: MailingMessage) -> list[Sample]:
        """Sample messages. Raises what `previews.samples` does."""
        return await samples(self._validation, tx, project_id, message)

    async def message_for(
        self,
        tx: Tx,
        project_id: str,
        message: MailingMessage,
        subscriber: Subscriber,
        links: PreferencesLinks,
    ) -> OutgoingMessage:
        """The message that a subscriber would get, with their own values. Raises what `samples` does."""
        return await message_for(self._validation, tx, project_id, message, subscriber, links)

    async def count(self, tx: Tx, project_id: str, new: NewMailing) -> PreparedMailing:
        """The number of recipients who would get a mailing now, or be skipped; nothing is charged. Raises
        what else `start` does."""
        return await self._validation.prepare(tx, project_id, new)

    async def cost(self, tx: Tx, project_id: str, recipients: int) -> int:
        """The price of a mailing to so many recipients now, in credits; 0 without billing."""
        return recipients * await self._billing.quote(tx, project_id, OPERATION)

    async def break_down(
        self,
        tx: Tx,
        project_id: str,
        audience: Audience,
        permission: str | None = None,
        *,
        route_id: str | None = None,
    ) -> AudienceBreakdown:
        """The current size of an audience, and who is left out of it, for a message that needs a
        `permission`. At most 5,000 subscribers are looked at. By a route all are counted, and nobody is left
        out. Raises `ValidationFailed`."""
        return await self._validation.break_down(tx, project_id, audience, permission, route_id)

    async def was_resent(self, tx: Tx, mailing: Mailing) -> bool:
        """Whether it was already resent to recipients with an unknown outcome, which can be done once."""
        return await store.was_resent(tx, *mailing.key)

    async def resend_unknown(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Starts a mailing of the same content to the recipients with an unknown outcome.

        Raises `NotFound`, and `Conflict` for a mailing that has not ended, has no recipient of unknown
        outcome, was resent before, has expired, or is so old that its recipients were deleted;
        `BillingBlocked`.
        """
        before = await self._locked(tx, project_id, job_id)
        if before.finished_at_ms is None:
            raise Conflict("it has not ended yet")
        if before.purged_at_ms is not None:
            raise Conflict("its recipients are no longer stored")
        if await store.was_resent(tx, project_id, job_id):
            raise Conflict("it was already resent to recipients with an unknown outcome")
        # Subscribers who have revoked the permission since don't get it.
        permission = before.audience.get("permission")
        audience = Audience(all=True) if permission is None else Audience(permission=permission)
        limit = self._limits.broadcast_recipients
        counts = await audience_store.count_by_bot(tx, project_id, audience, job_id, limit)
        if not counts:
            raise Conflict("no subscribed recipient has an unknown outcome")
        now_ms = self._clock.now_ms()
        if before.expires_at_ms is not None and before.expires_at_ms <= now_ms:
            raise Conflict("it has expired: nobody would get it")
        mailing = before.again(
            new_id("job"), audience.to_column(), total=sum(counts.values()), now_ms=now_ms
        )
        await self._add(tx, mailing)
        return mailing

    async def find(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Raises `NotFound`, also for another project's mailing."""
        mailing = await store.find(tx, project_id, job_id)
        if mailing is None:
            raise _not_found(job_id)
        return mailing

    async def progress(
        self, tx: Tx, project_id: str, job_ids: Iterable[str | None]
    ) -> dict[str | None, MailingProgress]:
        """The progress of mailings, by their id, for the plugin that started them; unknown ids are
        omitted."""
        named = [job_id for job_id in job_ids if job_id is not None]
        if not named:
            return {}
        now_ms = self._clock.now_ms()
        found = await store.find_many(tx, project_id, named)
        return {each.job_id: MailingProgress.of(each, now_ms) for each in found}

    async def find_any(self, tx: Tx, job_id: str) -> Mailing:
        """A mailing of any project, for an operator. Raises `NotFound`."""
        mailing = await store.find_any(tx, job_id)
        if mailing is None:
            raise _not_found(job_id)
        return mailing

    async def list_any(self, tx: Tx, *, ended: bool, limit: int) -> list[Mailing]:
        """Up to `limit` mailings of all projects, newest first, for an operator; with `ended` also
        finished ones."""
        return await store.list_any(tx, ended=ended, limit=limit)

    async def page(
        self,
        tx: Tx,
        project_id: str,
        source: str,
        status: str | None,
        after: str | None,
        limit: int,
        *,
        ascending: bool = False,
    ) -> list[Mailing]:
        """Up to `limit` mailings of one source after the one called `after`, newest or oldest first."""
        return await store.list_page(
            tx, project_id, source, status, after, limit, ascending=ascending
        )

    async def recipients(
        self,
        tx: Tx,
        mailing: Mailing,
        status: str | None,
        after: str | None,
        limit: int,
        reason: str | None = None,
    ) -> list[Recipient]:
        """Up to `limit` recipients of a mailing, newest subscribers first, from before `after`; with a
        `reason`, those who did not get it for that."""
        return await recipients.list_page(tx, mailing, status, after, limit, reason)

    async def find_recipient(
        self, tx: Tx, mailing: Mailing, subscriber_id: str
    ) -> Recipient | None:
        """A recipient of a mailing; None if there is none, also once they are no longer stored."""
        return await recipients.find(tx, mailing, subscriber_id)

    async def reasons(
        self, tx: Tx, mailing: Mailing, limit: int = MOST_LOOKED_AT
    ) -> list[OutcomeReason]:
        """Why recipients did not get it, by outcome; of at most `limit` of each. Empty once they are no
        longer stored."""
        return await recipients.count_reasons(tx, mailing, limit)

    def recipients_until_ms(self, mailing: Mailing) -> int | None:
        """Until when its recipients are stored, in Unix milliseconds; None while it has not ended."""
        if mailing.finished_at_ms is None:
            return None
        return mailing.finished_at_ms + self._limits.recipient_days * DAY_MS

    async def pause(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Pauses a mailing: those in flight are still sent. A scheduled one starts when it is resumed, if
        it is due by then. Raises `NotFound`, and `Conflict` unless it is running or scheduled."""
        return await self._change(tx, project_id, job_id, "paused", ("scheduled", "running"))

    async def resume(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Raises `NotFound`, and `Conflict` unless it is paused."""
        before = await self._locked(tx, project_id, job_id)
        to: MailingStatus = "scheduled" if before.started_at_ms is None else "running"
        mailing = await self._change(tx, project_id, job_id, to, ("paused",))
        if mailing.expanded_to is not None:
            await self._jobs.enqueue(tx, expand_job(mailing, mailing.send_at_ms))
        elif ended := await self.complete(tx, mailing):
            # No recipients are left, or there never were any.
            return ended
        if len(mailing.steps) > 1 and mailing.status == "running":
            await self._jobs.enqueue(tx, watch_job(mailing))
        shards = await store.list_shards(tx, project_id, job_id)
        # A shard that still has a job continues with it.
        await self._jobs.enqueue(
            tx,
            *(
                send_job(mailing, shard.bot)
                for shard in shards
                if not shard.of_stage(mailing).is_done
            ),
        )
        return mailing

    async def continue_shard(
        self, tx: Tx, mailing: Mailing, bot: str, run_at_ms: int, tries: int
    ) -> None:
        """Enqueues the next run of a shard at its time."""
        await self._jobs.enqueue(tx, send_job(mailing, bot, run_at_ms, tries))

    async def must_yield(self, tx: Tx, lane: str) -> bool:
        """Whether a more urgent job waits in the lane, to which a mailing yields."""
        now_ms = self._clock.now_ms()
        return await self._jobs.has_waiting(tx, lane, {URGENT: now_ms, NORMAL: now_ms - LATE_MS})

    async def cancel(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Skips all remaining recipients; the mailing ends when those in flight have.

        Raises `NotFound`, and `Conflict` if it has ended.
        """
        before: tuple[MailingStatus, ...] = ("scheduled", "running", "paused")
        await self._change(tx, project_id, job_id, "cancelled", before)
        if ended := await self.finish(tx, project_id, job_id, "cancelled"):
            return ended
        mailing = await self._locked(tx, project_id, job_id)
        # If the job of a shard is dead, nothing else settles its recipients in flight.
        found = await store.list_shards(tx, project_id, job_id)
        shards = [shard for shard in found if shard.in_flight]
        await self._jobs.enqueue(tx, *(send_job(mailing, shard.bot) for shard in shards))
        return mailing

    async def forget_variables(self, tx: Tx, project_id: str, job_id: str) -> None:
        """Deletes the values of a mailing's variables, for the erasure of what they copy; a mailing that
        has not ended is cancelled. No effect if it does not exist."""
        mailing = await store.lock(tx, project_id, job_id)
        if mailing is None:
            return
        if mailing.status in {"scheduled", "running", "paused"}:
            await self.cancel(tx, project_id, job_id)
        experiment = mailing.experiment
        if experiment is not None:
            variants = [
                {**each, "content": without_values(each["content"])} for each in mailing.variants
            ]
            experiment = {**experiment, "variants": variants}
        await store.set_content(tx, *mailing.key, without_values(mailing.content), experiment)

    async def choose(
        self, tx: Tx, project_id: str, job_id: str, winner: int, decision: Mapping[str, Any]
    ) -> Mailing | None:
        """Begins the second stage of an experiment: the variant with the number `winner` goes to all who have
        got none. Recipients in flight still get theirs.

        `decision` is recorded with it, as JSON. None if it has begun, or the mailing has ended.
        """
        now_ms = self._clock.now_ms()
        kept = {**decision, "at_ms": now_ms}
        mailing = await store.choose(tx, project_id, job_id, winner, kept, now_ms)
        if mailing is not None and mailing.status == "running" and mailing.expanded_to is None:
            # One that still has a job continues with it.
            shards = await store.list_shards(tx, project_id, job_id)
            await self._jobs.enqueue(tx, *(send_job(mailing, shard.bot) for shard in shards))
        return mailing

    async def variant_outcomes(self, tx: Tx, mailing: Mailing) -> list[PartOutcomes]:
        """The recipients of each variant by status, without those who got it as the winner. None have any
        once they are no longer stored."""
        if not mailing.variants:
            # The whole ledger would be read in vain.
            return []
        names = [variant["name"] for variant in mailing.variants]
        return _outcomes(names, await ledger.count_by_variant(tx, mailing))

    async def channel_outcomes(self, tx: Tx, mailing: Mailing) -> list[PartOutcomes]:
        """The recipients of each channel of the route by status: each person counts once, on the channel that
        reached them, or is tried, or was tried last. None without a route, or once they are no longer
        stored."""
        if not mailing.steps:
            return []
        names = [step.channel for step in mailing.steps]
        return _outcomes(names, await ledger.count_by_step(tx, mailing))

    async def variants_sent_to(
        self, tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]
    ) -> dict[str, int]:
        """The number of the variant that was sent to each of these subscribers, without those who got it as
        the winner, or got none."""
        return await ledger.find_variants(tx, *mailing.key, subscriber_ids, "sent")

    async def finish(
        self, tx: Tx, project_id: str, job_id: str, status: MailingStatus
    ) -> Mailing | None:
        """Ends a mailing as `completed` or `cancelled`, and reports it once; None if it can't end yet."""
        now_ms = self._clock.now_ms()
        ended = await store.finish(tx, project_id, job_id, status, now_ms)
        if ended is not None:
            if "subscriber_ids" in ended.audience:
                # It never started. Some recipients may be erased later.
                await store.set_audience(tx, ended)
            await self._settle(tx, ended)
            await self._on_ended(tx, ended)
        return ended

    async def complete(self, tx: Tx, mailing: Mailing) -> Mailing | None:
        """Ends a running mailing whose shards are done; None if it can't end yet: also if only the first
        stage of an experiment ends, which is then reported once."""
        ended = await self.finish(tx, *mailing.key, "completed")
        if ended is None and mailing.stage == "test":
            tested = await store.end_test(tx, *mailing.key, self._clock.now_ms())
            if tested is not None:
                await self._on_tested(tx, tested)
        return ended

    async def _add(self, tx: Tx, mailing: Mailing) -> None:
        await store.insert(tx, mailing)
        charge = Charge(
            mailing.project_id, OPERATION, mailing.job_id, quantity=mailing.charged or 0
        )
        await self._billing.charge(tx, charge)
        await self._jobs.enqueue(tx, expand_job(mailing, mailing.send_at_ms))

    async def _settle(self, tx: Tx, ended: Mailing) -> None:
        """Charges only for recipients who got it: the audience may have changed since the call."""
        difference = 0 if ended.charged is None else ended.sent - ended.charged
        if difference:
            charge = Charge(ended.project_id, SETTLEMENT, ended.job_id, False, difference)
            await self._billing.charge(tx, charge)

    async def _change(
        self,
        tx: Tx,
        project_id: str,
        job_id: str,
        status: MailingStatus,
        before: tuple[MailingStatus, ...],
    ) -> Mailing:
        now_ms = self._clock.now_ms()
        changed = await store.set_status(tx, project_id, job_id, status, before, now_ms=now_ms)
        mailing = await self._locked(tx, project_id, job_id)
        if not changed:
            raise Conflict("it is {status}", status=mailing.status)
        return mailing

    async def _locked(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        mailing = await store.lock(tx, project_id, job_id)
        if mailing is None:
            raise _not_found(job_id)
        return mailing


def _experiment(new: NewExperiment | None, contents: Sequence[str]) -> dict[str, Any] | None:
    """An experiment in the form of the column."""
    if new is None:
        return None
    return {
        "share_percent": new.share_percent,
        "terms": dict(new.terms),
        "variants": [
            {"name": variant.name, "content": content}
            for variant, content in zip(new.variants, contents, strict=True)
        ],
    }


def _not_found(job_id: str) -> NotFound:
    return NotFound("there is no broadcast {job_id!r}", job_id=job_id)


def _outcomes(names: Sequence[str], found: Mapping[tuple[int, str], int]) -> list[PartOutcomes]:
    """Of parts by name, from counts by number and status."""
    return [
        PartOutcomes(
            name,
            sent=found.get((number, "sent"), 0),
            failed=found.get((number, "failed"), 0) + found.get((number, "unknown"), 0),
            unknown=found.get((number, "unknown"), 0),
            skipped=found.get((number, "skipped"), 0),
            total=sum(count for (which, _), count in found.items() if which == number),
        )
        for number, name in enumerate(names)
    ]
