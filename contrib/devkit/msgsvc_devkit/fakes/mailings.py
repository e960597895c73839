"""Mailings in memory, which can be started, paused and cancelled, but are not sent."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from msgsvc_core.billing import BillingGate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.mailings.content import without_values
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.models import (
    MOST_LOOKED_AT,
    Audience,
    AudienceBreakdown,
    LeftOut,
    Mailing,
    MailingProgress,
    MailingStatus,
    NewMailing,
    NotSent,
    OutcomeReason,
    PartOutcomes,
    Recipient,
)
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.mailings.validation import AudienceNames, MailingValidation, PreparedMailing
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.billing import FakeBilling
from msgsvc_devkit.fakes.channels import FakeChannels
from msgsvc_devkit.fakes.jobs import FakeJobQueue
from msgsvc_devkit.fakes.messages import LIMITS, FakeTemplates
from msgsvc_devkit.fakes.routing import FakeRoutes
from msgsvc_devkit.fakes.secrets import fake_secrets
from msgsvc_devkit.fakes.subscribers import FakeSubscribers


class FakeMailings(Mailings):
    """`by_id` contains the started mailings, `ledger` the recipients of each whose outcome a test has set,
    `assigned` the numbers of the variants that a test has given to subscribers of each,
    and `ended` the ended ones; `tested` those whose first stage has ended. They are not sent: `finish` ends
    one, and `complete` the first stage of an experiment."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        jobs: JobQueue | None = None,
        billing: BillingGate | None = None,
        channels: Channels | None = None,
        templates: Templates | None = None,
        subscribers: FakeSubscribers | None = None,
        limits: LimitSettings | None = None,
        routes: FakeRoutes | None = None,
    ) -> None:
        clock = clock or FakeClock()
        limits = limits or LimitSettings()
        channels = channels or FakeChannels(clock=clock)
        self.by_id: dict[str, Mailing] = {}
        self.ledger: dict[str, list[Recipient]] = {}
        self.assigned: dict[str, dict[str, int]] = {}
        self.ended: list[Mailing] = []
        self.tested: list[Mailing] = []
        super().__init__(
            clock=clock,
            jobs=jobs or FakeJobQueue(clock),
            billing=billing or FakeBilling(),
            validation=FakeMailingValidation(
                subscribers or FakeSubscribers(clock=clock, channels=channels),
                clock=clock,
                channels=channels,
                templates=templates or FakeTemplates(clock=clock, channels=channels),
                limits=limits,
                routes=routes,
            ),
            limits=limits,
            on_ended=self._record_end,
            on_tested=self._record_test,
        )

    async def was_resent(self, tx: Tx, mailing: Mailing) -> bool:
        return any(each.resend_of == mailing.job_id for each in self.by_id.values())

    async def resend_unknown(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        before = await self.find(tx, project_id, job_id)
        if before.finished_at_ms is None:
            raise Conflict("it has not ended yet")
        if await self.was_resent(tx, before):
            raise Conflict("it was already resent to recipients with an unknown outcome")
        total = sum(each.status == "unknown" for each in self.ledger.get(job_id, ()))
        if not total:
            raise Conflict("no subscribed recipient has an unknown outcome")
        now_ms = self._clock.now_ms()
        mailing = before.again(
            new_id("job"), Audience(all=True).to_column(), total=total, now_ms=now_ms
        )
        await self._add(tx, mailing)
        return mailing

    async def find(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        mailing = await self.find_any(tx, job_id)
        if mailing.project_id != project_id:
            raise NotFound("there is no broadcast {job_id!r}", job_id=job_id)
        return mailing

    async def progress(
        self, tx: Tx, project_id: str, job_ids: Iterable[str | None]
    ) -> dict[str | None, MailingProgress]:
        now_ms = self._clock.now_ms()
        found = [self.by_id[each] for each in job_ids if each is not None and each in self.by_id]
        return {
            each.job_id: MailingProgress.of(each, now_ms)
            for each in found
            if each.project_id == project_id
        }

    async def find_any(self, tx: Tx, job_id: str) -> Mailing:
        if job_id not in self.by_id:
            raise NotFound("there is no broadcast {job_id!r}", job_id=job_id)
        return self.by_id[job_id]

    async def list_any(self, tx: Tx, *, ended: bool, limit: int) -> list[Mailing]:
        newest = sorted(self.by_id.values(), key=lambda each: each.job_id, reverse=True)
        return [each for each in newest if ended or each.finished_at_ms is None][:limit]

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
        newest = await self.list_any(tx, ended=True, limit=len(self.by_id))
        return [
            each
            for each in (newest[::-1] if ascending else newest)
            if (each.project_id, each.source) == (project_id, source)
            and status in {None, each.status}
            and (after is None or (each.job_id > after if ascending else each.job_id < after))
        ][:limit]

    async def recipients(
        self,
        tx: Tx,
        mailing: Mailing,
        status: str | None,
        after: str | None,
        limit: int,
        reason: str | None = None,
    ) -> list[Recipient]:
        ledger = self.ledger.get(mailing.job_id, [])
        newest = sorted(ledger, key=lambda each: each.subscriber_id, reverse=True)
        return [
            each
            for each in newest
            if status in {None, each.status}
            and reason in {None, each.reason}
            and (after is None or each.subscriber_id < after)
        ][:limit]

    async def find_recipient(
        self, tx: Tx, mailing: Mailing, subscriber_id: str
    ) -> Recipient | None:
        ledger = self.ledger.get(mailing.job_id, ())
        return next((each for each in ledger if each.subscriber_id == subscriber_id), None)

    async def reasons(
        self, tx: Tx, mailing: Mailing, limit: int = MOST_LOOKED_AT
    ) -> list[OutcomeReason]:
        ledger = self.ledger.get(mailing.job_id, [])
        reasons: list[OutcomeReason] = []
        for status in get_args(NotSent):
            these = [each for each in ledger if each.status == status][:limit]
            found = Counter(each.error if status == "skipped" else each.reason for each in these)
            reasons += [OutcomeReason(status, why, number) for why, number in found.most_common()]
        return reasons

    async def resume(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        before = await self.find(tx, project_id, job_id)
        to: MailingStatus = "scheduled" if before.started_at_ms is None else "running"
        return await self._change(tx, project_id, job_id, to, ("paused",))

    async def cancel(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        before: tuple[MailingStatus, ...] = ("scheduled", "running", "paused")
        await self._change(tx, project_id, job_id, "cancelled", before)
        return await self.finish(tx, project_id, job_id, "cancelled") or self.by_id[job_id]

    async def forget_variables(self, tx: Tx, project_id: str, job_id: str) -> None:
        mailing = self.by_id.get(job_id)
        if mailing is None or mailing.project_id != project_id:
            return
        if mailing.status in {"scheduled", "running", "paused"}:
            mailing = await self.cancel(tx, project_id, job_id)
        self.by_id[job_id] = replace(mailing, content=without_values(mailing.content))

    async def choose(
        self, tx: Tx, project_id: str, job_id: str, winner: int, decision: Mapping[str, Any]
    ) -> Mailing | None:
        mailing = await self.find(tx, project_id, job_id)
        if mailing.finished_at_ms is not None or not mailing.is_testing:
            return None
        kept = {**decision, "at_ms": self._clock.now_ms()}
        self.by_id[job_id] = replace(mailing, stage="rest", winner=winner, decision=kept)
        return self.by_id[job_id]

    async def variant_outcomes(self, tx: Tx, mailing: Mailing) -> list[PartOutcomes]:
        given = self.assigned.get(mailing.job_id, {})
        statuses = {each.subscriber_id: each.status for each in self.ledger.get(mailing.job_id, ())}
        outcomes: list[PartOutcomes] = []
        for number, variant in enumerate(mailing.variants):
            found = Counter(
                statuses.get(each, "queued") for each, which in given.items() if which == number
            )
            outcomes.append(
                PartOutcomes(
                    variant["name"],
                    sent=found["sent"],
                    failed=found["failed"] + found["unknown"],
                    unknown=found["unknown"],
                    skipped=found["skipped"],
                    total=found.total(),
                )
            )
        return outcomes

    async def channel_outcomes(self, tx: Tx, mailing: Mailing) -> list[PartOutcomes]:
        found = Counter((each.step, each.status) for each in self.ledger.get(mailing.job_id, ()))
        return [
            PartOutcomes(
                step.channel,
                sent=found[number, "sent"],
                failed=found[number, "failed"] + found[number, "unknown"],
                unknown=found[number, "unknown"],
                skipped=found[number, "skipped"],
                total=sum(count for (which, _), count in found.items() if which == number),
            )
            for number, step in enumerate(mailing.steps)
        ]

    async def variants_sent_to(
        self, tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]
    ) -> dict[str, int]:
        ledger = self.ledger.get(mailing.job_id, ())
        sent = {each.subscriber_id for each in ledger if each.status == "sent"}
        given = self.assigned.get(mailing.job_id, {})
        return {each: given[each] for each in subscriber_ids if each in given and each in sent}

    async def finish(
        self, tx: Tx, project_id: str, job_id: str, status: MailingStatus
    ) -> Mailing | None:
        mailing = await self.find(tx, project_id, job_id)
        expected = "running" if status == "completed" else "cancelled"
        if mailing.finished_at_ms is not None or mailing.status != expected:
            return None
        ended = replace(
            mailing,
            status=status,
            skipped=mailing.total - mailing.sent - mailing.failed,
            finished_at_ms=self._clock.now_ms(),
            audience=mailing.shown_audience,
        )
        self.by_id[job_id] = ended
        await self._settle(tx, ended)
        await self._on_ended(tx, ended)
        return ended

    async def complete(self, tx: Tx, mailing: Mailing) -> Mailing | None:
        if mailing.stage != "test":
            return await self.finish(tx, *mailing.key, "completed")
        tested = replace(mailing, stage="waiting", tested_at_ms=self._clock.now_ms())
        self.by_id[mailing.job_id] = tested
        await self._on_tested(tx, tested)
        return None

    async def _add(self, tx: Tx, mailing: Mailing) -> None:
        await super()._add(tx, mailing)
        self.by_id[mailing.job_id] = mailing

    async def _change(
        self,
        tx: Tx,
        project_id: str,
        job_id: str,
        status: MailingStatus,
        before: tuple[MailingStatus, ...],
    ) -> Mailing:
        mailing = await self.find(tx, project_id, job_id)
        if mailing.finished_at_ms is not None or mailing.status not in before:
            raise Conflict("it is {status}", status=mailing.status)
        self.by_id[job_id] = replace(mailing, status=status)
        return self.by_id[job_id]

    async def _record_test(self, _tx: Tx, mailing: Mailing) -> None:
        self.tested.append(mailing)

    async def _record_end(self, _tx: Tx, mailing: Mailing) -> None:
        self.ended.append(mailing)


class FakeMailingValidation(MailingValidation):
    """Counts an audience among the subscribers of a `FakeSubscribers`."""

    def __init__(
        self,
        subscribers: FakeSubscribers,
        *,
        clock: Clock,
        channels: Channels,
        templates: Templates,
        limits: LimitSettings,
        routes: FakeRoutes | None = None,
    ) -> None:
        super().__init__(
            clock=clock,
            channels=channels,
            templates=templates,
            names=AudienceNames(
                tags=subscribers.tags,
                permissions=subscribers.permissions,
                routes=routes or FakeRoutes(clock=clock, channels=channels),
            ),
            limits=limits,
            links=LinkTracking(secrets=fake_secrets(), base_url="https://msgsvc.example"),
            languages=("en", "ru"),
            default_lang="en",
        )
        self._message_limits = LIMITS
        self._subscribers = subscribers

    async def judge(self, tx: Tx, project_id: str, new: NewMailing) -> PreparedMailing:
        if new.send_at_ms is not None and new.send_at_ms < self._clock.now_ms():
            raise ValidationFailed("is in the past", field="send_at")
        self._check_sizes(new)
        await self._check_names(tx, project_id, new)
        people = [each for each in self._people(project_id) if _is_meant(each, new.audience)]
        counts = self._by_bot(people)
        content, variants = await self._contents(tx, project_id, new, counts)
        route = await self._names.find_route(tx, project_id, new.route_id, new.audience)
        if route is not None:
            return PreparedMailing(content, counts, 0, variants, route)
        named = new.audience.subscriber_ids or ()
        unreachable = sum(each.status != "active" for each in people) if named else 0
        if new.audience.names_alone:
            unreachable = len(set(named)) - sum(counts.values())
        return PreparedMailing(content, counts, unreachable, variants)

    async def break_down(
        self,
        tx: Tx,
        project_id: str,
        asked: Audience,
        permission: str | None,
        route_id: str | None = None,
    ) -> AudienceBreakdown:
        await self._check_audience(tx, project_id, asked, permission)
        await self._names.find_route(tx, project_id, route_id, asked)
        needed = {asked.permission, permission} - {None}
        bots = [channel.key for channel in self._channels.list_for_project(project_id)]
        filters = asked.model_copy(update={"channels": None, "permission": None})
        found = Counter(
            _reason(each, asked.channels, bots, needed)
            for each in self._people(project_id)
            if _is_meant(each, filters)
        )
        most = self._limits.broadcast_recipients
        if found["reached"] > most:
            raise ValidationFailed("more than {limit:,} subscribers", field="audience", limit=most)
        reasons = get_args(LeftOut)
        left_out = {each: found[each] for each in reasons if each in found}
        return AudienceBreakdown(found["reached"], left_out, found.total() <= MOST_LOOKED_AT)

    def _people(self, project_id: str) -> list[Subscriber]:
        return [each for each in self._subscribers.everybody if each.project_id == project_id]

    def _by_bot(self, people: Iterable[Subscriber]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in people:
            if each.status == "active":
                counts[each.bot] = counts.get(each.bot, 0) + 1
        most = self._limits.broadcast_recipients
        if sum(counts.values()) > most:
            raise ValidationFailed("more than {limit:,} subscribers", field="audience", limit=most)
        return counts


def _reason(
    subscriber: Subscriber,
    channels: Collection[str] | None,
    bots: Collection[str],
    needed: Collection[str | None],
) -> LeftOut | Literal["reached"]:
    if subscriber.status != "active":
        return subscriber.status
    if channels and subscriber.channel not in channels:
        return "channel"
    if subscriber.bot not in bots:
        return "bot"
    return "reached" if set(needed) <= set(subscriber.permissions) else "permission"


def _is_meant(person: Subscriber, asked: Audience) -> bool:
    """Whether an audience includes the subscriber, if active."""
    tags = set(person.tags)
    return (
        (not asked.tags_any or bool(tags & set(asked.tags_any)))
        and (not asked.tags_all or tags >= set(asked.tags_all))
        and (not asked.tags_none or not tags & set(asked.tags_none))
        and asked.permission in {None, *person.permissions}
        and (not asked.channels or person.channel in asked.channels)
        and (not asked.langs or person.lang in asked.langs)
        and (not asked.subscriber_ids or person.subscriber_id in asked.subscriber_ids)
    )
