"""Service levels as the API takes and shows them."""

import json
from functools import lru_cache
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.kernel.clock import MINUTE_MS, optional_rfc3339
from msgsvc_core.kernel.json import to_json
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours
from msgsvc_helpdesk.service_levels.rules import (
    Limits,
    Outcome,
    ServiceLevels,
    SlaClock,
    State,
    Target,
)

Counted = Literal["business_hours", "calendar"]

#: Minutes of the longest target: a year.
MOST_MINUTES = 525_600

_FIRST = "Minutes until the first reply of an agent; null for no target."
_NEXT = "Minutes until each further reply, from the customer's message on; null for no target."
_RESOLUTION = "Minutes until the ticket is closed; null for no target."
_COUNTED = "What is counted: `business_hours` of the project, or all the time (`calendar`)."
_WARN = (
    "Minutes before a target is missed at which `ticket.sla_due_soon` is emitted, as they pass; 0 for"
    " never. A target that is shorter has no warning."
)

Minutes = Annotated[int | None, Field(ge=1, le=MOST_MINUTES)]


class Targets(RequestModel):
    """The targets of tickets of one priority."""

    model_config = ConfigDict(title="TargetsBody")

    first_reply_minutes: Minutes = Field(None, description=_FIRST, examples=[60])
    next_reply_minutes: Minutes = Field(None, description=_NEXT, examples=[120])
    resolution_minutes: Minutes = Field(None, description=_RESOLUTION, examples=[1440])
    counted_in: Counted = Field("business_hours", description=_COUNTED)


class SlaBody(RequestModel):
    """The service levels of a project, by priority. What is left out has no target."""

    urgent: Targets = Field(default_factory=Targets, description="Of urgent tickets.")
    high: Targets = Field(default_factory=Targets, description="Of tickets with high priority.")
    normal: Targets = Field(default_factory=Targets, description="Of tickets as usual.")
    low: Targets = Field(default_factory=Targets, description="Of tickets with low priority.")
    warn_minutes: int = Field(0, ge=0, le=10_080, description=_WARN, examples=[30])


class TargetsAnswer(ResponseModel):
    """The targets of tickets of one priority."""

    first_reply_minutes: int | None = Field(description=_FIRST, examples=[60])
    next_reply_minutes: int | None = Field(description=_NEXT, examples=[120])
    resolution_minutes: int | None = Field(description=_RESOLUTION, examples=[1440])
    counted_in: Counted = Field(description=_COUNTED)


class SlaAnswer(ResponseModel):
    """The service levels of a project, by priority."""

    urgent: TargetsAnswer = Field(description="Of urgent tickets.")
    high: TargetsAnswer = Field(description="Of tickets with high priority.")
    normal: TargetsAnswer = Field(description="Of tickets as usual.")
    low: TargetsAnswer = Field(description="Of tickets with low priority.")
    warn_minutes: int = Field(description=_WARN, examples=[30])

    @classmethod
    def of(cls, settings: SlaBody) -> "SlaAnswer":
        return cls(**settings.model_dump())


TargetName = Annotated[
    Target,
    Field(
        description="Which target: `first_reply` of an agent, `next_reply` to what the customer wrote since,"
        " or `resolution`, the closing."
    ),
]


class SlaClockAnswer(ResponseModel):
    """How far a ticket is from one of its targets."""

    target: TargetName
    state: State = Field(
        description="`running` while the team is to act, `paused` while the customer is, `over` when there is"
        " nothing to wait for."
    )
    due_at: Time | None = Field(
        description="When the target is missed, or was; null unless it is running."
    )
    outcome: Outcome | None = Field(
        description="Whether it was met so far; `breached` as soon as it was missed once. Null before it was"
        " met or missed.",
        examples=[None],
    )

    @classmethod
    def of(cls, clock: SlaClock) -> "SlaClockAnswer":
        return cls(
            target=clock.target,
            state=clock.state,
            due_at=optional_rfc3339(clock.due_at_ms),
            outcome=clock.outcome,
        )


@lru_cache(maxsize=256)
def read_sla(column: str | None) -> SlaBody:
    """The service levels of a row, without what only a newer version knows; cached by their text, so that
    none can be stale."""
    if column is None:
        return SlaBody()
    known = {
        name: value for name, value in json.loads(column).items() if name in SlaBody.model_fields
    }
    return SlaBody.model_validate_json(to_json(known))


def service_levels(settings: SlaBody, hours: BusinessHours) -> ServiceLevels:
    """The arithmetic of these service levels."""
    priorities: tuple[Priority, ...] = get_args(Priority)
    by_priority: dict[Priority, Limits] = {}
    for priority in priorities:
        targets: Targets = getattr(settings, priority)
        by_priority[priority] = Limits(
            first_reply=_ms(targets.first_reply_minutes),
            next_reply=_ms(targets.next_reply_minutes),
            resolution=_ms(targets.resolution_minutes),
            hours=hours if targets.counted_in == "business_hours" else None,
        )
    return ServiceLevels(by_priority, settings.warn_minutes * MINUTE_MS)


def _ms(minutes: int | None) -> int | None:
    return None if minutes is None else minutes * MINUTE_MS
