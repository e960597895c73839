"""Takes the people of a mailing along its route: whom one channel did not reach gets it by the next one.

All that follows from the outcomes of a group of calls is decided together, in the transaction that records
them: a crash neither skips a channel nor takes one twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.send_attempt import Outcome
from msgsvc_core.db import Tx
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import route_ledger, store
from msgsvc_core.mailings.deliveries import RecipientDelivery
from msgsvc_core.mailings.ledger import RecipientOutcome
from msgsvc_core.mailings.models import Mailing, RecipientStatus
from msgsvc_core.mailings.route_ledger import PersonStep, RowChange
from msgsvc_core.mailings.service import send_job
from msgsvc_core.messages.fields import CopyStatus
from msgsvc_core.messages.models import MessageCopy
from msgsvc_core.routing import RouteStep
from msgsvc_core.routing.choosing import FindStopped
from msgsvc_core.routing.hours import is_within
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: The error of a step that could not be used in its time.
NOT_IN_TIME = "it was not sent in the time of its step"


@value_object
class StepOutcome:
    """What became of a recipient at the step of their channel: `failed`, `unknown` or `skipped`."""

    subscriber_id: str
    channel: str
    status: RecipientStatus
    reason: str | None = None
    error: str | None = None
    tries: int = 0
    variant: int | None = None
    #: Of an end: the subscriber of an earlier step at which it may have arrived, and who stands for the
    #: person. None if it is this one.
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

    async def go_on(
        self, tx: Tx, mailing: Mailing, outcomes: Sequence[StepOutcome]
    ) -> dict[str, StepOutcome]:
        """Takes recipients to the next channels by which they can be reached. Returns the others by their id,
        with what became of them on all channels together; the caller records it.

        The mailing is locked.
        """
        people: Mapping[str, Sequence[PersonStep]] = {}
        if outcomes and len(mailing.steps) > 1:
            people = await route_ledger.find_people(
                tx, mailing, [each.subscriber_id for each in outcomes]
            )
        if not people:
            return {each.subscriber_id: each for each in outcomes}
        obstacles = await self._obstacles(tx, mailing, people)
        ended: dict[str, StepOutcome] = {}
        left: list[RowChange] = []
        following: dict[str, list[RowChange]] = {}
        for outcome in outcomes:
            steps = people.get(outcome.subscriber_id, ())
            changes = self._changes(outcome, steps, obstacles)
            if changes and changes[-1].status == "queued":
                left.append(_passed(outcome))
                following[outcome.subscriber_id] = changes
            else:
                ended[outcome.subscriber_id] = _ending(mailing, outcome, steps, obstacles)
        # Whoever has been erased meanwhile is not in the ledger, and goes nowhere.
        passed = await route_ledger.change(tx, mailing, left)
        moved = [each for key in following if key in passed for each in following[key]]
        await route_ledger.change(tx, mailing, moved)
        await self._wake(tx, mailing, people, moved)
        return ended

    async def stand_in(
        self, tx: Tx, mailing: Mailing, ends: Sequence[tuple[StepOutcome, RecipientOutcome]]
    ) -> None:
        """Of people whom an earlier step may have reached, and no other has: its row stands for them instead
        of the last one, since there nobody knows. With how the last step ended by itself, and what has been
        recorded of its row."""
        stood = await route_ledger.stand_for(
            tx,
            mailing,
            {last.doubted: whole for last, whole in ends if last.doubted is not None},
        )
        last_ones = [
            RowChange(each.subscriber_id, "unknown", "passed", reason=each.reason, error=each.error)
            for each, _ in ends
            if each.doubted in stood
        ]
        await route_ledger.change(tx, mailing, last_ones)

    async def find_past(
        self, tx: Tx, mailing: Mailing, subscriber_ids: Sequence[str]
    ) -> dict[str, list[MessageCopy]]:
        """What became of the steps before those of these recipients, by recipient."""
        people = await route_ledger.find_people(tx, mailing, subscriber_ids)
        now_ms = self._clock.now_ms()
        return {
            subscriber_id: [
                _copy(mailing, each, now_ms)
                for each in steps
                if each.status in {"passed", "doubted"}
            ]
            for subscriber_id, steps in people.items()
        }

    async def _obstacles(
        self, tx: Tx, mailing: Mailing, people: Mapping[str, Sequence[PersonStep]]
    ) -> dict[str, str | None]:
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
        whole = self._whole_obstacle(mailing)
        return {
            subscriber_id: whole
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

    def _whole_obstacle(self, mailing: Mailing) -> str | None:
        """Why nobody goes on to any channel; None if they may. Whoever waited for one that is never used
        would hide what became of the last call."""
        if mailing.status == "cancelled":
            return "cancelled"
        now_ms = self._clock.now_ms()
        is_over = mailing.expires_at_ms is not None and mailing.expires_at_ms <= now_ms
        return "expired" if is_over else None

    def _obstacle(
        self,
        mailing: Mailing,
        row: PersonStep,
        person: Subscriber | None,
        before: Subscriber | None,
        *,
        is_known: bool,
        is_stopped: bool,
    ) -> str | None:
        if person is None or person.status != "active":
            return "not subscribed"
        # They may have been split off meanwhile, or all of the person merged into another.
        if person.external_id not in {row.person, before and before.external_id}:
            return "the subscriber is another person now"
        if not is_known or person.bot != row.bot:
            return "its channel is gone"
        if is_stopped:
            return "its channel is stopped"
        for permission in (mailing.permission, mailing.audience.get("permission")):
            if permission not in {None, *person.permissions}:
                return f"the permission {permission!r} is not granted"
        return step_obstacle(mailing, person.channel, self._clock.now_ms())

    def _changes(
        self,
        outcome: StepOutcome,
        steps: Sequence[PersonStep],
        obstacles: Mapping[str, str | None],
    ) -> list[RowChange]:
        """The changes of the rows that follow: the last one is queued, if a channel is left."""
        changes: list[RowChange] = []
        for each in steps:
            if each.status != "standby":
                continue
            why = obstacles[each.subscriber_id]
            if why is None:
                queued = RowChange(
                    each.subscriber_id,
                    "standby",
                    "queued",
                    due_ms=self._clock.now_ms(),
                    variant=outcome.variant,
                )
                return [*changes, queued]
            changes.append(RowChange(each.subscriber_id, "standby", "passed", error=why))
        return changes

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


def step_of(mailing: Mailing, channel: str) -> RouteStep | None:
    """The step of a mailing's route that uses a channel; None without a route."""
    number = mailing.step_of(channel)
    return None if number is None else mailing.steps[number]


def step_obstacle(mailing: Mailing, channel: str, now_ms: int) -> str | None:
    """Why the step of a route that uses a channel can't be used now; None if it can."""
    step = step_of(mailing, channel)
    if step is None or step.hours is None or is_within(step.hours, now_ms):
        return None
    return "outside the hours of its step"


def goes_on(mailing: Mailing, channel: str, status: str) -> bool:
    """Whether the next channel follows if a call at this one ended so."""
    step = step_of(mailing, channel)
    if step is None or status not in {"failed", "unknown"}:
        return False
    return status == "failed" or step.on_unknown == "continue"


def past_patience(
    mailing: Mailing, delivery: RecipientDelivery, outcome: Outcome, now_ms: int
) -> StepOutcome | None:
    """What becomes of a recipient whose next attempt would come after the time of their step; None if they
    may wait for it. No time ends while the bot may make no calls: see `RouteWatch`."""
    step = step_of(mailing, delivery.subscriber.channel)
    if step is None or step.within_s is None or mailing.steps[-1] is step:
        return None
    if outcome.status == "held" and outcome.retry_at_ms is None:
        return None
    if delivery.in_doubt and step.on_unknown == "stop":
        return None
    retry_at_ms = now_ms if outcome.retry_at_ms is None else outcome.retry_at_ms
    began_ms = now_ms if delivery.began_ms is None else delivery.began_ms
    if retry_at_ms < began_ms + step.within_s * 1000:
        return None
    why = delivery.failure
    reason = None if why is None else str(why.reason)
    return StepOutcome(
        delivery.subscriber_id,
        delivery.subscriber.channel,
        "unknown" if delivery.in_doubt else "failed",
        str(Reason.UNKNOWN) if delivery.in_doubt else reason,
        NOT_IN_TIME if why is None else why.text,
        tries=int(outcome.counts),
        variant=delivery.variant,
    )


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
    steps: Sequence[PersonStep],
    obstacles: Mapping[str, str | None],
) -> StepOutcome:
    """How a route ends that has no further step, as a message's does: as what may have arrived, else as what
    failed, with the reasons of all steps."""
    before = [each for each in steps if each.status in {"passed", "doubted"}]
    words = {each.step: each.error or each.reason or "" for each in before}
    words |= {
        each.step: obstacles[each.subscriber_id] or "" for each in steps if each.status == "standby"
    }
    words[mailing.step_of(outcome.channel) or 0] = outcome.error or outcome.reason or ""
    why = "; ".join(f"{mailing.steps[step].channel}: {words[step]}" for step in sorted(words))
    doubted = [each.subscriber_id for each in before if each.status == "doubted"]
    if outcome.status == "unknown" or doubted:
        return replace(
            outcome,
            status="unknown",
            reason=str(Reason.UNKNOWN),
            error=why,
            doubted=None if outcome.status == "unknown" else doubted[-1],
        )
    failed = [each.reason for each in before if each.reason is not None]
    if outcome.status == "skipped" and failed:
        return replace(outcome, status="failed", reason=failed[-1], error=why)
    return replace(outcome, error=why if len(words) > 1 else outcome.error)


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
