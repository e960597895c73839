"""Scheduled and recurring messages inside, and scheduled ones on the wire."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept
from msgsvc_core.content.outgoing import Format
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.i18n import Localized
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import Audience, MailingMessage, MailingProgress
from msgsvc_core.messages.templates.models import TemplateButton, TemplateMedia
from msgsvc_core.subscribers.models import PermissionKey
from msgsvc_scheduling.recurrence import Rule

Kind = Literal["scheduled", "recurring"]
ScheduledStatus = Literal["scheduled", "sent", "failed", "skipped", "cancelled"]

#: Characters of a time.
TEXT_LENGTH = 64

#: What a template has of its own.
_OF_TEMPLATE = ("text", "format", "media", "buttons")


@value_object
class Record:
    """A row: a scheduled message to one subscriber or to an audience."""

    project_id: str
    record_id: str
    kind: Kind
    status: str
    message: dict[str, Any]
    subscriber_id: str | None
    audience: dict[str, Any] | None
    timezone: str | None
    send_at_ms: int | None
    #: When it is to be sent next; None while it does not wait.
    due_at_ms: int | None
    message_id: str | None
    job_id: str | None
    reason: str | None
    error: str | None
    created_at_ms: int
    finished_at_ms: int | None
    #: When it comes again; None for what is sent once.
    rule: Rule | None = None
    last_run_at_ms: int | None = None

    @property
    def shown_audience(self) -> dict[str, Any] | None:
        """The audience with the number of its `subscriber_ids` in place of up to 10,000 of them."""
        if self.audience is None or "subscriber_ids" not in self.audience:
            return self.audience
        shown = {name: value for name, value in self.audience.items() if name != "subscriber_ids"}
        return {**shown, "subscriber_ids_count": len(set(self.audience["subscriber_ids"]))}

    def finished(self, status: str, now_ms: int) -> "Record":
        """The record when it is over. It keeps no list of people: some may be erased later."""
        return replace(
            self,
            status=status,
            audience=self.shown_audience,
            due_at_ms=None,
            finished_at_ms=now_ms,
        )


@value_object
class Due:
    """The key of a due record, and its time."""

    project_id: str
    record_id: str
    subscriber_id: str | None
    due_at_ms: int


@value_object
class Outcome:
    """The result of a record at its time."""

    status: Literal["sent", "failed", "skipped"]
    message_id: str | None = None
    job_id: str | None = None
    reason: str | None = None
    error: str | None = None


class MessageBody(MailingMessage):
    """A message and its recipient: one subscriber, or an audience."""

    subscriber_id: str | None = None
    external_id: str | None = Field(
        None, description="Your own id of this person; resolved by this request."
    )
    channel: str | None = Field(None, description="With `external_id`: only this messenger.")
    audience: Audience | None = Field(None, description="In place of a subscriber.")

    def to_message(self) -> dict[str, Any]:
        """The message without recipient and time."""
        return self.model_dump(
            include=set(MailingMessage.model_fields), exclude_unset=True, exclude_none=True
        )


class MessageChanges(RequestModel):
    """Changes to a message. Omitted fields stay unchanged; null removes a value."""

    template: str | None = Field(None, description="Replaces text, format, media and buttons.")
    variables: Variables | None = None
    text: Localized | None = Field(None, description="Replaces a template.")
    format: Format | None = None
    media: TemplateMedia | None = None
    buttons: list[list[TemplateButton]] | None = None
    permission: PermissionKey | None = None
    silent: bool | None = None
    expires_in: int | None = Field(None, ge=1, le=30 * 24 * 3600)
    metadata: dict[str, Any] | None = None

    def changed(self, message: dict[str, Any]) -> dict[str, Any]:
        """`message` with these changes applied, not validated."""
        given = self.model_dump(include=set(MessageChanges.model_fields), exclude_unset=True)
        replaced: tuple[str, ...] = ()
        if given.get("template") is not None:
            replaced = _OF_TEMPLATE
        elif given.get("text") is not None:
            replaced = ("template",) if "variables" in given else ("template", "variables")
        left = {name: value for name, value in message.items() if name not in replaced}
        return {name: value for name, value in {**left, **given}.items() if value is not None}


class ScheduledBody(MessageBody):
    """A message, its recipient and its time."""

    send_at: str = Field(
        max_length=TEXT_LENGTH,
        description="RFC 3339 with `Z` or an offset, or a local time such as `2026-11-21T09:30`.",
    )
    timezone: Zone | None = Field(None, description="IANA time zone of a local `send_at`.")


class UpdateScheduledBody(MessageChanges):
    """Another message, another time, or both."""

    send_at: Kept[Annotated[str, Field(max_length=TEXT_LENGTH)]] = Field(
        None, description="Same format as on creation."
    )
    timezone: Kept[Zone] = Field(
        None, description="Time zone of a local `send_at`; unchanged if omitted."
    )


class RecordAnswer(ResponseModel):
    """Response fields that scheduled and recurring messages share."""

    subscriber_id: str | None
    audience: dict[str, Any] | None
    message: dict[str, Any]
    message_id: str | None
    job_id: str | None
    delivery: MailingProgress | None
    reason: str | None
    error: str | None
    created_at: str
    finished_at: str | None

    @staticmethod
    def shared_of(record: Record, delivery: MailingProgress | None) -> dict[str, Any]:
        """The values of these fields."""
        return {
            "subscriber_id": record.subscriber_id,
            "audience": record.shown_audience,
            "message": record.message,
            "message_id": record.message_id,
            "job_id": record.job_id,
            "delivery": delivery,
            "reason": record.reason,
            "error": record.error,
            "created_at": to_rfc3339(record.created_at_ms),
            "finished_at": optional_rfc3339(record.finished_at_ms),
        }


class ScheduledFields(ResponseModel):
    """Response fields of scheduled messages only."""

    scheduled_id: str
    status: ScheduledStatus
    send_at: str
    timezone: str | None


# The fields of the last base come first in an answer: its id.
class ScheduledAnswer(RecordAnswer, ScheduledFields):
    """A scheduled message. `audience` has `subscriber_ids_count` instead of ids.

    The status becomes `sent` when the message is queued for delivery at its time. It then has a
    `message_id`, or with an audience a `job_id` and `delivery` with the progress. If it was not sent,
    `reason` is the machine-readable cause and `error` the text for people.
    """

    @classmethod
    def of(cls, record: Record, delivery: MailingProgress | None) -> "ScheduledAnswer":
        assert record.send_at_ms is not None, "a scheduled record has its time"
        return cls.model_validate(
            {
                "scheduled_id": record.record_id,
                "status": record.status,
                "send_at": to_rfc3339(record.send_at_ms),
                "timezone": record.timezone,
                **cls.shared_of(record, delivery),
            }
        )


class ScheduledList(ResponseModel):
    """A page of scheduled messages, newest first."""

    data: list[ScheduledAnswer]
    next_cursor: str | None


class ScheduledQuery(PageQuery):
    """Filters and paging."""

    status: ScheduledStatus | None = None
