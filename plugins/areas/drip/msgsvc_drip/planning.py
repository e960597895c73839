"""Plans due steps before the transaction that writes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.db import DatabaseUnavailable, LockTimeout, WriteBatch
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.kernel.errors import ApiError, BillingBlocked
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages import Message, Messages
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_drip.conditions import is_met
from msgsvc_drip.contents import Contents
from msgsvc_drip.definition import DripDefinition, Step
from msgsvc_drip.due_store import DueStep, Move
from msgsvc_drip.receivers import Receiver, Receivers, RoutedStep
from msgsvc_drip.schedule import due_after, is_time

#: Stop reason for a subscriber who left without an event.
NOT_SUBSCRIBED = "not subscribed"

#: Why a step is left out that fails by a mistake of ours.
INTERNAL_ERROR = "an internal error; the service's log has more"

#: Why a step is left out that an operator took away from a restored copy.
WITHDRAWN = "withdrawn from a restored copy: the original may have sent it"

#: Errors caused by deleted objects; retrying does not help.
PASSING = (DatabaseUnavailable, LockTimeout)


@value_object
class Candidate:
    """An enrollment whose step is due, and its version of the campaign."""

    due: DueStep
    definition: DripDefinition
    subscriber: Subscriber


@dataclass(slots=True)
class Plan:
    """The next state of one enrollment, and the rows that are written with it."""

    move: Move
    subscriber: Subscriber
    #: The step that is to be sent, until it is made.
    step: Step | None = None
    message: Message | None = None
    unit: WriteBatch = field(default_factory=WriteBatch)

    def skip(self, why: str) -> None:
        """Nothing is sent, and the chain goes on."""
        self.step, self.message, self.unit = None, None, WriteBatch()
        reason = f"step {self.move.row.next_step + 1}: {why}"
        self.move = replace(self.move, message_id=None, reason=reason)


class Planner:
    """Plans the outcome of due steps. `contents` creates the reader of one batch's messages."""

    def __init__(
        self,
        *,
        billing: BillingGate,
        messages: Messages,
        contents: Callable[[], Contents],
        receivers: Receivers,
        late_minutes: int,
    ) -> None:
        self._receivers = receivers
        self._billing = billing
        self._messages = messages
        self._contents = contents
        self._late_minutes = late_minutes

    async def plan_all(self, candidates: Sequence[Candidate], now_ms: int) -> list[Plan]:
        """A plan for each candidate. A message that cannot be sent is skipped, with the reason."""
        plans = [_plan(candidate, self._late_minutes, now_ms) for candidate in candidates]
        await self._skip_unpaid(plans)
        contents = self._contents()
        await contents.read((plan.step.message, plan.subscriber) for plan in plans if plan.step)
        await contents.load_bots(plan.subscriber for plan in plans if plan.step)
        receivers = await self._find_receivers(plans, now_ms)
        for number, plan in enumerate(plans):
            if plan.step is not None:
                self._add_message(contents, plan, plan.step, receivers.get(number))
        return plans

    async def _find_receivers(
        self, plans: Sequence[Plan], now_ms: int
    ) -> dict[int, Receiver | ApiError]:
        """Who gets the steps that name a route, by the numbers of their plans."""
        routed = {
            number: RoutedStep(
                plan.move.row, plan.subscriber, plan.step.route_id, plan.step.message.permission
            )
            for number, plan in enumerate(plans)
            if plan.step is not None and plan.step.route_id is not None
        }
        found = await self._receivers.find(list(routed.values()), now_ms)
        return dict(zip(routed, found, strict=True))

    def skip(self, one: Candidate, why: str, now_ms: int) -> Plan:
        """A plan that skips the step."""
        plan = Plan(_onward(one, self._late_minutes, now_ms), one.subscriber)
        plan.skip(why)
        return plan

    async def _skip_unpaid(self, plans: Sequence[Plan]) -> None:
        """Chains go on without what nobody pays for: later steps may come when credits are there."""
        refused: dict[str, str | None] = {}
        for plan in plans:
            if plan.step is None:
                continue
            project_id = plan.subscriber.project_id
            if project_id not in refused:
                try:
                    await self._billing.check(project_id, MESSAGE)
                    refused[project_id] = None
                except BillingBlocked as error:
                    refused[project_id] = error.message
            if (why := refused[project_id]) is not None:
                plan.skip(why)

    def _add_message(
        self, contents: Contents, plan: Plan, step: Step, receiver: Receiver | ApiError | None
    ) -> None:
        try:
            if isinstance(receiver, ApiError):
                raise receiver
            options, prepared = contents.prepare(step.message, plan.subscriber, receiver)
        except ApiError as error:
            # E.g. its template was deleted: waiting would not help.
            plan.skip(error.message)
            return
        project_id = plan.subscriber.project_id
        plan.message = self._messages.put(plan.unit, project_id, options, prepared)
        plan.move = replace(plan.move, message_id=plan.message.message_id)


def _plan(one: Candidate, late_minutes: int, now_ms: int) -> Plan:
    row = one.due.row
    if one.subscriber.status != "active":
        move = Move(one.due, "stopped", row.next_step, None, None, NOT_SUBSCRIBED)
        return Plan(move, one.subscriber)
    step = one.definition.steps[row.next_step]
    later_ms = is_time(one.definition, step, now_ms, late_minutes)
    if later_ms is not None:
        move = Move(one.due, row.status, row.next_step, later_ms, None, row.reason)
        return Plan(move, one.subscriber)
    plan = Plan(_onward(one, late_minutes, now_ms), one.subscriber, step)
    if not is_met(step.when, one.subscriber):
        plan.skip("its conditions did not hold")
    return plan


def _onward(one: Candidate, late_minutes: int, now_ms: int) -> Move:
    """Moves to the next step, whose delay starts now: after an outage steps are not sent all together."""
    row, steps = one.due.row, one.definition.steps
    following = row.next_step + 1
    if following == len(steps):
        return Move(one.due, "completed", following, None, None, None)
    assert row.due_at_ms is not None, "it was found by that"
    # A step of late in the evening that is taken a second after midnight is one of the evening.
    is_late = now_ms - row.due_at_ms > late_minutes * MINUTE_MS
    day_ms = now_ms if is_late else row.due_at_ms
    due_at_ms = due_after(one.definition, steps[following], now_ms, day_ms)
    return Move(one.due, "active", following, due_at_ms, None, None)
