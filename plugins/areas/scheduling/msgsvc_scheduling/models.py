"""Scheduled and recurring messages inside, and scheduled ones on the wire."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import AsGiven
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import (
    CreatedAt,
    Kept,
    NamedByExternalId,
    NamedById,
    NamedOnChannel,
    Time,
)
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.content.outgoing import Format
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.i18n import Localized
from msgsvc_core.kernel.time_zones import Zone
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import Audience, MailingMessage, MailingProgress
from msgsvc_core.mailings.audience import AudienceAnswer
from msgsvc_core.mailings.models import MailingMessageAnswer
from msgsvc_core.messages.content import ContentChanges, MessageContent, TemplatePart
from msgsvc_core.messages.templates.models import TemplateButton, TemplateMedia
from msgsvc_core.routing.models import ROUTE_ID
from msgsvc_core.subscribers.models import PermissionKey
from msgsvc_scheduling.recurrence import Rule

Kind = Literal["scheduled", "recurring"]
ScheduledStatus = Literal["scheduled", "sent", "failed", "skipped", "cancelled"]

#: Characters of a time.
TEXT_LENGTH = 64

ScheduledId = Annotated[
    str,
    Field(description="The scheduled message's id.", examples=["sch_032aJbUsIQPd4uKr5yQ30N"]),
]

#: What Ann gets in examples.
EXAMPLE_TEXT = "Good morning! The orders of today are ready to be packed."

#: A time in a body, which is parsed with the time zone beside it.
Moment = Annotated[
    str,
    Field(
        max_length=TEXT_LENGTH,
        description="RFC 3339 with `Z` or an offset, or a local time in `timezone`, such as"
        " `2026-03-02T09:30`; within ten years.",
        examples=[examples.LATER],
    ),
]

#: What a template has of its own.
_OF_TEMPLATE = tuple(MessageContent.model_fields)


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
    def route_id(self) -> str | None:
        """The route of the message."""
        route_id: str | None = self.message.get("route_id")
        return route_id

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

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    audience: Audience | None = Field(
        None,
        description="In place of one subscriber: everybody who meets these filters at its time.",
    )
    route_id: str | None = Field(
        None,
        description="Id of a route of `POST /v1/routes`: at its time, the person with this"
        " `external_id`, or each person of the `audience`, is tried on its channels in their order.",
        examples=[ROUTE_ID],
    )

    @model_validator(mode="after")
    def _people_by_route(self) -> "MessageBody":
        """With `route_id`: `external_id`, and neither `channel` nor `subscriber_id`."""
        if self.route_id is not None:
            for field in ("channel", "subscriber_id"):
                if getattr(self, field) is not None:
                    raise wrong_field(field, "can't be combined with route_id; give external_id")
        return self

    def to_message(self) -> dict[str, Any]:
        """The message without recipient and time."""
        included = {*MailingMessage.model_fields, "route_id"}
        return self.model_dump(include=included, exclude_unset=True, exclude_none=True)


class _TemplateChanges(TemplatePart):
    """Changes of a message's template, and of its values."""

    template: str | None = Field(
        None,
        description="Key of a template; replaces text, format, media and buttons.",
        examples=["spring-sale"],
    )
    variables: Variables | None = Field(
        None, description="Replaces all variables.", examples=[{"discount": "15 %"}]
    )


class MessageChanges(
    ContentChanges[
        Annotated[
            Localized | None,
            Field(
                description="Replaces the text, or a template and its variables.",
                examples=["Hi {{ first_name }}, the sale ends today."],
            ),
        ],
        Annotated[
            Format | None,
            Field(description="How `text` is marked up; null for `plain`.", examples=["markdown"]),
        ],
        Annotated[TemplateMedia | None, Field(description="Replaces the file; null removes it.")],
        Annotated[
            list[list[TemplateButton]] | None,
            Field(examples=[[[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]]]),
        ],
    ],
    _TemplateChanges,
):
    """Changes to a message. Omitted fields stay unchanged; null removes a value."""

    permission: PermissionKey | None = Field(
        None,
        description="Permission that recipients must have granted; null for none.",
        examples=[examples.PERMISSION],
    )
    silent: bool | None = Field(
        None, description="Whether it comes without a notification sound; null for with one."
    )
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after its time, when recipients that are left are skipped; null for never.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Replaces your own data; null removes it.",
        examples=[{"campaign": "spring"}],
    )
    route_id: str | None = Field(
        None,
        description="Another route for the same people; null for none: `subscriber_id` gets it then, or each"
        " subscriber of the audience.",
        examples=[ROUTE_ID],
    )

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


class ScheduleMessageBody(MessageBody):
    """A message, its recipient and its time."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": EXAMPLE_TEXT,
                    "send_at": "2026-03-02T09:30",
                    "timezone": "Europe/Berlin",
                },
                {
                    "audience": {"tags_any": [examples.TAG]},
                    "template": "spring-sale",
                    "variables": {"discount": "10 %"},
                    "send_at": examples.LATER,
                },
            ]
        }
    )

    send_at: Moment = Field(
        description="When it is sent: RFC 3339 with `Z` or an offset, or a local time in `timezone`, such"
        " as `2026-03-02T09:30`. Ahead, by ten years at most."
    )
    timezone: Zone | None = Field(
        None,
        description="IANA time zone of a local `send_at`, which requires it.",
        examples=["Europe/Berlin"],
    )


class UpdateScheduledBody(MessageChanges):
    """Another message, another time, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"send_at": "2026-03-02T10:00", "timezone": "Europe/Berlin"},
                {"text": "Good morning! There are no orders today.", "silent": None},
            ]
        }
    )

    send_at: Kept[Moment] = Field(
        None,
        description="The new time: RFC 3339, or a local time in `timezone`.",
        examples=["2026-03-02T10:00"],
    )
    timezone: Kept[Zone] = Field(
        None,
        description="Time zone of a local `send_at`; needs `send_at`. By default the current one.",
        examples=["Europe/Berlin"],
    )


class RecordAnswer(ResponseModel):
    """Response fields that scheduled and recurring messages share."""

    subscriber_id: str | None = Field(
        description="Who gets it; null for an audience.", examples=[examples.SUBSCRIBER_ID]
    )
    audience: AudienceAnswer | None = Field(
        description="Who gets it; null for one subscriber.", examples=[None]
    )
    route_id: str | None = Field(
        description="Route that it is sent by; null without one. `subscriber_id` is then one of the"
        " person's.",
        examples=[None],
    )
    message: AsGiven[MailingMessageAnswer] = Field(
        description="What is sent.", examples=[{"text": EXAMPLE_TEXT}]
    )
    message_id: str | None = Field(
        description="Id of the message that was queued last, for `GET /v1/messages/{message_id}`; null"
        " before, and for an audience.",
        examples=[None],
    )
    job_id: str | None = Field(
        description="Id of the broadcast that was started last, for `GET /v1/broadcast/{job_id}`; null"
        " before, and for one subscriber.",
        examples=[None],
    )
    delivery: MailingProgress | None = Field(
        description="How far that broadcast is; null without one.", examples=[None]
    )
    reason: str | None = Field(
        description="Why it was not sent the last time: the code of an error, the recipient's status"
        " (`unsubscribed`, `blocked`), `missed` if the service was down, or `withdrawn` from a restored copy."
        " Null if it was sent, or has not been due.",
        examples=[None],
    )
    error: str | None = Field(description="`reason` as a sentence for people.", examples=[None])
    created_at: CreatedAt
    finished_at: Time | None = Field(
        description="When it was sent for the last time, or cancelled. Null before.",
        examples=[None],
    )

    @staticmethod
    def shared_of(record: Record, delivery: MailingProgress | None) -> dict[str, Any]:
        """The values of these fields."""
        return {
            "subscriber_id": record.subscriber_id,
            "audience": record.shown_audience,
            "route_id": record.route_id,
            "message": {name: each for name, each in record.message.items() if name != "route_id"},
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

    scheduled_id: ScheduledId
    status: ScheduledStatus = Field(
        description="`sent` once it is queued for delivery at its time; `skipped` if its recipient can't"
        " be reached or its time was missed; `failed` if it can't be sent as requested."
    )
    send_at: Time = Field(
        description="When it is sent, in UTC.", examples=["2026-03-02T08:30:00.000Z"]
    )
    timezone: str | None = Field(
        description="IANA time zone of the request; null if it gave none.",
        examples=["Europe/Berlin"],
    )


# The fields of the last base come first in an answer: its id.
class ScheduledAnswer(RecordAnswer, ScheduledFields):
    """A scheduled message. Sent, it has a `message_id`, or with an audience a `job_id` and `delivery`."""

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

    data: list[ScheduledAnswer] = Field(description="The scheduled messages of this page.")
    next_cursor: NextCursor


class ScheduledQuery(PageQuery):
    """Filters and paging."""

    status: ScheduledStatus | None = Field(
        None, description="Only messages with this status.", examples=["scheduled"]
    )
