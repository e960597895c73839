"""Service levels: how long customers wait at most for a reply, and tickets for their end.

A target of a ticket has a clock. It runs while the team is to act, and is paused while the customer is; what
it has counted by then is kept. Everything here is arithmetic: `SlaClocks` reads and writes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

from msgsvc_core.kernel.values import value_object
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours

Target = Literal["first_response", "next_response", "resolution"]
TARGETS: tuple[Target, ...] = get_args(Target)

ClockStatus = Literal["running", "paused", "completed"]
Notice = Literal["due_soon", "breached"]
Outcome = Literal["met", "breached"]
#: What became of one run.
RunEnd = Literal["met", "missed"]


@value_object
class SlaClock:
    """How far a ticket is from one target, in its present run: a next reply has one for each wait."""

    target: Target
    status: ClockStatus
    #: Counted before `since_ms`.
    used_ms: int = 0
    #: Since when it runs, when the target is missed, and when it has to be looked at: only while it runs.
    since_ms: int | None = None
    due_at_ms: int | None = None
    next_at_ms: int | None = None
    #: What was told of this run.
    notice: Notice | None = None
    #: Of all its runs: `breached` as soon as one was; None before the first one has ended.
    outcome: Outcome | None = None


@value_object
class Limits:
    """The targets of tickets of one priority, in milliseconds; None for no target."""

    first_response: int | None
    next_response: int | None
    resolution: int | None
    #: None counts calendar time.
    hours: BusinessHours | None

    def limit_ms(self, target: Target) -> int | None:
        limit: int | None = getattr(self, target)
        return limit

    def add(self, at_ms: int, duration_ms: int) -> int:
        if self.hours is None:
            return at_ms + max(0, duration_ms)
        return self.hours.add(at_ms, duration_ms)

    def between(self, from_ms: int, to_ms: int) -> int:
        if self.hours is None:
            return max(0, to_ms - from_ms)
        return self.hours.between(from_ms, to_ms)


_NONE = Limits(None, None, None, None)


@value_object
class ServiceLevels:
    """The service levels of a project."""

    by_priority: Mapping[Priority, Limits]
    #: Calendar time before a target is missed at which that is told; 0 for never.
    warn_ms: int = 0

    def of(self, priority: Priority) -> Limits:
        return self.by_priority.get(priority, _NONE)


def follow(
    clock: SlaClock | None, target: Target, ticket: Ticket, levels: ServiceLevels, now_ms: int
) -> SlaClock | None:
    """The clock of a ticket that has changed, or whose project's settings have. None for a target that the
    ticket never had."""
    limits = levels.of(ticket.priority)
    limit_ms = limits.limit_ms(target)
    if clock is not None:
        clock = _overtaken(clock, now_ms)
    if limit_ms is None or _is_over(target, ticket):
        return clock and _ended(clock, is_met=_is_met(target, ticket))
    if clock is None or clock.status == "completed":
        if not _is_teams_turn(ticket):
            return clock
        outcome = None if clock is None else clock.outcome
        clock = SlaClock(target, "paused", outcome=outcome)
    if not _is_teams_turn(ticket):
        return _paused(clock, limits, now_ms)
    since_ms = now_ms if clock.since_ms is None else clock.since_ms
    running = replace(
        clock,
        status="running",
        since_ms=since_ms,
        due_at_ms=limits.add(since_ms, limit_ms - clock.used_ms),
    )
    return replace(running, next_at_ms=_next_at(running, levels.warn_ms))


def check(clock: SlaClock, now_ms: int) -> SlaClock:
    """The clock after its time has been looked at: what is to be told by then, is."""
    if clock.next_at_ms is None or clock.next_at_ms > now_ms:
        return clock
    assert clock.due_at_ms is not None, "it runs"
    if clock.due_at_ms <= now_ms:
        return _overtaken(clock, now_ms)
    return replace(clock, notice="due_soon", next_at_ms=clock.due_at_ms)


def is_told(before: SlaClock | None, after: SlaClock | None, notice: Notice) -> bool:
    """Whether this is what has to be told of a clock that was changed."""
    return (
        after is not None and after.notice == notice and (before is None or before.notice != notice)
    )


def run_end(
    before: SlaClock | None, after: SlaClock | None, target: Target, ticket: Ticket
) -> RunEnd | None:
    """What a change of a clock decides of its run: `missed` as soon as its time is over, `met` if it ended in
    time by what the target is about; None if neither, or if that was known before."""
    if is_told(before, after, "breached"):
        return "missed"
    if (
        before is None
        or after is None
        or before.status == "completed"
        or after.status != "completed"
    ):
        return None
    return "met" if after.notice != "breached" and _is_met(target, ticket) else None


def due_at(clocks: Mapping[Target, SlaClock]) -> int | None:
    """When the first of a ticket's targets is missed, or was."""
    return min(
        (one.due_at_ms for one in clocks.values() if one.due_at_ms is not None), default=None
    )


def _is_teams_turn(ticket: Ticket) -> bool:
    """A snooze ends no waiting: it pauses only what has been answered."""
    if ticket.status == "snoozed":
        return ticket.waiting_since_ms is not None
    return ticket.status == "open"


def _is_over(target: Target, ticket: Ticket) -> bool:
    """Whether there is nothing to wait for now."""
    if ticket.status == "closed":
        return True
    is_answered = ticket.first_response_at_ms is not None
    if target == "first_response":
        return is_answered or ticket.waiting_since_ms is None
    return target == "next_response" and (not is_answered or ticket.waiting_since_ms is None)


def _is_met(target: Target, ticket: Ticket) -> bool:
    """Whether what ended a run is what the target is about: closing a ticket is no reply."""
    if target == "resolution":
        return ticket.status == "closed" and ticket.merged_into is None
    return (
        ticket.first_response_at_ms is not None
        and ticket.waiting_since_ms is None
        and ticket.status != "closed"
    )


def _overtaken(clock: SlaClock, now_ms: int) -> SlaClock:
    """The clock with its breach, if its time is over."""
    if clock.due_at_ms is None or clock.due_at_ms > now_ms or clock.notice == "breached":
        return clock
    return replace(clock, notice="breached", outcome="breached", next_at_ms=None)


def _ended(clock: SlaClock, *, is_met: bool) -> SlaClock:
    if clock.status == "completed":
        return clock
    outcome = clock.outcome or ("met" if is_met else None)
    return SlaClock(clock.target, "completed", notice=clock.notice, outcome=outcome)


def _paused(clock: SlaClock, limits: Limits, now_ms: int) -> SlaClock:
    used_ms = clock.used_ms
    if clock.since_ms is not None:
        used_ms += limits.between(clock.since_ms, now_ms)
    return replace(
        clock, status="paused", used_ms=used_ms, since_ms=None, due_at_ms=None, next_at_ms=None
    )


def _next_at(clock: SlaClock, warn_ms: int) -> int | None:
    """A run is told to be due soon once, and to be breached once."""
    assert clock.since_ms is not None, "it runs"
    assert clock.due_at_ms is not None, "it runs"
    if clock.notice == "breached":
        return None
    warn_at_ms = clock.due_at_ms - warn_ms
    if warn_ms and clock.notice is None and warn_at_ms > clock.since_ms:
        return warn_at_ms
    return clock.due_at_ms
