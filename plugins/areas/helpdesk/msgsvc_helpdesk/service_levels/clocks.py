"""The service levels of projects, and the clocks of their tickets."""

from collections.abc import Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_helpdesk.models import Due, DueWithin, Ticket
from msgsvc_helpdesk.service_levels import store
from msgsvc_helpdesk.service_levels.hours_models import business_hours, read_hours
from msgsvc_helpdesk.service_levels.models import read_sla, service_levels
from msgsvc_helpdesk.service_levels.rules import (
    TARGETS,
    Notice,
    RunEnd,
    ServiceLevels,
    SlaClock,
    Target,
    check,
    due_at,
    follow,
    is_told,
    run_end,
)


@value_object
class TargetNotice:
    """What a ticket's event says of a target."""

    notice: Notice
    target: Target
    due_at_ms: int


@value_object
class Followed:
    """A ticket's clocks after a change: when it is due, and what has to be told of them."""

    due_at_ms: int | None
    told: tuple[TargetNotice, ...] = ()


@value_object
class Ends:
    """How many runs of a target ended in time, and how many did not."""

    met: int
    missed: int


class SlaClocks:
    """Clocks that follow their tickets. The ticket is locked by the caller, who stores `due_at_ms` and emits
    what is told."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def of(self, tx: Tx, project_id: str, ticket_id: str) -> list[SlaClock]:
        """The clocks of a ticket, in the order of the targets."""
        clocks = await self.of_each(tx, project_id, [ticket_id])
        return clocks.get(ticket_id, [])

    async def of_each(
        self, tx: Tx, project_id: str, ticket_ids: Sequence[str]
    ) -> dict[str, list[SlaClock]]:
        """The clocks of tickets that have some, in the order of the targets, by ticket."""
        found = await store.list_clocks_of_each(tx, project_id, ticket_ids)
        return {
            ticket_id: [clocks[target] for target in TARGETS if target in clocks]
            for ticket_id, clocks in found.items()
        }

    async def due_within(self, tx: Tx, project_id: str, due: Due | None) -> DueWithin | None:
        """The times of a filter."""
        now_ms = self._clock.now_ms()
        if due != "today":
            return None if due is None else (0, now_ms)
        _sla, hours = await store.find_settings(tx, project_id)
        return now_ms, business_hours(read_hours(hours)).end_of_day(now_ms)

    async def ends_between(
        self, tx: Tx, project_id: str, after_ms: int, before_ms: int
    ) -> Mapping[Target, Ends]:
        """How many runs of each target ended on the days of that time, in UTC."""
        last_day = (before_ms - 1) // DAY_MS
        counted = await store.ends_between(tx, project_id, after_ms // DAY_MS, last_day)
        return {target: Ends(*counted[target]) for target in TARGETS}

    async def find_due(self, tx: Tx, now_ms: int, limit: int) -> list[tuple[str, str]]:
        """Tickets of any project with a clock that is due: (project_id, ticket_id)."""
        return await store.find_due(tx, now_ms, limit)

    async def follow(self, tx: Tx, ticket: Ticket) -> Followed:
        """Brings the clocks in line with a ticket, as it is after a change."""
        levels = await self._levels(tx, ticket.project_id)
        if levels is None:
            return Followed(None)
        before = await store.list_clocks(tx, ticket.project_id, ticket.ticket_id)
        now_ms = self._clock.now_ms()
        after = {
            target: follow(before.get(target), target, ticket, levels, now_ms) for target in TARGETS
        }
        ends = {
            target: run_end(before.get(target), after[target], target, ticket) for target in TARGETS
        }
        return await self._written(tx, ticket, before, after, ends)

    async def check(self, tx: Tx, ticket: Ticket) -> Followed:
        """Notes which targets are due soon or missed by now."""
        before = await store.list_clocks(tx, ticket.project_id, ticket.ticket_id)
        now_ms = self._clock.now_ms()
        after = {target: check(clock, now_ms) for target, clock in before.items()}
        ends = {
            target: run_end(clock, after[target], target, ticket)
            for target, clock in before.items()
        }
        return await self._written(tx, ticket, before, after, ends)

    async def _levels(self, tx: Tx, project_id: str) -> ServiceLevels | None:
        """None for a project that never had any: its tickets have no clocks."""
        sla, hours = await store.find_settings(tx, project_id)
        if sla is None:
            return None
        return service_levels(read_sla(sla), business_hours(read_hours(hours)))

    async def _written(
        self,
        tx: Tx,
        ticket: Ticket,
        before: Mapping[Target, SlaClock],
        after: Mapping[Target, SlaClock | None],
        ends: Mapping[Target, RunEnd | None],
    ) -> Followed:
        known = {target: clock for target, clock in after.items() if clock is not None}
        for target, clock in known.items():
            if clock != before.get(target):
                await store.write_clock(tx, ticket.project_id, ticket.ticket_id, clock)
        ended = [(target, end) for target, end in ends.items() if end is not None]
        if ended:
            day = self._clock.now_ms() // DAY_MS
            await store.count_ends(tx, ticket.project_id, day, ended)
        return Followed(due_at(known), tuple(_notices(before, known)))


async def stop_clocks(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Ends what runs in tickets, without an outcome."""
    await store.stop(tx, project_id, ticket_ids)


def _notices(
    before: Mapping[Target, SlaClock], after: Mapping[Target, SlaClock]
) -> Sequence[TargetNotice]:
    found = []
    for target, clock in after.items():
        was = before.get(target)
        # A clock that has ended is due no more; it was until then.
        due_ms = clock.due_at_ms or (None if was is None else was.due_at_ms)
        notices: tuple[Notice, ...] = ("due_soon", "breached")
        found += [
            TargetNotice(notice, target, due_ms)
            for notice in notices
            if due_ms is not None and is_told(was, clock, notice)
        ]
    return found
