"""Moves messages along their routes: from a step that failed, or waited in vain, to the next one.

A message has a copy of its route's steps, and is at one of them: its recipient and bot are those of the
step, and a job of the bot's lane delivers it. Each move is one conditional UPDATE, in the transaction that
ends the step before; so a crash neither skips a step nor takes one twice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.events import Events, NewEvent
from msgsvc_core.jobs.contract import NORMAL, Job, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import route_store, store
from msgsvc_core.messages.deliveries import Delivery
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.fields import CopyStatus, MessageStatus
from msgsvc_core.messages.models import FinalStatus, Message, MessageCopy
from msgsvc_core.messages.outcomes import (
    failure_event,
    final_status,
    skipped_event,
    success_event,
)
from msgsvc_core.messages.route_store import State
from msgsvc_core.routing import RouteChooser, RouteStep
from msgsvc_core.routing.choosing import RoutedPerson
from msgsvc_core.routing.models import Candidate, Choice, SkippedReason, SkippedStep
from msgsvc_core.routing.progress import (
    LATE,
    End,
    Obstacle,
    Try,
    Wait,
    deadline_ms,
    ending,
    following,
    goes_on,
    is_done,
)
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: Why a message ends whose person was erased while it waited.
GONE = "the subscriber is gone"

#: Of a message that is over, or whose person is being erased: no step is left.
NOTHING = Choice()

#: The job that looks at a step after its time.
DEADLINE = "message.route"


def add_first(
    unit: WriteBatch, jobs: JobQueue, message: Message, skipped: Sequence[SkippedStep]
) -> None:
    """Adds what a new message with a route needs besides its row: its delivery and its deadline at the first
    step, and the steps that were passed over before it."""
    for skip in skipped:
        route_store.add_copy(unit, message, _passed_over(skip, message.created_at_ms))
    for job in _jobs_of(message, message.created_at_ms):
        jobs.add(unit, job)


async def merge_people(tx: Tx, project_id: str, external_id: str, into: str) -> None:
    """Messages that wait for a person whose id ends are for the one whose id stays."""
    await route_store.merge_people(tx, project_id, external_id, into)


class RouteMoves:
    """Ends the steps of messages with a route. What ends a message is returned: the caller counts it."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        subscribers: Subscribers,
        chooser: RouteChooser,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._subscribers = subscribers
        self._chooser = chooser

    async def settle(self, tx: Tx, deliveries: Sequence[Delivery]) -> list[FinalStatus]:
        """After the last call of a step. A message that is not at the step any more stays as it is."""
        ending: list[tuple[Message, MessageCopy]] = []
        waiting: list[tuple[Delivery, MessageCopy]] = []
        moving: list[tuple[Message, MessageCopy | None]] = []
        for delivery in deliveries:
            message, copy = delivery.message, self._outcome(delivery)
            if goes_on(_step_of(message), copy.status):
                moving.append((message, copy))
            elif isinstance(_following(message, copy), Wait):
                waiting.append((delivery, copy))
            else:
                ending.append((message, copy))
        return [
            *await self._end_calls(tx, ending),
            *await self._wait(tx, waiting),
            *await self._go_on(tx, moving, "calling"),
        ]

    async def skip(self, tx: Tx, skipped: Sequence[tuple[Delivery, Obstacle]]) -> list[FinalStatus]:
        """Steps whose person can't be written to any more, each with the reason."""
        over = [
            (
                each.message,
                self._copy(each.message, "skipped", reason=str(why.reason), error=why.text),
            )
            for each, why in skipped
        ]
        return await self._go_on(tx, over, "queued")

    async def go_on(
        self, tx: Tx, message: Message, state: State, copy: MessageCopy | None
    ) -> FinalStatus | None:
        """Takes a message in this state to the next step by which the person can be reached, or ends it.

        `copy` is what became of the step; None if that is recorded already. Returns how it ended; None if it
        goes on, or was not in this state.
        """
        ended = await self._go_on(tx, [(message, copy)], state)
        return ended[0] if ended else None

    async def _go_on(
        self, tx: Tx, over: Sequence[tuple[Message, MessageCopy | None]], state: State
    ) -> list[FinalStatus]:
        """As `go_on`, of many messages."""
        choices = await self._choose(tx, [message for message, _ in over])
        moving: list[tuple[tuple[Message, MessageCopy | None], Choice]] = []
        exhausted: list[tuple[tuple[Message, MessageCopy | None], Choice]] = []
        for each, choice in zip(over, choices, strict=True):
            is_next = isinstance(_following(*each, choice), Try)
            (moving if is_next else exhausted).append((each, choice))
        await self._move(tx, moving, state)
        ended = [
            await self._exhaust(tx, message, state, copy, choice)
            for (message, copy), choice in exhausted
        ]
        return [end for end in ended if end is not None]

    async def _exhaust(
        self, tx: Tx, message: Message, state: State, copy: MessageCopy | None, choice: Choice
    ) -> FinalStatus | None:
        """Ends a message whose route has no step left that reaches the person."""
        copies = await route_store.find_copies(tx, message)
        over = [*copies, *([] if copy is None else [copy])]
        if all(each.subscriber_id is None for each in over):
            # What was sent is gone, with the person who got it.
            over.append(self._gone(message))
        later = [_passed_over(skip, self._clock.now_ms()) for skip in choice.skipped]
        end = _ending([*over, *later])
        # As of the last step that was tried: it is the one that the message shows.
        if not await self._finish(tx, message, state, end):
            return None
        passed = [*([] if copy is None else [copy]), *later]
        await route_store.put_copies(tx, [(message, each, None) for each in passed])
        [told] = await self._tell(tx, [(message, end)])
        return told

    async def stop(self, tx: Tx, message: Message, copy: MessageCopy | None) -> FinalStatus | None:
        """Ends a message without a further step, as what was accepted or may have arrived. `copy` is what
        became of the step that it is at, if that is not recorded."""
        return await self._exhaust(tx, message, "open", copy, NOTHING)

    async def end_by(self, tx: Tx, message: Message, copy: MessageCopy) -> FinalStatus | None:
        """Ends a route by a copy that was sent, at this step or an earlier one; None if it has ended."""
        if not await self._finish(tx, message, "open", copy):
            return None
        [told] = await self._tell(tx, [(message, copy)])
        return told

    async def look_again(self, tx: Tx, job: Job, after_s: float) -> None:
        """Looks at a step once more, after its deadline."""
        run_at_ms = self._clock.now_ms() + round(after_s * 1000)
        again = NewJob(DEADLINE, job.payload, run_at_ms=run_at_ms, project_id=job.project_id)
        await self._jobs.enqueue(tx, again)

    def copy_of(self, message: Message, status: CopyStatus, **fields: Any) -> MessageCopy:
        """What became of the step that a message is at."""
        return self._copy(message, status, **fields)

    def _outcome(self, delivery: Delivery) -> MessageCopy:
        """What became of a step by its last call."""
        message = delivery.message
        status = final_status(delivery, message)
        return self._copy(
            message,
            cast(CopyStatus, status.status),
            reason=status.reason,
            error=status.error,
            message_ref=status.ref,
        )

    async def _end_calls(
        self, tx: Tx, ending: Sequence[tuple[Message, MessageCopy]]
    ) -> list[FinalStatus]:
        """Ends messages by the step whose call is over."""
        now_ms = self._clock.now_ms()
        finished = await route_store.finish_calls(tx, ending, now_ms)
        ended = [each for each in ending if each[0].key in finished]
        for message, _ in ended:
            await self._forget_answerers(tx, message)
        await route_store.put_copies(tx, [(message, copy, None) for message, copy in ended])
        late = [
            await self._late(tx, message, copy)
            for message, copy in ending
            if message.key not in finished
        ]
        return [*await self._tell(tx, ended), *(end for end in late if end is not None)]

    async def _wait(
        self, tx: Tx, waiting: Sequence[tuple[Delivery, MessageCopy]]
    ) -> list[FinalStatus]:
        """The steps are done when the platform reports it, or the person answers. Their deadlines are there
        since they began."""
        begun = await route_store.await_reports(
            tx, [(each.message, _step_of(each.message).until, copy) for each, copy in waiting]
        )
        copies: list[tuple[Message, MessageCopy, str | None]] = []
        ended: list[FinalStatus | None] = []
        for delivery, copy in waiting:
            message, person = delivery.message, delivery.subscriber
            if message.key in begun:
                is_answered = _step_of(message).until == "answered"
                copies.append((message, copy, person.user_id if is_answered and person else None))
            else:
                ended.append(await self._late(tx, message, copy))
        await route_store.put_copies(tx, copies)
        return [end for end in ended if end is not None]

    async def _late(self, tx: Tx, message: Message, copy: MessageCopy) -> FinalStatus | None:
        """The message has left the step meanwhile: the runner was suspended, or an earlier step has ended the
        route. What was sent is a copy, and ends the route if that was the aim."""
        now = await store.find(tx, *message.key)
        if now is None or now.route_step is None:
            return None
        known = {each.step for each in await route_store.find_copies(tx, message)}
        if copy.status == "sent" or copy.step not in known:
            await route_store.put_copies(tx, [(message, copy, None)])
        ends = copy.status == "sent" and is_done(message.steps[copy.step], "sent")
        return await self.end_by(tx, now, copy) if ends and now.route_step > copy.step else None

    async def _choose(self, tx: Tx, messages: Sequence[Message]) -> list[Choice]:
        """What the steps after the present one come to; nothing if they are over, if the message has expired,
        or if the person is being erased."""
        now_ms = self._clock.now_ms()
        going = [each for each in messages if _has_further_steps(each, now_ms)]
        # The subscriber of the step may be another person by now: the message stays with its own, whose id a
        # merge may have changed since it was read.
        named = await route_store.find_people(tx, going)
        people = await self._subscribers.list_recipients_of(
            tx, [(each.project_id, each.subscriber_id, named.get(each.key)) for each in going]
        )
        found = [(each, known) for each, known in zip(going, people, strict=True) if known]
        routed = [
            RoutedPerson(
                each.project_id,
                each.steps,
                known,
                permission=each.permission,
                first=cast(int, each.route_step) + 1,
            )
            for each, known in found
        ]
        choices = await self._chooser.choose_many(tx, routed, now_ms=now_ms)
        by_key = {each.key: choice for (each, _), choice in zip(found, choices, strict=True)}
        return [by_key.get(each.key, NOTHING) for each in messages]

    async def _move(
        self,
        tx: Tx,
        chosen: Sequence[tuple[tuple[Message, MessageCopy | None], Choice]],
        state: State,
    ) -> None:
        """To the first step of each choice that can be used."""
        now_ms = self._clock.now_ms()
        moves = [(message, _at(message, choice.candidates[0])) for (message, _), choice in chosen]
        moved = await route_store.move(tx, moves, state)
        copies: list[tuple[Message, MessageCopy, str | None]] = []
        jobs: list[NewJob] = []
        for ((message, copy), choice), (_, at_next) in zip(chosen, moves, strict=True):
            if message.key not in moved:
                continue
            if copy is not None:
                copies.append((message, copy, None))
            copies += [
                (message, _passed_over(skip, now_ms), None)
                for skip in choice.skipped
                if skip.step < choice.candidates[0].step
            ]
            jobs += _jobs_of(at_next, now_ms)
        await route_store.put_copies(tx, copies)
        await self._jobs.enqueue(tx, *jobs)

    async def _finish(self, tx: Tx, message: Message, state: State, copy: MessageCopy) -> bool:
        """Ends the message as the copy is, which the message shows from now on."""
        fields: dict[str, Any] = {
            "status": copy.status,
            "reason": None if copy.status == "sent" else copy.reason,
            "error": copy.error,
            "message_ref": copy.message_ref,
            "waits_for": None,
            "finished_at_ms": self._clock.now_ms(),
        }
        if copy.subscriber_id is not None and copy.step != message.route_step:
            fields |= {
                "route_step": copy.step,
                "subscriber_id": copy.subscriber_id,
                "channel": copy.channel,
                "bot": copy.bot,
            }
        if not await route_store.change(tx, message, state, fields):
            return False
        await self._forget_answerers(tx, message)
        return True

    async def _forget_answerers(self, tx: Tx, message: Message) -> None:
        if any(step.until == "answered" for step in message.steps):
            await route_store.forget_answerers(tx, message)

    async def _tell(
        self, tx: Tx, ended: Sequence[tuple[Message, MessageCopy]]
    ) -> list[FinalStatus]:
        """Emits the events of messages that have ended."""
        ends = [_end_of(message, copy) for message, copy in ended]
        recipients = [(each.message.project_id, each.message.subscriber_id) for each in ends]
        people = await self._subscribers.get_many(tx, recipients) if recipients else {}
        await self._events.emit_many(
            tx,
            [
                _event(each, people.get(recipient))
                for each, recipient in zip(ends, recipients, strict=True)
            ],
        )
        return ends

    def _gone(self, message: Message) -> MessageCopy:
        reason = str(SkippedReason.NO_SUBSCRIBER)
        return self._copy(message, "skipped", reason=reason, error=GONE)

    def _copy(
        self,
        message: Message,
        status: CopyStatus,
        *,
        reason: str | None = None,
        error: str | None = None,
        message_ref: str | None = None,
    ) -> MessageCopy:
        return MessageCopy(
            step=cast(int, message.route_step),
            channel=message.channel,
            subscriber_id=message.subscriber_id,
            bot=message.bot,
            status=status,
            reason=reason,
            error=error,
            message_ref=message_ref,
            finished_at_ms=self._clock.now_ms(),
        )


def _following(
    message: Message, copy: MessageCopy | None, choice: Choice = NOTHING
) -> Try | Wait | End:
    """What follows on the step of a message."""
    assert message.route_step is not None, "it has a route"
    status = LATE if copy is None else copy.status
    return following(message.steps, message.route_step, status, choice.obstacles)


def _jobs_of(message: Message, now_ms: int) -> list[NewJob]:
    """The jobs of a message that begins a step."""
    payload = {
        "message_id": message.message_id,
        "subscriber_id": message.subscriber_id,
        "step": message.route_step,
    }
    project_id, lane = message.project_id, lane_of(message.bot)
    jobs = [NewJob(JOB, payload, lane=lane, priority=NORMAL, project_id=project_id)]
    run_at_ms = deadline_ms(message.steps, cast(int, message.route_step), now_ms)
    if run_at_ms is not None:
        jobs.append(NewJob(DEADLINE, payload, run_at_ms=run_at_ms, project_id=project_id))
    return jobs


def _step_of(message: Message) -> RouteStep:
    assert message.route_step is not None, "it has a route"
    return message.steps[message.route_step]


def _at(message: Message, candidate: Candidate) -> Message:
    """The message at another step."""
    to = candidate.recipient
    return replace(
        message,
        route_step=candidate.step,
        subscriber_id=to.subscriber_id,
        channel=to.channel,
        bot=to.bot,
    )


def _has_further_steps(message: Message, now_ms: int) -> bool:
    is_over = message.expires_at_ms is not None and message.expires_at_ms <= now_ms
    return not is_over and cast(int, message.route_step) + 1 < len(message.steps)


def _end_of(message: Message, copy: MessageCopy) -> FinalStatus:
    """The end of a message by this copy, as it was there."""
    if copy.subscriber_id is not None and copy.bot is not None:
        message = replace(
            message, subscriber_id=copy.subscriber_id, channel=copy.channel, bot=copy.bot
        )
    status = cast(MessageStatus, copy.status)
    return FinalStatus(message, status, copy.reason, copy.error, copy.message_ref)


def _event(end: FinalStatus, person: Subscriber | None) -> NewEvent:
    if end.status == "sent":
        return success_event(end.message, person)
    if end.status == "skipped":
        return skipped_event(end, person)
    is_unknown = end.status == "unknown"
    reason = Reason(end.reason or Reason.UNKNOWN)
    failure = DeliveryError(reason, end.error or "", in_doubt=is_unknown)
    return failure_event(end.message, person, failure, in_doubt=is_unknown)


def _passed_over(skip: SkippedStep, now_ms: int) -> MessageCopy:
    return MessageCopy(
        step=skip.step,
        channel=skip.channel,
        subscriber_id=None,
        bot=None,
        status="skipped",
        reason=str(skip.reason),
        error=None,
        message_ref=None,
        finished_at_ms=now_ms,
    )


def _ending(copies: Sequence[MessageCopy]) -> MessageCopy:
    """How a route ends that has no further step; what failed, with the reasons of all."""
    end = ending(copies)
    if end.copy.status in {"sent", "unknown"}:
        return end.copy
    reason = end.copy.reason
    if end.copy.status == "failed" and reason not in {str(each) for each in Reason}:
        reason = str(Reason.UNKNOWN)
    return replace(end.copy, reason=reason, error=end.why)
