"""Models of drip campaigns, their steps and enrollments: internal, and of the API."""

import re
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import AsGiven
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import (
    CreatedAt,
    Kept,
    NamedByExternalId,
    NamedById,
    NamedOnChannel,
    SubscriberId,
    Time,
    UpdatedAt,
)
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


EventName = Annotated[str, Field(examples=["order.completed"]), AfterValidator(_check_event)]
CampaignName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        examples=["Abandoned cart"],
    ),
    AfterValidator(_check_name),
]

DripId = Annotated[
    str, Field(description="The campaign's id.", examples=["drp_032aJdcwcpFkTRecgydrMn"])
]
EnrollmentId = Annotated[
    str, Field(description="The enrollment's id.", examples=["enr_032aJdyxLYj79NfjC75A9o"])
]

#: What these fields mean, in bodies and responses alike.
_NAME = "Shown to the people who manage campaigns."
_TRIGGER = "What enrolls people."
_STEPS = "The 1-50 steps, in their order."
_TIMEZONE = "IANA time zone of the steps' `at_local_time`."
_STOP_ON = (
    "Events about a person that end the campaign for them: yours, as tracked by `POST /v1/events`, or the"
    " service's. Unsubscribing always does."
)
_REENTRY = (
    "Whether a person may be enrolled again: `never`, or `after_completion` of their enrollment."
)


class Trigger(RequestModel):
    """What leads people into the chain.

    `value` is the tag that is given, the key of the permission that is granted, or the name of an
    event: one that you track by `POST /v1/events`, or one of the service's about a person. With
    `subscription` it may be a `source`, and `manual` has none.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"on": "event", "value": "cart.abandoned"},
                {"on": "tag", "value": examples.TAG},
                {"on": "manual"},
            ]
        }
    )

    on: TriggerKind = Field(
        description="What happens to people: they subscribe, get a tag, grant a permission, an event about"
        " them is emitted; or `manual`, only by `POST /v1/drips/{drip_id}/enroll`."
    )
    value: str | None = Field(
        None,
        description="Name of the tag, permission or event. With `subscription`: only people who came by"
        " this `source`, null for all. Null with `manual`.",
        examples=["cart.abandoned"],
    )

    @model_validator(mode="after")
    def _fitting(self) -> "Trigger":
        """`value` is left out with `manual`, a source or nothing with `subscription`, and else the name of
        the event, the tag or the permission."""
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

    name: CampaignName = Field(description=_NAME)
    trigger: Trigger = Field(description=_TRIGGER)
    steps: list[Step] = Field(min_length=1, description=_STEPS)
    timezone: Zone = Field("UTC", description=_TIMEZONE, examples=["Europe/Berlin"])
    stop_on: list[EventName] = Field(
        default_factory=list,
        max_length=20,
        description=_STOP_ON,
    )
    reentry: Reentry = Field("never", description=_REENTRY)
    status: DripStatus = Field(
        "active", description="`paused` to enroll nobody until it is resumed."
    )

    def to_definition(self) -> DripDefinition:
        return DripDefinition(steps=self.steps, timezone=self.timezone, stop_on=self.stop_on)


class UpdateDripBody(RequestModel):
    """Changes; omitted fields stay unchanged."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"stop_on": ["order.completed"], "reentry": "never"}]}
    )

    name: Kept[CampaignName] = Field(None, description=_NAME)
    trigger: Kept[Trigger] = Field(None, description=_TRIGGER)
    steps: Kept[Annotated[list[Step], Field(min_length=1)]] = Field(None, description=_STEPS)
    timezone: Kept[Zone] = Field(None, description=_TIMEZONE, examples=["Europe/Berlin"])
    stop_on: Kept[Annotated[list[EventName], Field(max_length=20)]] = Field(
        None, description=_STOP_ON
    )
    reentry: Kept[Reentry] = Field(None, description=_REENTRY)

    def changed(self, definition: DripDefinition) -> DripDefinition:
        """What `definition` is then."""
        return DripDefinition(
            steps=definition.steps if self.steps is None else self.steps,
            timezone=definition.timezone if self.timezone is None else self.timezone,
            stop_on=definition.stop_on if self.stop_on is None else self.stop_on,
        )


class EnrollInDripBody(RequestModel):
    """The subscriber to enroll, named by `subscriber_id` or by `external_id`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"subscriber_id": examples.SUBSCRIBER_ID}]}
    )

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None


class EnrollmentQuery(PageQuery):
    """Filters and paging."""

    status: EnrollmentStatus | None = Field(
        None, description="Only enrollments with this status.", examples=["active"]
    )
    subscriber_id: str | None = Field(
        None, description="Only those of this subscriber.", examples=[examples.SUBSCRIBER_ID]
    )


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
    """A drip campaign in its newest version."""

    drip_id: DripId
    name: str = Field(description=_NAME, examples=["Abandoned cart"])
    status: DripStatus = Field(
        description="While it is `paused`, nobody is enrolled and no step is sent."
    )
    version: int = Field(
        description="From 1; grows with changes of `steps`, `timezone` and `stop_on`.", examples=[1]
    )
    trigger: Trigger = Field(description=_TRIGGER)
    steps: list[AsGiven[Step]] = Field(description=_STEPS)
    timezone: str = Field(description=_TIMEZONE, examples=["Europe/Berlin"])
    stop_on: list[str] = Field(description=_STOP_ON, examples=[["order.completed"]])
    reentry: Reentry = Field(description=_REENTRY)
    created_at: CreatedAt
    updated_at: UpdatedAt

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
    """A page of drip campaigns, newest first."""

    data: list[DripAnswer] = Field(description="The campaigns of this page.")
    next_cursor: NextCursor


class EnrollmentAnswer(ResponseModel):
    """A subscriber's progress in a drip campaign."""

    enrollment_id: EnrollmentId
    drip_id: DripId
    version: int = Field(
        description="The campaign's version, which the enrollment keeps to its end.", examples=[1]
    )
    subscriber_id: SubscriberId
    status: EnrollmentStatus = Field(
        description="`active` or `paused`; at the end `completed`, `stopped` by an event, or `cancelled` by"
        " a request."
    )
    next_step: int | None = Field(
        description="Number of the step that comes next, from 1; null at the end.", examples=[1]
    )
    due_at: Time | None = Field(
        description="When the next step is due; null in a pause and at the end.",
        examples=[examples.LATER],
    )
    last_message_id: str | None = Field(
        description="The message that was queued last; null before the first.",
        examples=[None],
    )
    reason: str | None = Field(
        description="The event that stopped it, or why the last step was skipped, for people. Null if"
        " neither happened.",
        examples=[None],
    )
    created_at: CreatedAt = Field(
        description="When the subscriber was enrolled.", examples=[examples.TIME]
    )
    finished_at: Time | None = Field(
        description="When it was completed, stopped or cancelled; null before.", examples=[None]
    )

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

    data: list[EnrollmentAnswer] = Field(description="The enrollments of this page.")
    next_cursor: NextCursor
