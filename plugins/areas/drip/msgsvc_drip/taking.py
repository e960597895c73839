"""Takes the steps that are due: each is sent once, in its order, whoever dies meanwhile.

What a batch of people gets is made up first, without a transaction. Then one transaction moves on
those who are still where they were, and holds their messages and events: all of it or nothing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msgsvc_core.db import Unit
from msgsvc_core.errors import ApiError
from msgsvc_core.events import NewEvent
from msgsvc_core.messages import Message, SendBody
from msgsvc_core.messages.service import Judged
from msgsvc_core.service import Service
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_drip import enrollment_store, events, store
from msgsvc_drip.conditions import is_met
from msgsvc_drip.course import Course, Step, read_course
from msgsvc_drip.enrollment_store import Move
from msgsvc_drip.models import Enrollment
from msgsvc_drip.schedule import MINUTE_MS, due_after, is_time
from msgsvc_drip.settings import DripSettings

#: Why somebody is stopped who left while nobody of us was told.
NOT_SUBSCRIBED = "not subscribed"


@dataclass(slots=True)
class Plan:
    """What is to become of one enrollment, and what is written along with that."""

    move: Move
    subscriber: Subscriber
    message: Message | None = None
    unit: Unit = field(default_factory=Unit)

    def left_out(self, why: str) -> None:
        """Nothing is sent, and the chain goes on."""
        self.move = replace(self.move, reason=why)


class StepTaker:
    """Takes due steps of all projects, a batch at a time."""

    def __init__(self, service: Service, settings: DripSettings) -> None:
        self._service = service
        self._settings = settings

    async def take_some(self) -> bool:
        """Takes one batch; whether there may be more."""
        service, now_ms = self._service, self._service.clock.now_ms()
        async with service.db.read() as tx:
            due = await enrollment_store.find_due(tx, now_ms, self._settings.batch)
            if not due:
                return False
            rows = [row for row, _ in due]
            versions = {(row.project_id, row.drip_id, row.version) for row in rows}
            courses = await store.find_courses(tx, versions)
            people = await service.subscribers.find_many(
                tx, sorted({(row.project_id, row.subscriber_id) for row in rows})
            )
        # All at once, so that their questions to the database are the same few.
        plans = await asyncio.gather(
            *(
                self._plan(row, is_active, read_course(courses[key]), people[who], now_ms)
                for row, is_active in due
                # Somebody, or a chain, may have been removed between two of the questions.
                if (key := (row.project_id, row.drip_id, row.version)) in courses
                and (who := (row.project_id, row.subscriber_id)) in people
            )
        )
        return bool(await self._write(plans, now_ms))

    async def _write(self, plans: Sequence[Plan], now_ms: int) -> int:
        """Moves on those who are still where they were; returns how many."""
        async with self._service.db.transaction() as tx:
            taken = await enrollment_store.take(tx, [plan.move for plan in plans], now_ms)
            unit, told = Unit(), list[NewEvent]()
            for plan in plans:
                if plan.move.row.enrollment_id in taken:
                    unit.rows += plan.unit.rows
                    unit.after_commit += plan.unit.after_commit
                    told += _events(plan)
            await tx.write(unit)
            await self._service.events.emit_many(tx, told)
        return len(taken)

    async def _plan(
        self, row: Enrollment, is_active: bool, course: Course, subscriber: Subscriber, now_ms: int
    ) -> Plan:
        if not is_active:
            # It came into the chain at the moment of the pause.
            return Plan(Move(row, row.status, row.next_step, None, None, None, 0), subscriber)
        if subscriber.status != "active":
            move = Move(row, "stopped", row.next_step, None, None, NOT_SUBSCRIBED)
            return Plan(move, subscriber)
        step = course.steps[row.next_step]
        later_ms = is_time(course, step, now_ms, self._settings.late_minutes)
        if later_ms is not None:
            move = Move(row, row.status, row.next_step, later_ms, None, row.reason)
            return Plan(move, subscriber)
        plan = Plan(self._onward(row, course, now_ms), subscriber)
        if not is_met(step.when, subscriber):
            plan.left_out(f"step {row.next_step + 1}: its conditions did not hold")
            return plan
        try:
            await self._add_message(plan, step)
        except ApiError as error:
            if error.status >= 500:
                raise
            # E.g. its template is gone: nobody waits for what may never come.
            plan.left_out(f"step {row.next_step + 1}: {error.message}")
        return plan

    async def _add_message(self, plan: Plan, step: Step) -> None:
        messages, project_id = self._service.messages, plan.subscriber.project_id
        default_lang = self._service.settings.default_lang
        body: SendBody = step.message.to_body(plan.subscriber, default_lang)
        judged: Judged = await messages.judge(project_id, body)
        plan.message = messages.put(plan.unit, project_id, body, judged)
        plan.move = replace(plan.move, message_id=plan.message.message_id)

    def _onward(self, row: Enrollment, course: Course, now_ms: int) -> Move:
        """To the next step, whose delay begins now: after an outage they don't come all at once."""
        following = row.next_step + 1
        if following == len(course.steps):
            return Move(row, "completed", following, None, None, None)
        assert row.due_at_ms is not None, "it was found by that"
        # A step of late in the evening that is taken a second after midnight is one of the evening.
        is_late = now_ms - row.due_at_ms > self._settings.late_minutes * MINUTE_MS
        day_ms = now_ms if is_late else row.due_at_ms
        due_at_ms = due_after(course, course.steps[following], now_ms, day_ms)
        return Move(row, "active", following, due_at_ms, None, None)


def _events(plan: Plan) -> list[NewEvent]:
    row, move = plan.move.row, plan.move
    names = []
    if plan.message is not None:
        names.append(events.STEP_SENT)
    if move.status == "completed":
        names.append(events.COMPLETED)
    fields = {
        "drip_id": row.drip_id,
        "enrollment_id": row.enrollment_id,
        "step": row.next_step + 1,
        "message_id": move.message_id or row.last_message_id,
    }
    return [NewEvent(row.project_id, name, fields, plan.subscriber) for name in names]
