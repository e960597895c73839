"""Service levels as the API takes and shows them."""

import json
from functools import lru_cache
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept, Time
from msgsvc_core.kernel.clock import optional_rfc3339
from msgsvc_core.kernel.json import to_json
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours
from msgsvc_helpdesk.service_levels.rules import (
    ClockStatus,
    Limits,
    Outcome,
    ServiceLevels,
    SlaClock,
    Target,
)

Counted = Literal["business_hours", "calendar"]

#: Seconds of the longest target, a year, and of the longest warning, a week.
MOST_SECONDS, MOST_WARN_SECONDS = 31_536_000, 604_800

_FIRST = "Seconds until the first reply of an agent; null for no target."
_NEXT = "Seconds until each further reply, from the customer's message on; null for no target."
_RESOLUTION = "Seconds until the ticket is closed; null for no target."
_COUNTED = "What is counted: `business_hours` of the project, or all the time (`calendar`)."
_WARN = (
    "Seconds before a target is missed at which `ticket.sla_due_soon` is emitted, as they pass; 0 for"
    " never. A target that is shorter has no warning."
)

Seconds = Annotated[int | None, Field(ge=60, le=MOST_SECONDS)]


class Targets(RequestModel):
    """The targets of tickets of one priority."""

    model_config = ConfigDict(title="TargetsBody")

    first_response_seconds: Seconds = Field(None, description=_FIRST, examples=[3600])
    next_response_seconds: Seconds = Field(None, description=_NEXT, examples=[7200])
    resolution_seconds: Seconds = Field(None, description=_RESOLUTION, examples=[86400])
    counted_in: Counted = Field("business_hours", description=_COUNTED)


WarnSeconds = Annotated[int, Field(ge=0, le=MOST_WARN_SECONDS)]


class SlaTargets(RequestModel):
    """The service levels of a project, by priority. An omitted priority has no target."""

    urgent: Targets = Field(default_factory=Targets, description="Targets of urgent tickets.")
    high: Targets = Field(
        default_factory=Targets, description="Targets of tickets with high priority."
    )
    normal: Targets = Field(
        default_factory=Targets, description="Targets of tickets with normal priority."
    )
    low: Targets = Field(
        default_factory=Targets, description="Targets of tickets with low priority."
    )
    warn_seconds: WarnSeconds = Field(0, description=_WARN, examples=[1800])


class UpdateSlaBody(RequestModel):
    """Changes of a project's service levels. A priority's targets are replaced whole; omitted fields stay
    unchanged."""

    urgent: Kept[Targets] = Field(None, description="Targets of urgent tickets.")
    high: Kept[Targets] = Field(None, description="Targets of tickets with high priority.")
    normal: Kept[Targets] = Field(None, description="Targets of tickets with normal priority.")
    low: Kept[Targets] = Field(None, description="Targets of tickets with low priority.")
    warn_seconds: Kept[WarnSeconds] = Field(None, description=_WARN, examples=[1800])


class TargetsAnswer(ResponseModel):
    """The targets of tickets of one priority."""

    first_response_seconds: int | None = Field(description=_FIRST, examples=[3600])
    next_response_seconds: int | None = Field(description=_NEXT, examples=[7200])
    resolution_seconds: int | None = Field(description=_RESOLUTION, examples=[86400])
    counted_in: Counted = Field(description=_COUNTED)


class ServiceLevelsAnswer(ResponseModel):
    """The service levels of a project, by priority."""

    urgent: TargetsAnswer = Field(description="Targets of urgent tickets.")
    high: TargetsAnswer = Field(description="Targets of tickets with high priority.")
    normal: TargetsAnswer = Field(description="Targets of tickets with normal priority.")
    low: TargetsAnswer = Field(description="Targets of tickets with low priority.")
    warn_seconds: int = Field(description=_WARN, examples=[1800])

    @classmethod
    def of(cls, settings: SlaTargets) -> "ServiceLevelsAnswer":
        return cls(**settings.model_dump())


TargetName = Annotated[
    Target,
    Field(
        description="Which target: `first_response` of an agent, `next_response` to what the customer wrote"
        " since, or `resolution`, the closing."
    ),
]


class SlaClockAnswer(ResponseModel):
    """How far a ticket is from one of its targets."""

    target: TargetName
    status: ClockStatus = Field(
        description="`running` while the ticket waits for the team, `paused` while it waits for the"
        " customer, `completed` if nothing is left."
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
            status=clock.status,
            due_at=optional_rfc3339(clock.due_at_ms),
            outcome=clock.outcome,
        )


@lru_cache(maxsize=256)
def read_sla(column: str | None) -> SlaTargets:
    """The service levels of a row, without what this version does not know; cached by their text, so that
    none can be stale."""
    if column is None:
        return SlaTargets()
    stored = json.loads(column)
    known = {name: value for name, value in stored.items() if name in SlaTargets.model_fields}
    for priority in get_args(Priority):
        targets = known.get(priority, {})
        known[priority] = {
            name: value for name, value in targets.items() if name in Targets.model_fields
        }
    return SlaTargets.model_validate_json(to_json(known))


def service_levels(settings: SlaTargets, hours: BusinessHours) -> ServiceLevels:
    """The arithmetic of these service levels."""
    priorities: tuple[Priority, ...] = get_args(Priority)
    by_priority: dict[Priority, Limits] = {}
    for priority in priorities:
        targets: Targets = getattr(settings, priority)
        by_priority[priority] = Limits(
            first_response=_ms(targets.first_response_seconds),
            next_response=_ms(targets.next_response_seconds),
            resolution=_ms(targets.resolution_seconds),
            hours=hours if targets.counted_in == "business_hours" else None,
        )
    return ServiceLevels(by_priority, settings.warn_seconds * 1000)


def _ms(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1000
