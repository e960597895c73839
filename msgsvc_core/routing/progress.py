"""What follows on a step of a route, and why a step can't be used.

Nothing here reads or writes: messages, mailings and one-time codes have SQL of their own, and ask.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from msgsvc_core.kernel.values import value_object
from msgsvc_core.routing.hours import is_within
from msgsvc_core.routing.models import RouteStep, SkippedReason, Until

#: What became of a step.
StepStatus = Literal["sent", "failed", "unknown", "skipped"]

#: Of a step whose message was sent: its time is over, or the platform reports a failure after all.
LATE: Literal["late"] = "late"


class StepCopy(Protocol):
    """What became of one step; `subscriber_id` is None if it was passed over."""

    @property
    def channel(self) -> str: ...

    @property
    def subscriber_id(self) -> str | None: ...

    @property
    def status(self) -> StepStatus: ...

    @property
    def reason(self) -> str | None: ...

    @property
    def error(self) -> str | None: ...


CopyT = TypeVar("CopyT", bound=StepCopy)


@value_object
class Obstacle:
    """Why a step can't be used, or a message is skipped: for programs, and for people."""

    reason: SkippedReason
    text: str


NO_SUBSCRIBER = Obstacle(SkippedReason.NO_SUBSCRIBER, "not subscribed")
UNSUBSCRIBED = Obstacle(SkippedReason.UNSUBSCRIBED, "not subscribed")
BLOCKED = Obstacle(SkippedReason.BLOCKED, "not subscribed")
OTHER_PERSON = Obstacle(SkippedReason.RECIPIENT_CHANGED, "the subscriber is another person now")
OTHER_BOT = Obstacle(SkippedReason.RECIPIENT_CHANGED, "the person has gone over to another bot")
CANCELLED = Obstacle(SkippedReason.CANCELLED, "cancelled")
EXPIRED = Obstacle(SkippedReason.EXPIRED, "expired")
CHANNEL_REMOVED = Obstacle(SkippedReason.CHANNEL_REMOVED, "its channel is gone")
CHANNEL_STOPPED = Obstacle(SkippedReason.CHANNEL_STOPPED, "its channel is stopped")
OUTSIDE_HOURS = Obstacle(SkippedReason.OUTSIDE_HOURS, "outside the hours of its step")


@value_object
class Try:
    """The next step is the one at this position of those that were asked about."""

    position: int


@value_object
class Wait:
    """The step is done when the platform reports it, or the person answers."""


@value_object
class End:
    """No further step follows."""


def following(
    steps: Sequence[RouteStep],
    at: int,
    status: StepStatus | Literal["late"],
    obstacles: Iterable[SkippedReason | None] = (),
) -> Try | Wait | End:
    """What follows on step `at`, which ended so. `obstacles` are what keeps the later steps from being used,
    in order, None for nothing; they need not be known where `goes_on` is false."""
    if status == "sent" and not is_done(steps[at], "sent") and at < len(steps) - 1:
        return Wait()
    if goes_on(steps[at], status):
        for position, obstacle in enumerate(obstacles):
            if obstacle is None:
                return Try(position)
    return End()


def goes_on(step: RouteStep, status: StepStatus | Literal["late"]) -> bool:
    """Whether a step that ended so is followed by the next one that can be used. A step that was not sent in
    its time is `failed`, or `unknown` if a call may have arrived."""
    if status == "unknown":
        return step.on_unknown == "continue"
    return status != "sent"


def is_done(step: RouteStep, by: Until) -> bool:
    """Whether a step has reached its aim when its message was sent, delivered, read or answered."""
    return step.until == by or (step.until == "delivered" and by == "read")


def deadline_ms(steps: Sequence[RouteStep], at: int, began_ms: int) -> int | None:
    """When a step is left that has not been done; None if it never is."""
    within_seconds = steps[at].within_seconds
    return (
        None if within_seconds is None or at == len(steps) - 1 else began_ms + within_seconds * 1000
    )


@value_object
class RouteOutcome(Generic[CopyT]):
    """The copy as which a route ends, and what became of all its steps, in English."""

    copy: CopyT
    why: str


def ending(copies: Sequence[CopyT]) -> RouteOutcome[CopyT]:
    """How a route ends that has no further step: as what was accepted, even if nobody reported more; else as
    what may have arrived; else as the last step that failed; else as the last that was tried."""
    tried = [copy for copy in copies if copy.subscriber_id is not None]
    by_status = {copy.status: copy for copy in tried}
    found = (by_status[each] for each in ("sent", "unknown", "failed") if each in by_status)
    why = "; ".join(f"{copy.channel}: {copy.error or copy.reason or ''}" for copy in copies)
    return RouteOutcome(next(found, tried[-1]), why)


def find_obstacle(
    *,
    status: str | None,
    is_same_person: bool = True,
    is_expired: bool = False,
    has_channel: bool = True,
    missing_permission: str | None = None,
    has_same_bot: bool = True,
    is_stopped: bool = False,
) -> Obstacle | None:
    """Why a person can't be written to on a channel; None if they can.

    `status` is that of their subscriber there, None without one; `missing_permission` is the key of one that
    is needed and was not granted. Of several obstacles it is the one that lasts longest.
    """
    found: Obstacle | None = None
    if status is None:
        found = NO_SUBSCRIBER
    elif status != "active":
        found = BLOCKED if status == "blocked" else UNSUBSCRIBED
    elif not is_same_person:
        found = OTHER_PERSON
    elif is_expired:
        found = EXPIRED
    elif not has_channel:
        found = CHANNEL_REMOVED
    elif missing_permission is not None:
        text = f"the permission {missing_permission!r} is not granted"
        found = Obstacle(SkippedReason.NO_PERMISSION, text)
    elif not has_same_bot:
        found = OTHER_BOT
    elif is_stopped:
        found = CHANNEL_STOPPED
    return found


def hours_obstacle(step: RouteStep | None, now_ms: int) -> Obstacle | None:
    """Why a step can't be used at this time; None if it can, and without a step."""
    if step is None or step.hours is None or is_within(step.hours, now_ms):
        return None
    return OUTSIDE_HOURS
