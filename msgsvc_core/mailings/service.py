"""The rules of mailings: what may be started, and what may be done to one that is under way."""

from collections.abc import Awaitable, Callable, Iterable

from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import BULK, NORMAL, URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.mailings import audience, recipients, store
from msgsvc_core.mailings.content import without_values
from msgsvc_core.mailings.models import (
    Audience,
    Mailing,
    MailingMessage,
    MailingProgress,
    MailingStatus,
    NewMailing,
    Recipient,
)
from msgsvc_core.mailings.previews import Sample, samples
from msgsvc_core.mailings.validation import MailingValidation, PreparedMailing

#: Told of a mailing that has ended, in the transaction that ends it.
OnEnded = Callable[[Tx, Mailing], Awaitable[None]]

#: What is paid for: the messages of a mailing when it is taken, and the difference when it has ended.
OPERATION, SETTLEMENT = "broadcast.message", "broadcast.settlement"


#: The jobs of a mailing: the one that writes its ledger, and one for each shard.
EXPAND_JOB, SEND_JOB = "mailing.expand", "mailing.send"


def expand_job(mailing: Mailing, run_at_ms: int | None) -> NewJob:
    """Begins a mailing, or goes on with its ledger."""
    return NewJob(
        EXPAND_JOB,
        {"job_id": mailing.job_id},
        key=mailing.job_id,
        project_id=mailing.project_id,
        run_at_ms=run_at_ms,
    )


def send_job(mailing: Mailing, bot: str, run_at_ms: int | None = None, tries: int = 0) -> NewJob:
    """Continues one shard of a mailing; `tries` counts those to have a look at its file."""
    return NewJob(
        SEND_JOB,
        {"job_id": mailing.job_id, "tries": tries},
        lane=lane_of(bot),
        priority=BULK,
        key=f"{mailing.job_id}:{bot}",
        project_id=mailing.project_id,
        run_at_ms=run_at_ms,
    )


#: Milliseconds for which something more urgent may be due before a mailing makes room for it: the
#: lane takes it up by itself sooner, unless mailings use up all that it has.
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
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._billing = billing
        self._validation = validation
        self._limits = limits
        self._on_ended = on_ended

    async def start(self, tx: Tx, project_id: str, new: NewMailing) -> Mailing:
        """Starts a mailing, or has it started at its time. Who gets it is decided then.

        It is charged here. Raises `ValidationFailed` for what can't be sent, and more recipients than
        there may be; `NotFound` for a template that is not there; `BillingBlocked`.
        """
        now_ms = self._clock.now_ms()
        judged = await self._validation.judge(tx, project_id, new)
        message = new.message
        begins_ms = now_ms if new.send_at_ms is None else new.send_at_ms
        mailing = Mailing(
            project_id=project_id,
            job_id=new.job_id or new_id("job"),
            source=new.source,
            status="scheduled",
            content=judged.content,
            audience=new.audience.to_column(),
            permission=message.permission,
            metadata=message.metadata,
            per_minute=new.per_minute,
            expires_at_ms=message.expires_in and begins_ms + message.expires_in * 1000,
            send_at_ms=new.send_at_ms,
            total=judged.total,
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
            charged=judged.reachable,
            purged_at_ms=None,
        )
        await self._add(tx, mailing)
        return mailing

    async def samples(self, tx: Tx, project_id: str, message: MailingMessage) -> list[Sample]:
        """What people get, as an example. Raises what `previews.samples` does."""
        return await samples(self._validation, tx, project_id, message)

    async def count(self, tx: Tx, project_id: str, new: NewMailing) -> PreparedMailing:
        """How many would get a mailing now, or be skipped; nothing is charged. Raises what else `start`
        does."""
        return await self._validation.judge(tx, project_id, new)

    async def cost(self, tx: Tx, project_id: str, recipients: int) -> int:
        """Credits that a mailing to so many would cost now; 0 where nothing is billed."""
        return recipients * await self._billing.quote(tx, project_id, OPERATION)

    async def reach(self, tx: Tx, project_id: str, asked: Audience) -> int:
        """How many an audience has now, whatever they would get. Raises `ValidationFailed`."""
        return await self._validation.reach(tx, project_id, asked)

    async def was_resent(self, tx: Tx, mailing: Mailing) -> bool:
        """Whether it was already resent to recipients with an unknown outcome, which can be done once."""
        return await store.was_resent(tx, *mailing.key)

    async def resend_unknown(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Starts a mailing of the same contents to those of whom nobody knows whether they got it.

        Raises `NotFound`, and `Conflict` for a mailing that has not ended, has no recipient of unknown
        outcome, was resent before, has expired, or was so long ago that its recipients are not kept;
        `BillingBlocked`.
        """
        before = await self._locked(tx, project_id, job_id)
        if before.finished_at_ms is None:
            raise Conflict("it has not ended yet")
        if before.purged_at_ms is not None:
            raise Conflict("its recipients are no longer stored")
        if await store.was_resent(tx, project_id, job_id):
            raise Conflict("it was already resent to recipients with an unknown outcome")
        # Whoever withdrew the permission by which they were chosen does not get it now either.
        permission = before.audience.get("permission")
        asked = Audience(all=True) if permission is None else Audience(permission=permission)
        most = self._limits.broadcast_recipients
        counts = await audience.count_by_bot(tx, project_id, asked, job_id, most)
        if not counts:
            raise Conflict("no subscribed recipient has an unknown outcome")
        now_ms = self._clock.now_ms()
        if before.expires_at_ms is not None and before.expires_at_ms <= now_ms:
            raise Conflict("it has expired: nobody would get it")
        mailing = before.again(
            new_id("job"), asked.to_column(), total=sum(counts.values()), now_ms=now_ms
        )
        await self._add(tx, mailing)
        return mailing

    async def find(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Raises `NotFound`, for another project's mailing as well."""
        mailing = await store.find(tx, project_id, job_id)
        if mailing is None:
            raise _not_found(job_id)
        return mailing

    async def progress(
        self, tx: Tx, project_id: str, job_ids: Iterable[str | None]
    ) -> dict[str | None, MailingProgress]:
        """How far mailings are, by their id, for who started them; what is no mailing is left out."""
        named = [job_id for job_id in job_ids if job_id is not None]
        if not named:
            return {}
        now_ms = self._clock.now_ms()
        found = await store.find_many(tx, project_id, named)
        return {each.job_id: MailingProgress.of(each, now_ms) for each in found}

    async def find_any(self, tx: Tx, job_id: str) -> Mailing:
        """A mailing of whatever project, for an operator. Raises `NotFound`."""
        mailing = await store.find_any(tx, job_id)
        if mailing is None:
            raise _not_found(job_id)
        return mailing

    async def list_any(self, tx: Tx, *, ended: bool, limit: int) -> list[Mailing]:
        """Up to `limit` of all projects, newest first, for an operator; with `ended` also what is over."""
        return await store.list_any(tx, ended=ended, limit=limit)

    async def page(
        self,
        tx: Tx,
        project_id: str,
        source: str,
        status: str | None,
        after: str | None,
        limit: int,
    ) -> list[Mailing]:
        """Up to `limit` of one source, newest first, from `after` on."""
        return await store.list_page(tx, project_id, source, status, after, limit)

    async def recipients(
        self, tx: Tx, mailing: Mailing, status: str | None, after: str | None, limit: int
    ) -> list[Recipient]:
        """Up to `limit` people of a mailing, newest subscribers first, from `after` on."""
        return await recipients.list_page(tx, mailing, status, after, limit)

    def recipients_until_ms(self, mailing: Mailing) -> int | None:
        """Until when it is known who they were, in Unix milliseconds; None while it has not ended."""
        if mailing.finished_at_ms is None:
            return None
        return mailing.finished_at_ms + self._limits.recipient_days * DAY_MS

    async def pause(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """What is in flight is still sent; one that has not begun begins when it is resumed, if its time
        has come by then. Raises `NotFound`, and `Conflict` unless it runs or waits for its time."""
        return await self._change(tx, project_id, job_id, "paused", ("scheduled", "running"))

    async def resume(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Raises `NotFound`, and `Conflict` unless it is paused."""
        before = await self._locked(tx, project_id, job_id)
        to: MailingStatus = "scheduled" if before.started_at_ms is None else "running"
        mailing = await self._change(tx, project_id, job_id, to, ("paused",))
        if mailing.expanded_to is not None:
            await self._jobs.enqueue(tx, expand_job(mailing, mailing.send_at_ms))
        elif ended := await self.finish(tx, project_id, job_id, "completed"):
            # Nobody is left, or nobody ever was.
            return ended
        shards = await store.list_shards(tx, project_id, job_id)
        # A shard whose job is still there goes on with that.
        await self._jobs.enqueue(
            tx, *(send_job(mailing, shard.bot) for shard in shards if not shard.is_done)
        )
        return mailing

    async def continue_shard(
        self, tx: Tx, mailing: Mailing, bot: str, run_at_ms: int, tries: int
    ) -> None:
        """Enqueues the next run of a shard at its time."""
        await self._jobs.enqueue(tx, send_job(mailing, bot, run_at_ms, tries))

    async def must_yield(self, tx: Tx, lane: str) -> bool:
        """Whether something more urgent waits in the lane, for which a mailing makes room."""
        now_ms = self._clock.now_ms()
        return await self._jobs.has_waiting(tx, lane, {URGENT: now_ms, NORMAL: now_ms - LATE_MS})

    async def cancel(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """Nobody else gets it; it has ended when what is in flight has.

        Raises `NotFound`, and `Conflict` for one that has ended.
        """
        before: tuple[MailingStatus, ...] = ("scheduled", "running", "paused")
        await self._change(tx, project_id, job_id, "cancelled", before)
        if ended := await self.finish(tx, project_id, job_id, "cancelled"):
            return ended
        mailing = await self._locked(tx, project_id, job_id)
        # Where the job of a shard died, nobody else settles those whom it had in flight.
        found = await store.list_shards(tx, project_id, job_id)
        shards = [shard for shard in found if shard.in_flight]
        await self._jobs.enqueue(tx, *(send_job(mailing, shard.bot) for shard in shards))
        return mailing

    async def forget_variables(self, tx: Tx, project_id: str, job_id: str) -> None:
        """Takes out the values of a mailing's variables, for whoever deletes what they copy; one that
        has not ended is cancelled. Of a mailing that is not there nothing is said."""
        mailing = await store.lock(tx, project_id, job_id)
        if mailing is None:
            return
        if mailing.status in {"scheduled", "running", "paused"}:
            await self.cancel(tx, project_id, job_id)
        await store.set_content(tx, *mailing.key, without_values(mailing.content))

    async def finish(
        self, tx: Tx, project_id: str, job_id: str, status: MailingStatus
    ) -> Mailing | None:
        """Ends a mailing as `completed` or `cancelled`, and tells of it once; None if it can't yet."""
        now_ms = self._clock.now_ms()
        ended = await store.finish(tx, project_id, job_id, status, now_ms)
        if ended is not None:
            if "subscriber_ids" in ended.audience:
                # It never began. Some of them may be erased later.
                await store.set_audience(tx, ended)
            await self._settle(tx, ended)
            await self._on_ended(tx, ended)
        return ended

    async def _add(self, tx: Tx, mailing: Mailing) -> None:
        await store.insert(tx, mailing)
        charge = Charge(
            mailing.project_id, OPERATION, mailing.job_id, quantity=mailing.charged or 0
        )
        await self._billing.charge(tx, charge)
        await self._jobs.enqueue(tx, expand_job(mailing, mailing.send_at_ms))

    async def _settle(self, tx: Tx, ended: Mailing) -> None:
        """Those who got it are paid for, and nobody else: an audience may have changed since the call."""
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


def _not_found(job_id: str) -> NotFound:
    return NotFound("there is no broadcast {job_id!r}", job_id=job_id)
