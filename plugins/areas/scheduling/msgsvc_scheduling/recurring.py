"""Models of recurring messages in the API."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import Kept, Time
from msgsvc_core.kernel.clock import optional_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.mailings import MailingProgress
from msgsvc_scheduling.models import (
    EXAMPLE_TEXT,
    MessageBody,
    MessageChanges,
    Moment,
    Record,
    RecordAnswer,
)
from msgsvc_scheduling.recurrence import Rule, check_cron

RecurringStatus = Literal["active", "paused", "completed", "cancelled"]

#: The longest interval.
MOST_HOURS, MOST_DAYS = 8760, 365


Cron = Annotated[
    str,
    Field(
        max_length=100,
        description="Cron expression in `timezone`: minute, hour, day of month, month, day of week.",
        examples=["30 9 * * MON-FRI"],
    ),
    AfterValidator(check_cron),
]
TimeOfDay = Annotated[
    str,
    Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["22:00"]),
]

#: What these fields mean, in bodies and responses alike.
_HOURS = "Hours between runs, as they pass; 8,760 at most."
_DAYS = "Days between runs, which come at the same local time; 365 at most."
_FROM = "Local time at which they begin, `HH:MM`."
_TO = "Local time at which they end; before `from`, on the next day."

RecurringId = Annotated[
    str,
    Field(description="The recurring message's id.", examples=["rec_032aJc1tNWcb0fJsTfuyYC"]),
]


class Every(RequestModel):
    """An interval: `hours` as they pass, or `days` at the same local time."""

    model_config = ConfigDict(
        title="EveryBody", json_schema_extra={"examples": [{"days": 7}, {"hours": 12}]}
    )

    hours: int | None = Field(None, ge=1, le=MOST_HOURS, description=_HOURS, examples=[12])
    days: int | None = Field(None, ge=1, le=MOST_DAYS, description=_DAYS, examples=[7])

    @model_validator(mode="after")
    def _one(self) -> "Every":
        """Exactly one of `hours` and `days` is given."""
        if (self.hours is None) == (self.days is None):
            raise InvalidValue("give exactly one of hours and days")
        return self


class QuietHours(RequestModel):
    """Local times of the day, between which nothing is sent."""

    model_config = ConfigDict(title="QuietHoursBody")

    from_: TimeOfDay = Field(alias="from", description=_FROM)
    to: TimeOfDay = Field(description=_TO, examples=["08:00"])

    @model_validator(mode="after")
    def _some(self) -> "QuietHours":
        """`from` and `to` differ."""
        if self.from_ == self.to:
            raise InvalidValue("from and to must differ")
        return self


class CreateRecurringBody(MessageBody):
    """A message, who gets it, and how often: by `cron` or by `every`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": EXAMPLE_TEXT,
                    "cron": "30 9 * * MON-FRI",
                    "timezone": "Europe/Berlin",
                    "ends_at": "2026-12-31T23:59",
                },
                {
                    "audience": {"tags_any": [examples.TAG]},
                    "template": "weekly-report",
                    "every": {"days": 7},
                    "starts_at": examples.LATER,
                    "quiet_hours": {"from": "22:00", "to": "08:00"},
                },
            ]
        }
    )

    cron: Cron | None = Field(
        None,
        description="When it is sent, as a cron expression in `timezone`: minute, hour, day of month,"
        " month, day of week. Exactly one of this and `every`.",
        examples=["30 9 * * MON-FRI"],
    )
    every: Every | None = Field(
        None,
        description="Or how often: counted from `starts_at`, and without it the first run is one interval"
        " from now.",
    )
    timezone: Zone = Field(
        "UTC",
        description="IANA time zone of `cron`, of days, of quiet hours and of local times.",
        examples=["Europe/Berlin"],
    )
    starts_at: Moment | None = Field(
        None,
        description="No run before this time: RFC 3339, or a local time in `timezone`.",
        examples=[examples.LATER],
    )
    ends_at: Moment | None = Field(
        None,
        description="No run after this time: RFC 3339, or a local time in `timezone`. By default there"
        " is no end.",
        examples=["2026-12-31T23:59"],
    )
    quiet_hours: QuietHours | None = Field(
        None, description="Runs due in these hours are sent when they end."
    )


class UpdateRecurringBody(MessageChanges):
    """Another message, other times, or both. Omitted fields stay unchanged. Null removes `starts_at`,
    `ends_at`, `quiet_hours`.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"cron": "0 10 * * MON-FRI", "quiet_hours": None},
                {"text": "Good morning! There are no orders today."},
            ]
        }
    )

    cron: Kept[Cron] = Field(
        None,
        description="Replaces `every`; a cron expression of five fields.",
        examples=["0 10 * * MON-FRI"],
    )
    every: Kept[Every] = Field(
        None,
        description="Takes the place of `cron`; counted from now, or from `starts_at` where that is ahead.",
    )
    timezone: Kept[Zone] = Field(
        None,
        description="IANA time zone in which `cron`, days, quiet hours and local times are read.",
        examples=["Europe/Berlin"],
    )
    starts_at: Moment | None = Field(
        None,
        description="No run before this time, RFC 3339 or local; null removes it.",
        examples=[examples.LATER],
    )
    ends_at: Moment | None = Field(
        None,
        description="No run after this time, RFC 3339 or local; null removes it.",
        examples=["2026-12-31T23:59"],
    )
    quiet_hours: QuietHours | None = Field(
        None, description="Runs due in these hours are sent when they end; null removes them."
    )

    @property
    def changes_times(self) -> bool:
        return bool(self.model_fields_set - set(MessageChanges.model_fields))


class EveryAnswer(TypedDict, total=False):
    """An interval, of which one is there."""

    hours: Annotated[int, Field(description=_HOURS, examples=[12])]
    days: Annotated[int, Field(description=_DAYS, examples=[7])]


QuietHoursAnswer = TypedDict(
    "QuietHoursAnswer",
    {
        "from": Annotated[TimeOfDay, Field(description=_FROM)],
        "to": Annotated[TimeOfDay, Field(description=_TO, examples=["08:00"])],
    },
)
QuietHoursAnswer.__doc__ = "Local times of the day, between which nothing is sent."


class RecurringFields(ResponseModel):
    """What a recurring message has of its own."""

    recurring_id: RecurringId
    status: RecurringStatus = Field(
        description="`active`, or `paused` by a request; `completed` after its last run, or `cancelled`."
    )
    cron: str | None = Field(
        description="When it is sent; null with `every`.", examples=["30 9 * * MON-FRI"]
    )
    every: EveryAnswer | None = Field(
        description="How often it is sent; null with `cron`.", examples=[None]
    )
    timezone: str = Field(
        description="IANA time zone of `cron`, of days and of quiet hours.",
        examples=["Europe/Berlin"],
    )
    starts_at: Time | None = Field(
        description="No run before this time, in UTC; null if there is no such limit.",
        examples=[None],
    )
    ends_at: Time | None = Field(
        description="No run after this time, in UTC; null if it does not end.",
        examples=["2026-12-31T22:59:00.000Z"],
    )
    quiet_hours: QuietHoursAnswer | None = Field(
        description="Runs due in these hours are sent when they end; null without them.",
        examples=[None],
    )
    next_run_at: Time | None = Field(
        description="When it is sent next; null while it is paused, and after the last run.",
        examples=["2026-03-02T08:30:00.000Z"],
    )
    last_run_at: Time | None = Field(
        description="When it was due last, whether or not it could be sent; null before the first run.",
        examples=[None],
    )


# The fields of the last base come first in an answer: its id.
class RecurringAnswer(RecordAnswer, RecurringFields):
    """A recurring message. What became of it is of the last run."""

    @classmethod
    def of(cls, record: Record, delivery: MailingProgress | None) -> "RecurringAnswer":
        rule = record.rule
        assert rule is not None, "a recurring record has its rule"
        return cls.model_validate(
            {
                "recurring_id": record.record_id,
                "status": record.status,
                "cron": rule.cron,
                "every": _every(rule),
                "timezone": rule.timezone,
                "starts_at": optional_rfc3339(rule.starts_at_ms),
                "ends_at": optional_rfc3339(rule.ends_at_ms),
                "quiet_hours": _quiet_hours(rule),
                "next_run_at": optional_rfc3339(record.due_at_ms),
                "last_run_at": optional_rfc3339(record.last_run_at_ms),
                **cls.shared_of(record, delivery),
            }
        )


class RecurringList(ResponseModel):
    """A page of recurring messages, newest first."""

    data: list[RecurringAnswer] = Field(description="The recurring messages of this page.")
    next_cursor: NextCursor


class RecurringQuery(PageQuery):
    """Filters and paging."""

    status: RecurringStatus | None = Field(
        None, description="Only messages with this status.", examples=["active"]
    )


def _every(rule: Rule) -> dict[str, int] | None:
    if rule.hours is not None:
        return {"hours": rule.hours}
    return None if rule.days is None else {"days": rule.days}


def _quiet_hours(rule: Rule) -> dict[str, str] | None:
    if rule.quiet_from is None or rule.quiet_to is None:
        return None
    return {"from": rule.quiet_from, "to": rule.quiet_to}
