"""Models of recurring messages in the API."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept
from msgsvc_core.kernel.clock import optional_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.mailings import MailingProgress
from msgsvc_scheduling.models import (
    TEXT_LENGTH,
    MessageBody,
    MessageChanges,
    Record,
    RecordAnswer,
)
from msgsvc_scheduling.recurrence import Rule, check_cron

RecurringStatus = Literal["active", "paused", "ended", "cancelled"]

#: The longest interval.
MOST_HOURS, MOST_DAYS = 8760, 365


Cron = Annotated[
    str,
    Field(
        max_length=100,
        description="Minute, hour, day of month, month, day of week, as `30 9 * * MON-FRI`.",
    ),
    AfterValidator(check_cron),
]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Moment = Annotated[
    str, Field(max_length=TEXT_LENGTH, description="With an offset, or local in `timezone`.")
]


class Every(RequestModel):
    """An interval: `hours` as they pass, or `days` at the same local time."""

    hours: int | None = Field(None, ge=1, le=MOST_HOURS)
    days: int | None = Field(None, ge=1, le=MOST_DAYS)

    @model_validator(mode="after")
    def _one(self) -> "Every":
        if (self.hours is None) == (self.days is None):
            raise InvalidValue("give exactly one of hours and days")
        return self


class QuietHours(RequestModel):
    """Local times of the day, between which nothing is sent."""

    from_: TimeOfDay = Field(alias="from")
    to: TimeOfDay

    @model_validator(mode="after")
    def _some(self) -> "QuietHours":
        if self.from_ == self.to:
            raise InvalidValue("from and to must differ")
        return self


class RecurringBody(MessageBody):
    """A message, who gets it, and how often: by `cron` or by `every`."""

    cron: Cron | None = None
    every: Every | None = Field(
        None, description="Counted from `starts_at`; without it the first is one interval from now."
    )
    timezone: Zone = Field("UTC", description="IANA name.")
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    quiet_hours: QuietHours | None = Field(
        None, description="Runs due in these hours are sent when they end."
    )


class UpdateRecurringBody(MessageChanges):
    """Another message, other times, or both. What is left out stays as it is.

    Null takes away `starts_at`, `ends_at`, `quiet_hours`.
    """

    cron: Kept[Cron] = Field(None, description="Replaces `every`.")
    every: Kept[Every] = Field(
        None,
        description="Takes the place of `cron`; counted from now, or from `starts_at` where that is ahead.",
    )
    timezone: Kept[Zone] = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    quiet_hours: QuietHours | None = None

    @property
    def changes_times(self) -> bool:
        return bool(self.model_fields_set - set(MessageChanges.model_fields))


class RecurringFields(ResponseModel):
    """What a recurring message has of its own."""

    recurring_id: str
    status: RecurringStatus
    cron: str | None
    every: dict[str, int] | None
    timezone: str
    starts_at: str | None
    ends_at: str | None
    quiet_hours: dict[str, str] | None
    next_run_at: str | None
    last_run_at: str | None


# The fields of the last base come first in an answer: its id.
class RecurringAnswer(RecordAnswer, RecurringFields):
    """A recurring message. `audience` has `subscriber_ids_count` in place of ids.

    `message_id` or `job_id`, and `reason` and `error` if it was not sent, are of the last run; `delivery`
    says how far it is with its audience.
    `next_run_at` is null while it is paused, and when it is over.
    """

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

    data: list[RecurringAnswer]
    next_cursor: str | None


class RecurringQuery(PageQuery):
    """Filters and paging."""

    status: RecurringStatus | None = None


def _every(rule: Rule) -> dict[str, int] | None:
    if rule.hours is not None:
        return {"hours": rule.hours}
    return None if rule.days is None else {"days": rule.days}


def _quiet_hours(rule: Rule) -> dict[str, str] | None:
    if rule.quiet_from is None or rule.quiet_to is None:
        return None
    return {"from": rule.quiet_from, "to": rule.quiet_to}
