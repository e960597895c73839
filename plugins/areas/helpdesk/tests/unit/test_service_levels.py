"""The clocks of service levels: pure arithmetic, over the life of a ticket."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.kernel.clock import HOUR_MS, MINUTE_MS
from msgsvc_core.kernel.time_zones import zone
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours
from msgsvc_helpdesk.service_levels.rules import (
    TARGETS,
    Limits,
    ServiceLevels,
    SlaClock,
    check,
    due_at,
    follow,
    is_told,
)

from .desk import TICKET

FIRST, NEXT, RESOLUTION = 60 * MINUTE_MS, 30 * MINUTE_MS, 8 * HOUR_MS
LIMITS = Limits(FIRST, NEXT, RESOLUTION, None)
LEVELS = ServiceLevels({"normal": LIMITS}, warn_ms=10 * MINUTE_MS)


class Desk:
    """A ticket with its clocks, as time passes."""

    def __init__(self, levels: ServiceLevels = LEVELS) -> None:
        self.levels = levels
        self.now_ms = 0
        self.ticket: Ticket = TICKET
        self.clocks: dict[Any, SlaClock] = {}
        self.told: list[tuple[str, str]] = []
        self.change()

    def change(self, after_ms: int = 0, **changes: Any) -> None:
        self.now_ms += after_ms
        self.ticket = replace(self.ticket, **changes)
        self._take(
            {
                target: follow(
                    self.clocks.get(target), target, self.ticket, self.levels, self.now_ms
                )
                for target in TARGETS
            }
        )

    def check(self, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self._take({target: check(clock, self.now_ms) for target, clock in self.clocks.items()})

    def reply(self, after_ms: int = 0) -> None:
        first_ms = self.ticket.first_response_at_ms
        now_ms = self.now_ms + after_ms
        self.change(
            after_ms,
            waiting_since_ms=None,
            first_response_at_ms=now_ms if first_ms is None else first_ms,
        )
        self.change(status="pending")

    def write(self, after_ms: int = 0) -> None:
        self.change(after_ms, status="open")
        self.change(waiting_since_ms=self.now_ms)

    def _take(self, after: dict[Any, SlaClock | None]) -> None:
        for target, clock in after.items():
            self.told += [
                (notice, target)
                for notice in ("due_soon", "breached")
                if is_told(self.clocks.get(target), clock, notice)
            ]
            if clock is not None:
                self.clocks[target] = clock

    @property
    def outcomes(self) -> dict[str, str | None]:
        return {target: clock.outcome for target, clock in self.clocks.items()}


def test_a_new_ticket_is_due_by_its_first_reply() -> None:
    desk = Desk()

    assert due_at(desk.clocks) == FIRST
    assert desk.clocks["resolution"].due_at_ms == RESOLUTION
    assert "next_response" not in desk.clocks


def test_resolution_is_paused_while_the_customer_is_to_act() -> None:
    desk = Desk()
    desk.reply(20 * MINUTE_MS)
    waiting = due_at(desk.clocks)
    desk.write(5 * HOUR_MS)

    assert waiting is None
    assert desk.clocks["next_response"].due_at_ms == desk.now_ms + NEXT
    assert desk.clocks["resolution"].due_at_ms == desk.now_ms + RESOLUTION - 20 * MINUTE_MS
    assert desk.outcomes == {"first_response": "met", "next_response": None, "resolution": None}


def test_a_snooze_pauses_what_was_answered_and_no_waiting() -> None:
    desk = Desk()
    desk.change(status="snoozed")
    waiting = due_at(desk.clocks)
    desk.reply(10 * MINUTE_MS)
    desk.change(status="snoozed")

    assert waiting == FIRST
    assert due_at(desk.clocks) is None
    assert desk.clocks["resolution"].used_ms == 10 * MINUTE_MS


def test_a_target_is_told_to_be_due_soon_once_and_missed_once() -> None:
    desk = Desk()
    desk.check(49 * MINUTE_MS)
    early = list(desk.told)
    for _ in range(3):
        desk.check(MINUTE_MS)
    soon = list(desk.told)
    for _ in range(3):
        desk.check(10 * MINUTE_MS)

    assert early == []
    assert soon == [("due_soon", "first_response")]
    assert desk.told[1:] == [("breached", "first_response")]
    assert due_at(desk.clocks) == FIRST


def test_a_reply_that_is_too_late_is_a_breach_before_anybody_looked() -> None:
    desk = Desk()
    desk.reply(FIRST)
    desk.check(HOUR_MS)

    assert desk.told == [("breached", "first_response")]
    assert desk.outcomes["first_response"] == "breached"


def test_each_wait_for_a_next_reply_is_told_of_and_one_breach_stays() -> None:
    desk = Desk()
    desk.reply(MINUTE_MS)
    for _ in range(2):
        desk.write(MINUTE_MS)
        desk.check(NEXT)
        desk.reply()
    desk.write(MINUTE_MS)
    desk.reply(MINUTE_MS)

    assert desk.told == [("breached", "next_response")] * 2
    assert desk.outcomes["next_response"] == "breached"


def test_closing_is_no_reply_and_reopening_begins_anew() -> None:
    desk = Desk()
    desk.change(HOUR_MS // 2, status="closed", waiting_since_ms=None)
    closed = desk.outcomes
    desk.write(HOUR_MS)

    assert closed == {"first_response": None, "resolution": "met"}
    assert desk.clocks["first_response"].due_at_ms == desk.now_ms + FIRST
    assert desk.clocks["resolution"].due_at_ms == desk.now_ms + RESOLUTION


def test_another_priority_moves_what_is_due_and_counts_what_has_passed() -> None:
    urgent = replace(LIMITS, first_response=15 * MINUTE_MS)
    desk = Desk(ServiceLevels({"normal": LIMITS, "urgent": urgent}))
    desk.change(10 * MINUTE_MS, priority="urgent")
    raised = due_at(desk.clocks)
    desk.change(priority="low")

    assert raised == 15 * MINUTE_MS
    assert due_at(desk.clocks) is None
    assert desk.outcomes["first_response"] is None


def test_business_hours_are_counted_where_they_are_wanted() -> None:
    office = BusinessHours(
        zone=zone("UTC"), weekly={3: ((9 * 60, 10 * 60),), 4: ((9 * 60, 10 * 60),)}
    )
    desk = Desk(ServiceLevels({"normal": Limits(90 * MINUTE_MS, None, None, office)}))
    # 1 January 1970 was a Thursday.
    due_ms = due_at(desk.clocks)
    desk.change(9 * HOUR_MS + 45 * MINUTE_MS, status="pending")
    desk.change(HOUR_MS, status="open")

    assert due_ms == 33 * HOUR_MS + 30 * MINUTE_MS
    assert desk.clocks["first_response"].used_ms == 45 * MINUTE_MS
    assert due_at(desk.clocks) == 33 * HOUR_MS + 45 * MINUTE_MS


STEPS = st.sampled_from(["reply", "write", "snooze", "pending", "close", "look", "urgent"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 90)), max_size=30))
def test_whatever_happens_a_clock_runs_only_with_a_due_time(steps: list[tuple[str, int]]) -> None:
    desk = Desk()
    for step, minutes in steps:
        after_ms = minutes * MINUTE_MS
        if step == "reply" and desk.ticket.status != "closed":
            desk.reply(after_ms)
        elif step == "write":
            desk.write(after_ms)
        elif step == "close":
            desk.change(after_ms, status="closed", waiting_since_ms=None)
        elif step == "look":
            desk.check(after_ms)
        elif step == "urgent":
            desk.change(after_ms, priority="urgent")
        else:
            desk.change(after_ms, status="snoozed" if step == "snooze" else "pending")
        for clock in desk.clocks.values():
            is_running = clock.status == "running"
            assert (clock.since_ms is not None) == (clock.due_at_ms is not None) == is_running
            assert clock.next_at_ms is None or is_running
            assert clock.used_ms <= desk.now_ms
        desk.check()
        # Nothing is left to be done by now: the job that looks comes to an end.
        assert all(
            (one.next_at_ms or desk.now_ms + 1) > desk.now_ms for one in desk.clocks.values()
        )


@pytest.mark.parametrize("missed", [False, True])
def test_a_target_that_is_removed_ends_without_an_outcome_of_its_own(missed: bool) -> None:
    desk = Desk()
    if missed:
        desk.check(2 * HOUR_MS)
    desk.levels = ServiceLevels({})
    desk.change(MINUTE_MS)

    assert due_at(desk.clocks) is None
    assert desk.outcomes["first_response"] == ("breached" if missed else None)
