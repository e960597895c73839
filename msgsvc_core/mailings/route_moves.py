"""Takes the people of a mailing along its route: whom one channel did not reach gets it by the next one.

All that follows from the outcomes of a group of calls is decided together, in the transaction that records
them: a crash neither skips a channel nor takes one twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.outbound.send_attempt import Outcome
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import ledger, route_ledger, store
from msgsvc_core.mailings.deliveries import (
    RecipientDelivery,
    has_expired,
    missing_permission,
    step_obstacle,
)
from msgsvc_core.mailings.ledger import RecipientOutcome
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.mailings.route_ledger import PersonStep, RowChange
from msgsvc_core.mailings.service import send_job
from msgsvc_core.messages.fields import CopyStatus
from msgsvc_core.messages.models import FinalStatus, MessageCopy
from msgsvc_core.routing import progress
from msgsvc_core.routing.choosing import FindStopped
from msgsvc_core.routing.progress import (
    CANCELLED,
    EXPIRED,
    Obstacle,
    StepCopy,
    StepStatus,
    Try,
    find_obstacle,
)
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: The statuses of the rows of steps that are over.
PAST = frozenset({"passed", "doubted"})

#: The error of a step that could not be used in its time.
NOT_IN_TIME = "it was not sent in the time of its step"


@value_object
class StepOutcome:
    """What became of a recipient at the step of their channel: `failed`, `unknown` or `skipped`."""

    subscriber_id: str
    channel: str
    status: StepStatus
    reason: str | None = None
    error: str | None = None
    tries: int = 0
    variant: int | None = None


@value_object
class RouteEnd:
    """How a route ended for a person on all channels together."""

    #: What became of the last step by itself.
    last: StepOutcome
    status: StepStatus
    reason: str | None
    error: str | None
    #: The subscriber of an earlier step at which it may have arrived, and who stands for the person; None if
    #: it is that of the last one.
    doubted: str | None = None


class MailingRoutes:
    """Ends steps of mailings with a route."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        channels: Channels,
        subscribers: Subscribers,
        find_stopped: FindStopped,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._subscribers = subscribers
        self._find_stopped = find_stopped

    async def pass_over(
        self, tx: Tx, mailing: Mailing, passed: Sequence[tuple[str, str, str]]
    ) -> dict[str, RouteEnd]:
        """As `go_on`, for recipients who were not called, each with the channel and the reason."""
        variants: Mapping[str, int] = {}
        if mailing.experiment is not None:
            ids = [subscriber_id for subscriber_id, _, _ in passed]
            variants = await ledger.find_variants(tx, *mailing.key, ids)
        return await self.go_on(
            tx,
            mailing,
            [
                StepOutcome(each, channel, "skipped", error=why, variant=variants.get(each))
                for each, channel, why in passed
            ],
        )

    async def go_on(
        self, tx: Tx, mailing: Mailing, outcomes: Sequence[StepOutcome]
    ) -> dict[str, RouteEnd]:
        """Takes recipients to the next channels by which they can be reached. Returns the others by their id,
        with what became of them on all channels together; the caller records it.

        The mailing is locked.
        """
        people: Mapping[str, Sequence[PersonStep]] = {}
        if outcomes and len(mailing.steps) > 1:
            people = await route_ledger.find_people(
                tx, mailing, [each.subscriber_id for each in outcomes]
            )
        obstacles = await self._obstacles(tx, mailing, people) if people else {}
        now_ms = self._clock.now_ms()
        ended: dict[str, RouteEnd] = {}
        left: list[RowChange] = []
        following_rows: dict[str, list[RowChange]] = {}
        for outcome in outcomes:
            person = people.get(outcome.subscriber_id, ())
            changes = _changes(mailing, outcome, person, obstacles, now_ms)
            if changes:
                left.append(_passed(outcome))
                following_rows[outcome.subscriber_id] = changes
            else:
                end = _ending(mailing, outcome, person, obstacles, now_ms)
                ended[outcome.subscriber_id] = end
        if not left:
            return ended
        # Whoever has been erased meanwhile is not in the ledger, and goes nowhere.
        passed = await route_ledger.change(tx, mailing, left)
        moved = [each for key in following_rows if key in passed for each in following_rows[key]]
        await route_ledger.change(tx, mailing, moved)
        await self._wake(tx, mailing, people, moved)
        return ended

    async def stand_in(
        self, tx: Tx, mailing: Mailing, ends: Sequence[tuple[RouteEnd, RecipientOutcome]]
    ) -> None:
        """Of people whom an earlier step may have reached, and no other has: its row stands for them instead
        of the last one, since there nobody knows. Each with what has been recorded of the last row."""
        stood = await route_ledger.stand_for(
            tx,
            mailing,
            {end.doubted: row for end, row in ends if end.doubted is not None},
        )
        last_ones = [
            RowChange(
                end.last.subscriber_id,
                "unknown",
                "passed",
                reason=end.last.reason,
                error=end.last.error,
            )
            for end, _ in ends
            if end.doubted in stood
        ]
        await route_ledger.change(tx, mailing, last_ones)

    async def find_past(
        self, tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]
    ) -> dict[str, list[MessageCopy]]:
        """What became of the steps before those of these recipients, by recipient."""
        people = await route_ledger.find_people(tx, mailing, subscriber_ids)
        now_ms = self._clock.now_ms()
        return {
            subscriber_id: [_copy(mailing, each, now_ms) for each in steps if each.status in PAST]
            for subscriber_id, steps in people.items()
        }

    async def _obstacles(
        self, tx: Tx, mailing: Mailing, people: Mapping[str, Sequence[PersonStep]]
    ) -> dict[str, Obstacle | None]:
        """Why the channels that are left can't be used now, by subscriber; None if they can."""
        #: With the subscriber at whose step the person is.
        left = {
            each.subscriber_id: (each, given)
            for given, steps in people.items()
            for each in steps
            if each.status == "standby"
        }
        found = await self._subscribers.get_many(
            tx, [(mailing.project_id, each) for each in (*left, *people)]
        )
        bots = sorted({each.bot for each, _ in left.values()})
        stopped = await self._find_stopped(tx, bots) if bots else {}
        known = {bot: await self._channels.find(bot) is not None for bot in bots}
        over = self._why_over(mailing)
        return {
            subscriber_id: over
            or self._obstacle(
                mailing,
                each,
                found.get((mailing.project_id, subscriber_id)),
                found.get((mailing.project_id, given)),
                is_known=known[each.bot],
                is_stopped=bool(stopped.get(each.bot)),
            )
            for subscriber_id, (each, given) in left.items()
        }

    def _why_over(self, mailing: Mailing) -> Obstacle | None:
        """Why nobody goes on to any channel; None if they may. Whoever waited for one that is never used
        would hide what became of the last call."""
        if mailing.status == "cancelled":
            return CANCELLED
        return EXPIRED if has_expired(mailing, self._clock.now_ms()) else None

    def _obstacle(
        self,
        mailing: Mailing,
        row: PersonStep,
        person: Subscriber | None,
        before: Subscriber | None,
        *,
        is_known: bool,
        is_stopped: bool,
    ) -> Obstacle | None:
        if person is None:
            return find_obstacle(status=None)
        return find_obstacle(
            status=person.status,
            # They may have been split off meanwhile, or all of the person merged into another.
            is_same_person=person.external_id in {row.person, before and before.external_id},
            has_channel=is_known and person.bot == row.bot,
            missing_permission=missing_permission(mailing, person),
            is_stopped=is_stopped,
        ) or step_obstacle(mailing, person.channel, self._clock.now_ms())

    async def _wake(
        self,
        tx: Tx,
        mailing: Mailing,
        people: Mapping[str, Sequence[PersonStep]],
        moved: Sequence[RowChange],
    ) -> None:
        """Has the shards of those bots go on which have more to do."""
        bot_of = {each.subscriber_id: each.bot for steps in people.values() for each in steps}
        bots = sorted({bot_of[each.subscriber_id] for each in moved if each.status == "queued"})
        if bots:
            await store.reopen_shards(tx, mailing, bots)
            if mailing.status == "running":
                jobs = [send_job(mailing, bot) for bot in bots]
                await self._jobs.enqueue(tx, *jobs)
                for job in jobs:
                    # It may sleep until somebody's retry is due.
                    await self._jobs.bring_forward(tx, job)


def ended_step(
    mailing: Mailing, delivery: RecipientDelivery, end: FinalStatus
) -> StepOutcome | None:
    """What became of a recipient's step by their last call, if the next channel may follow."""
    channel = delivery.subscriber.channel
    status: StepStatus = "unknown" if end.status == "unknown" else "failed"
    if end.status == "sent" or not _goes_on(mailing, channel, status):
        return None
    return StepOutcome(
        delivery.subscriber_id,
        channel,
        status,
        end.reason,
        end.error,
        tries=1,
        variant=delivery.variant,
    )


def past_patience(
    mailing: Mailing, delivery: RecipientDelivery, outcome: Outcome, now_ms: int
) -> StepOutcome | None:
    """What becomes of a recipient whose next attempt would come after the time of their step; None if they
    may wait for it. No time ends while the bot may make no calls: see `RouteWatch`."""
    channel = delivery.subscriber.channel
    status: StepStatus = "unknown" if delivery.in_doubt else "failed"
    is_closed = outcome.status == "held" and outcome.retry_at_ms is None
    if is_closed or not _goes_on(mailing, channel, status):
        return None
    began_ms = now_ms if delivery.began_ms is None else delivery.began_ms
    left_ms = progress.deadline_ms(mailing.steps, mailing.step_of(channel) or 0, began_ms)
    retry_at_ms = now_ms if outcome.retry_at_ms is None else outcome.retry_at_ms
    if left_ms is None or retry_at_ms < left_ms:
        return None
    why = delivery.failure
    reason = None if why is None else str(why.reason)
    return StepOutcome(
        delivery.subscriber_id,
        channel,
        status,
        str(Reason.UNKNOWN) if delivery.in_doubt else reason,
        NOT_IN_TIME if why is None else why.text,
        tries=int(outcome.counts),
        variant=delivery.variant,
    )


def _goes_on(mailing: Mailing, channel: str, status: StepStatus) -> bool:
    """Whether the next channel follows if the step of this one ended so; False without a route."""
    at = mailing.step_of(channel)
    return at is not None and progress.goes_on(mailing.steps[at], status)


def _changes(
    mailing: Mailing,
    outcome: StepOutcome,
    person: Sequence[PersonStep],
    obstacles: Mapping[str, Obstacle | None],
    now_ms: int,
) -> list[RowChange]:
    """The changes of a person's rows by which they go on, the last of which is queued; empty if they end."""
    standby = [each for each in person if each.status == "standby"]
    found = [obstacles[each.subscriber_id] for each in standby]
    next_step = progress.following(
        mailing.steps,
        mailing.step_of(outcome.channel) or 0,
        outcome.status,
        [None if each is None else each.reason for each in found],
    )
    if not isinstance(next_step, Try):
        return []
    changes = [
        RowChange(row.subscriber_id, "standby", "passed", error=why.text)
        for row, why in zip(standby[: next_step.position], found, strict=False)
        if why is not None
    ]
    to = standby[next_step.position]
    queued = RowChange(
        to.subscriber_id, "standby", "queued", due_ms=now_ms, variant=outcome.variant
    )
    return [*changes, queued]


def _passed(outcome: StepOutcome) -> RowChange:
    return RowChange(
        outcome.subscriber_id,
        "queued",
        "doubted" if outcome.status == "unknown" else "passed",
        reason=outcome.reason,
        error=outcome.error,
        tries=outcome.tries,
    )


def _ending(
    mailing: Mailing,
    outcome: StepOutcome,
    person: Sequence[PersonStep],
    obstacles: Mapping[str, Obstacle | None],
    now_ms: int,
) -> RouteEnd:
    """How a route ends that has no further step, as a message's does."""
    last = replace(outcome, channel=mailing.steps[mailing.step_of(outcome.channel) or 0].channel)
    before = [_copy(mailing, each, now_ms) for each in person if each.status in PAST]
    later = [
        _copy(mailing, replace(each, error=why.text), now_ms)
        for each in person
        if each.status == "standby" and (why := obstacles[each.subscriber_id]) is not None
    ]
    copies: list[StepCopy] = [*before, last, *later]
    end = progress.ending(copies)
    status, is_unknown = end.copy.status, end.copy.status == "unknown"
    return RouteEnd(
        outcome,
        status,
        str(Reason.UNKNOWN) if is_unknown else end.copy.reason,
        end.why if len(copies) > 1 else outcome.error,
        doubted=end.copy.subscriber_id if is_unknown and end.copy is not last else None,
    )


def _copy(mailing: Mailing, row: PersonStep, now_ms: int) -> MessageCopy:
    status: CopyStatus = "skipped" if row.reason is None else "failed"
    if row.status == "doubted":
        status = "unknown"
    return MessageCopy(
        step=row.step,
        channel=mailing.steps[row.step].channel,
        # Of a step that was passed over nobody is named.
        subscriber_id=None if status == "skipped" else row.subscriber_id,
        bot=None if status == "skipped" else row.bot,
        status=status,
        reason=row.reason,
        error=row.error,
        message_ref=None,
        finished_at_ms=now_ms,
    )
