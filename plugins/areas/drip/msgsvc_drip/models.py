"""Models of drip campaigns, their steps and enrollments: internal, and of the API."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    Field,
    TypeAdapter,
    ValidationError,
    field_serializer,
    model_validator,
)

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.subscribers.models import PermissionKey, Source, TagName
from msgsvc_drip.definition import DripDefinition, Step, read_definition

DripStatus = Literal["active", "paused"]
Reentry = Literal["never", "after_completion"]
TriggerKind = Literal["subscription", "tag", "permission", "event", "manual"]
#: `stopped` is by an event, `cancelled` by the project; both, and `completed`, are final.
EnrollmentStatus = Literal["active", "paused", "completed", "stopped", "cancelled"]

_PERMISSION: TypeAdapter[str] = TypeAdapter(PermissionKey)
_TAG: TypeAdapter[str] = TypeAdapter(TagName)
_EVENT = re.compile(r"[\w.-]{1,64}")


def _check_event(name: str) -> str:
    if not _EVENT.fullmatch(name):
        raise InvalidValue(
            "must be the name of an event, as subscription.created or cart.abandoned"
        )
    if name.startswith("drip."):
        raise InvalidValue("must not be an event of drip campaigns")
    return name


def _check_name(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise InvalidValue("must be printable characters without spaces at its ends")
    return check_visible(name)


EventName = Annotated[str, AfterValidator(_check_event)]
ChainName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_name)]


class Trigger(RequestModel):
    """What leads people into the chain.

    `value` is the tag that is given, the key of the permission that is granted, or the name of an
    event: one that you track by `POST /v1/events`, or one of the service's about a person. With
    `subscription` it may be a `source`, and `manual` has none.
    """

    on: TriggerKind
    value: str | None = None

    @model_validator(mode="after")
    def _fitting(self) -> "Trigger":
        if problem := _problem(self.on, self.value):
            raise wrong_field("value", problem)
        return self


def _problem(on: TriggerKind, value: str | None) -> InvalidValue | None:
    """What is wrong with a trigger's value; None if nothing is."""
    if on == "manual":
        return None if value is None else InvalidValue("must be left out with manual")
    if on == "subscription":
        fits = value is None or value in get_args(Source)
        if fits:
            return None
        return InvalidValue("must be one of {choices}", choices=", ".join(get_args(Source)))
    if value is None:
        return InvalidValue("is required with {trigger}", trigger=on)
    return _name_problem(on, value)


def _name_problem(on: TriggerKind, value: str) -> InvalidValue | None:
    try:
        if on == "event":
            _check_event(value)
        else:
            (_TAG if on == "tag" else _PERMISSION).validate_python(value)
    except ValidationError:
        return InvalidValue("must be the name of a {kind}", kind=on)
    except InvalidValue as error:
        return error
    if on == "event" and value.startswith("delivery."):
        return InvalidValue("must not be an outcome of messages: a campaign would start itself")
    return None


class CreateDripBody(RequestModel):
    """A new drip campaign."""

    name: ChainName
    trigger: Trigger
    steps: list[Step] = Field(min_length=1, description="1-50 steps, in their order.")
    timezone: Zone = Field("UTC", description="Where `at_local_time` is.")
    stop_on: list[EventName] = Field(
        default_factory=list,
        max_length=20,
        description="Events that end the campaign for a person. Unsubscribing always does.",
    )
    reentry: Reentry = Field(
        "never", description="Whether a person may be enrolled again after it ended."
    )
    status: DripStatus = "active"

    def to_definition(self) -> DripDefinition:
        return DripDefinition(steps=self.steps, timezone=self.timezone, stop_on=self.stop_on)


class UpdateDripBody(RequestModel):
    """What is to change; a field that is left out stays."""

    name: Kept[ChainName] = None
    trigger: Kept[Trigger] = None
    steps: Kept[Annotated[list[Step], Field(min_length=1)]] = None
    timezone: Kept[Zone] = None
    stop_on: Kept[Annotated[list[EventName], Field(max_length=20)]] = None
    reentry: Kept[Reentry] = None

    def changed(self, definition: DripDefinition) -> DripDefinition:
        """What `definition` is then."""
        return DripDefinition(
            steps=definition.steps if self.steps is None else self.steps,
            timezone=definition.timezone if self.timezone is None else self.timezone,
            stop_on=definition.stop_on if self.stop_on is None else self.stop_on,
        )


class EnrollBody(RequestModel):
    """Who is to go through the chain."""

    subscriber_id: str | None = None
    external_id: str | None = None
    channel: str | None = Field(None, description="With external_id: which of the subscribers.")


class EnrollmentQuery(PageQuery):
    """Filters and paging."""

    status: EnrollmentStatus | None = None
    subscriber_id: str | None = None


@value_object
class Drip:
    """A row with the content of its newest version."""

    project_id: str
    drip_id: str
    name: str
    status: DripStatus
    reentry: Reentry
    trigger_on: TriggerKind
    trigger_value: str
    version: int
    created_at_ms: int
    updated_at_ms: int
    content: str

    @property
    def definition(self) -> DripDefinition:
        return read_definition(self.content)


@value_object
class Enrollment:
    """A row: `next_step` is the number of completed steps, `due_at_ms` None while none can be due."""

    project_id: str
    enrollment_id: str
    drip_id: str
    version: int
    subscriber_id: str
    status: EnrollmentStatus
    next_step: int
    due_at_ms: int | None
    last_message_id: str | None
    reason: str | None
    created_at_ms: int
    finished_at_ms: int | None


class DripAnswer(ResponseModel):
    """A chain. `version` grows with its steps, `timezone` and `stop_on`."""

    drip_id: str
    name: str
    status: DripStatus
    version: int
    trigger: Trigger
    steps: list[Step]
    timezone: str
    stop_on: list[str]
    reentry: Reentry
    created_at: str
    updated_at: str

    @field_serializer("steps")
    def _as_given(self, steps: list[Step]) -> list[dict[str, Any]]:
        return [step.model_dump(mode="json", exclude_unset=True) for step in steps]

    @classmethod
    def of(cls, drip: Drip) -> "DripAnswer":
        course = drip.definition
        return cls(
            drip_id=drip.drip_id,
            name=drip.name,
            status=drip.status,
            version=drip.version,
            trigger=Trigger(on=drip.trigger_on, value=drip.trigger_value or None),
            steps=course.steps,
            timezone=course.timezone,
            stop_on=course.stop_on,
            reentry=drip.reentry,
            created_at=to_rfc3339(drip.created_at_ms),
            updated_at=to_rfc3339(drip.updated_at_ms),
        )


class DripList(ResponseModel):
    """A page of chains, newest first."""

    data: list[DripAnswer]
    next_cursor: str | None


class EnrollmentAnswer(ResponseModel):
    """A subscriber's progress in a drip campaign; `next_step` counts from 1, and is null at the end."""

    enrollment_id: str
    drip_id: str
    version: int
    subscriber_id: str
    status: EnrollmentStatus
    next_step: int | None
    due_at: str | None = Field(description="When the next step is due; null in a pause.")
    last_message_id: str | None
    reason: str | None = Field(description="The event that stopped it, or why a step was skipped.")
    created_at: str
    finished_at: str | None

    @classmethod
    def of(cls, row: Enrollment) -> "EnrollmentAnswer":
        return cls(
            enrollment_id=row.enrollment_id,
            drip_id=row.drip_id,
            version=row.version,
            subscriber_id=row.subscriber_id,
            status=row.status,
            next_step=row.next_step + 1 if row.finished_at_ms is None else None,
            due_at=optional_rfc3339(row.due_at_ms),
            last_message_id=row.last_message_id,
            reason=row.reason,
            created_at=to_rfc3339(row.created_at_ms),
            finished_at=optional_rfc3339(row.finished_at_ms),
        )


class EnrollmentList(ResponseModel):
    """A page of enrollments, newest first."""

    data: list[EnrollmentAnswer]
    next_cursor: str | None
