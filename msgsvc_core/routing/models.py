"""Models of routes: internal, and of the API."""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, model_validator
from typing_extensions import TypedDict

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept, UpdatedAt
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.channels.contract import Channel
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.subscribers.models import Recipient

#: What ends a route at a step. Each but the first needs a channel that reports it, or people who can answer.
Until = Literal["sent", "delivered", "read", "answered"]

#: Whether a route goes on after a call of which nobody can tell whether it arrived.
OnUnknown = Literal["stop", "continue"]


class SkippedReason(StrEnum):
    """Why a message was not sent, although nothing failed."""

    EXPIRED = "expired"
    CANCELLED = "cancelled"
    NO_SUBSCRIBER = "no_subscriber"
    UNSUBSCRIBED = "unsubscribed"
    BLOCKED = "blocked"
    NO_PERMISSION = "no_permission"
    OUTSIDE_HOURS = "outside_hours"
    CHANNEL_REMOVED = "channel_removed"
    CHANNEL_STOPPED = "channel_stopped"
    #: The subscriber is another person now, or uses another bot.
    RECIPIENT_CHANGED = "recipient_changed"


#: Characters of a route's name.
NAME_LENGTH = 100

#: The shortest wait of a step in seconds: jobs that look after it come no more often.
LEAST_WAIT_S = 5

ROUTE_ID = "rte_032aJf5m2yQKcW8tUdXbZp"

RouteId = Annotated[
    str, Field(description="The route, from `POST /v1/routes`.", examples=[ROUTE_ID])
]


def _check_name(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise InvalidValue("must be printable characters without spaces at its ends")
    return check_visible(name)


RouteName = Annotated[
    str,
    Field(min_length=1, max_length=NAME_LENGTH, examples=["Urgent"]),
    AfterValidator(_check_name),
]

_FROM = "Local time from which the step may be used, `HH:MM`."
_TO = (
    "Local time until which it may be used, `HH:MM`; `24:00` for the end of the day, and earlier than `from`"
    " for one of the next day."
)
_ZONE = "IANA time zone of both."
_NAME = "What people choose it by; no other route of the project has it."
_STEPS = "The channels, in the order in which they are tried."
_CHANNEL = "Messenger, by its channel's name in `GET /v1/project`."
_UNTIL = (
    "What ends the route at this step: the messenger took the message (`sent`), it reached the person's"
    " device (`delivered`), they opened it (`read`), or they wrote or pressed a button (`answered`)."
    " `delivered` and `read` need a channel that reports them."
)
_WITHIN = (
    "Seconds to wait for it before the next step; null to go on only if the message can't be sent. Required"
    " where `until` is not `sent` and a step follows."
)
_HOURS = "When the step may be used; at other times it is passed over. Null for always."
_ON_UNKNOWN = (
    "What follows if nobody can tell whether the message arrived: `stop`, so that nobody gets it twice, or"
    " `continue` with the next step."
)

From = Annotated[
    str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description=_FROM, examples=["08:00"])
]
To = Annotated[
    str,
    Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", description=_TO, examples=["22:00"]),
]


class RouteHours(RequestModel):
    """Local times of the day between which a step may be used."""

    model_config = ConfigDict(title="RouteHoursBody")

    from_: From = Field(alias="from")
    to: To = Field()
    timezone: Zone = Field("UTC", description=_ZONE, examples=["Europe/Berlin"])

    @model_validator(mode="after")
    def _some(self) -> "RouteHours":
        """`from` and `to` differ."""
        if self.from_ == self.to:
            raise InvalidValue("from and to must differ")
        return self


class RouteStep(RequestModel):
    """One channel of a route, and the report that ends the route there."""

    model_config = ConfigDict(title="RouteStepBody")

    channel: str = Field(description=_CHANNEL, examples=[examples.CHANNEL])
    until: Until = Field("sent", description=_UNTIL, examples=["sent"])
    within_seconds: int | None = Field(None, ge=LEAST_WAIT_S, description=_WITHIN, examples=[60])
    hours: RouteHours | None = Field(None, description=_HOURS)
    on_unknown: OnUnknown = Field("stop", description=_ON_UNKNOWN, examples=["stop"])


_STORED: TypeAdapter[tuple[RouteStep, ...]] = TypeAdapter(tuple[RouteStep, ...])

#: Names of fields in the column, where they differ from those of the API.
_COLUMN_NAMES = {"within_seconds": "within_s"}


def steps_to_column(steps: Sequence[RouteStep]) -> str:
    """The JSON of steps, as routes store them, and messages and codes that are sent by one."""
    return to_json([_stored(step) for step in steps])


@lru_cache(maxsize=256)
def read_steps(column: str) -> tuple[RouteStep, ...]:
    """The steps of `steps_to_column`."""
    shown = {stored: name for name, stored in _COLUMN_NAMES.items()}
    return _STORED.validate_python(
        [{shown.get(name, name): each for name, each in step.items()} for step in from_json(column)]
    )


def _stored(step: RouteStep) -> dict[str, Any]:
    fields = step.model_dump(by_alias=True, exclude_defaults=True)
    return {_COLUMN_NAMES.get(name, name): each for name, each in fields.items()}


@value_object
class Route:
    """A route. `version` counts its changes."""

    project_id: str
    route_id: str
    name: str
    steps: tuple[RouteStep, ...]
    version: int
    created_at_ms: int
    updated_at_ms: int


@value_object
class Candidate:
    """A step that can be used now, by its number from 0: whom it reaches, and by which bot."""

    step: int
    recipient: Recipient
    channel: Channel


@value_object
class SkippedStep:
    """A step that can't be used now, by its number from 0. `opens_at_ms` is when its hours begin; None if
    they are not the reason."""

    step: int
    channel: str
    reason: SkippedReason
    opens_at_ms: int | None = None


@value_object
class Choice:
    """What a route comes to for a person at one moment: its steps, in their order."""

    steps: tuple[Candidate | SkippedStep, ...] = ()

    @property
    def obstacles(self) -> tuple[SkippedReason | None, ...]:
        """What keeps each step from being used; None for a candidate."""
        return tuple(each.reason if isinstance(each, SkippedStep) else None for each in self.steps)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The steps that can be used now."""
        return tuple(each for each in self.steps if isinstance(each, Candidate))

    @property
    def skipped(self) -> tuple[SkippedStep, ...]:
        """The other steps."""
        return tuple(each for each in self.steps if isinstance(each, SkippedStep))

    @property
    def opens_at_ms(self) -> int | None:
        """When the first of the steps that are outside their hours can be used; None if there are none."""
        return min((each.opens_at_ms for each in self.skipped if each.opens_at_ms), default=None)


_EXAMPLE: dict[str, Any] = {
    "name": "Urgent",
    "steps": [
        {"channel": examples.CHANNEL, "within_seconds": 60},
        {"channel": "email"},
        {
            "channel": "sms",
            "hours": {"from": "08:00", "to": "22:00", "timezone": "Europe/Berlin"},
        },
    ],
}


def _check_waits(steps: Sequence[RouteStep]) -> None:
    """A step that waits for more than its sending has to end, unless it is the last."""
    for number, step in enumerate(steps[:-1]):
        if step.until != "sent" and step.within_seconds is None:
            raise wrong_field(
                f"steps[{number}].within_seconds", "say how long to wait before the next step"
            )


class CreateRouteBody(RequestModel):
    """A new route."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: RouteName = Field(description=_NAME)
    steps: list[RouteStep] = Field(min_length=1, description=_STEPS)

    @model_validator(mode="after")
    def _waits(self) -> "CreateRouteBody":
        """Every step but the last that waits for more than `sent` has `within_seconds`."""
        _check_waits(self.steps)
        return self


class UpdateRouteBody(RequestModel):
    """Changes; omitted fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Urgent"}]})

    name: Kept[RouteName] = Field(None, description=_NAME)
    steps: Kept[Annotated[list[RouteStep], Field(min_length=1)]] = Field(
        None, description="New steps; they replace all there are."
    )

    @model_validator(mode="after")
    def _waits(self) -> "UpdateRouteBody":
        """Every step but the last that waits for more than `sent` has `within_seconds`."""
        _check_waits(self.steps or ())
        return self


RouteHoursAnswer = TypedDict(
    "RouteHoursAnswer",
    {
        "from": Annotated[str, Field(description=_FROM, examples=["08:00"])],
        "to": Annotated[str, Field(description=_TO, examples=["22:00"])],
        "timezone": Annotated[str, Field(description=_ZONE, examples=["Europe/Berlin"])],
    },
)
RouteHoursAnswer.__doc__ = "Local times of the day between which a step may be used."


class RouteStepAnswer(ResponseModel):
    """One channel of a route, and the report that ends the route there."""

    channel: str = Field(description=_CHANNEL, examples=[examples.CHANNEL])
    until: Until = Field(description=_UNTIL, examples=["sent"])
    within_seconds: int | None = Field(description=_WITHIN, examples=[60])
    hours: RouteHoursAnswer | None = Field(
        description=_HOURS,
        examples=[{"from": "08:00", "to": "22:00", "timezone": "Europe/Berlin"}],
    )
    on_unknown: OnUnknown = Field(description=_ON_UNKNOWN, examples=["stop"])

    @classmethod
    def of(cls, step: RouteStep) -> "RouteStepAnswer":
        return cls.model_validate(step.model_dump(by_alias=True))


class RouteAnswer(ResponseModel):
    """A route."""

    route_id: RouteId
    name: str = Field(description=_NAME, examples=["Urgent"])
    steps: list[RouteStepAnswer] = Field(description=_STEPS)
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, route: Route) -> "RouteAnswer":
        return cls(
            route_id=route.route_id,
            name=route.name,
            steps=[RouteStepAnswer.of(step) for step in route.steps],
            created_at=to_rfc3339(route.created_at_ms),
            updated_at=to_rfc3339(route.updated_at_ms),
        )


class RouteList(ResponseModel):
    """A page of routes, newest first."""

    data: list[RouteAnswer] = Field(description="The page's routes.")
    next_cursor: NextCursor
