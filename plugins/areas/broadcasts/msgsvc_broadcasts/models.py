"""Models of broadcasts in the API."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, MomentMs, SubscriberId, Time
from msgsvc_core.channels.failures import Reason
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_core.mailings import Audience, Mailing, MailingMessage, Recipient
from msgsvc_core.mailings.models import (
    STATUS,
    AudienceAnswer,
    Eta,
    Failed,
    MailingStatus,
    Progress,
    RecipientStatus,
    Sent,
    Skipped,
    StopCause,
    Total,
    Unknown,
)

BroadcastId = Annotated[str, Field(description="The broadcast's id.", examples=[examples.JOB_ID])]

NAME = "What you call it, for lists; recipients don't see it."


def _to_one_line(name: str) -> str:
    return check_visible(one_line(name))


BroadcastName = Annotated[
    str,
    Field(max_length=100, description=NAME, examples=["Spring sale"]),
    AfterValidator(_to_one_line),
]


class BroadcastBody(MailingMessage):
    """A message to an audience, now or at `send_at`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Spring sale",
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                    "audience": {"tags_any": [examples.TAG], "langs": ["en"]},
                    "permission": examples.PERMISSION,
                    "messages_per_minute": 600,
                    "metadata": {"campaign": "spring"},
                },
                {
                    "template": "spring-sale",
                    "variables": {"discount": "10 %"},
                    "audience": {"all": True},
                    "send_at": examples.LATER,
                },
            ]
        }
    )

    name: BroadcastName | None = Field(None, description=NAME, examples=["Spring sale"])
    audience: Audience = Field(description="Who gets it.")
    send_at: MomentMs | None = Field(
        None,
        description="When it starts; left out: at once. A time in the past is refused.",
        examples=[examples.LATER],
    )
    messages_per_minute: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Messages per minute at most, evenly spread. By default as fast as the messengers"
        " allow.",
        examples=[600],
    )
    dry_run: bool = Field(
        False,
        description="Validates only, and returns the number of recipients and the credits that it would"
        " cost.",
    )

    def to_message(self) -> MailingMessage:
        """What everybody gets, without how and when."""
        given = self.model_dump(
            include=set(MailingMessage.model_fields), exclude_unset=True, exclude_none=True
        )
        return MailingMessage.model_validate(given)


class BroadcastTestBody(MailingMessage):
    """The message of a broadcast, and the subscriber who gets it as a test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                }
            ]
        }
    )

    subscriber_id: SubscriberId


class BroadcastAccepted(ResponseModel):
    """The broadcast that was taken; `total` is how many would get it now.

    With `dry_run` there are `total` and `credits` alone: nothing was taken.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"job_id": examples.JOB_ID, "status": "scheduled", "total": 1200},
                {"total": 1200, "credits": 1200},
            ]
        }
    )
    leave_out_none = frozenset({"job_id", "status", "credits"})

    job_id: str | None = Field(
        None,
        description="Id for `GET /v1/broadcast/{job_id}`; absent with `dry_run`.",
        examples=[examples.JOB_ID],
    )
    status: MailingStatus | None = Field(
        None,
        description="`scheduled`, until its recipients are being sent to; absent with `dry_run`.",
        examples=["scheduled"],
    )
    total: int = Field(description="Recipients that the audience has now.", examples=[1200])
    credits: int | None = Field(
        None,
        description="Credits that it would cost now, 0 where usage is not charged; only with `dry_run`.",
        examples=[1200],
    )


class BroadcastAnswer(ResponseModel):
    """A broadcast and how far it is."""

    job_id: BroadcastId
    name: str | None = Field(description=NAME, examples=["Spring sale"])
    source: str = Field(
        description="Which area started it: `broadcasts`; `scheduled` for `/v1/scheduled` and"
        " `/v1/recurring`; `forms` for the route of a form to a tag; or another plugin."
        " `broadcast.completed` is emitted for `broadcasts` alone.",
        examples=["broadcasts"],
    )
    status: MailingStatus = Field(description=STATUS, examples=["completed"])
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total
    progress: Progress
    eta_seconds: Eta
    error: StopCause
    audience: AudienceAnswer = Field(
        description="Who gets it.", examples=[{"tags_any": [examples.TAG], "langs": ["en"]}]
    )
    messages_per_minute: int | None = Field(
        description="Messages per minute at most; null for as fast as the messengers allow.",
        examples=[600],
    )
    metadata: dict[str, Any] | None = Field(
        description="Your own data, from the request.", examples=[{"campaign": "spring"}]
    )
    resend_of: str | None = Field(
        description="The broadcast whose recipients with an unknown outcome get this one; null unless it"
        " is a resend.",
        examples=[None],
    )
    send_at: Time | None = Field(
        description="The start time that was asked for; null for at once.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    started_at: Time | None = Field(description="When it began; null before.")
    finished_at: Time | None = Field(
        description="When the last delivery ended; null before, also while a cancelled one has deliveries"
        " in progress.",
        examples=["2026-03-01T09:32:00.000Z"],
    )
    recipients_until: Time | None = Field(
        description="Until when `GET /v1/broadcast/{job_id}/recipients` lists them; null before the end.",
        examples=["2026-03-31T09:30:00.000Z"],
    )

    @classmethod
    def of(cls, mailing: Mailing, now_ms: int, until_ms: int | None) -> "BroadcastAnswer":
        return cls(
            **mailing.event_fields(),
            name=mailing.name,
            source=mailing.source,
            status=mailing.status,
            progress=mailing.progress(),
            eta_seconds=mailing.eta_seconds(now_ms),
            error=mailing.error,
            audience=mailing.shown_audience,
            messages_per_minute=mailing.per_minute,
            metadata=mailing.metadata,
            resend_of=mailing.resend_of,
            send_at=optional_rfc3339(mailing.send_at_ms),
            created_at=to_rfc3339(mailing.created_at_ms),
            started_at=optional_rfc3339(mailing.started_at_ms),
            finished_at=optional_rfc3339(mailing.finished_at_ms),
            recipients_until=optional_rfc3339(until_ms),
        )


class BroadcastList(ResponseModel):
    """A page of broadcasts, newest first."""

    data: list[BroadcastAnswer] = Field(description="The broadcasts of this page.")
    next_cursor: NextCursor


class BroadcastQuery(PageQuery):
    """Filters and paging."""

    status: MailingStatus | None = Field(
        None, description="Only broadcasts with this status.", examples=["running"]
    )


class RecipientAnswer(ResponseModel):
    """A person of the audience and the outcome for them."""

    subscriber_id: SubscriberId
    status: RecipientStatus = Field(
        description="`queued` until there is an outcome; `unknown` if the service can't tell whether they"
        " got it.",
        examples=["sent"],
    )
    reason: Reason | None = Field(
        description="Why the last attempt failed; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="The cause for people: why the last attempt failed, or why they were skipped. Null"
        " if there is none.",
        examples=[None],
    )
    attempts: int = Field(description="How often sending was tried.", examples=[1])
    message_id: str | None = Field(
        description="Id of their message, for `GET /v1/messages/{message_id}`; null before the last"
        " attempt.",
        examples=[examples.MESSAGE_ID],
    )

    @classmethod
    def of(cls, recipient: Recipient) -> "RecipientAnswer":
        return cls(
            subscriber_id=recipient.subscriber_id,
            status=recipient.status,
            reason=recipient.reason and Reason(recipient.reason),
            error=recipient.error,
            attempts=recipient.attempts,
            message_id=recipient.message_id,
        )


class RecipientList(ResponseModel):
    """A page of recipients, those who subscribed last first."""

    data: list[RecipientAnswer] = Field(description="The recipients of this page.")
    next_cursor: NextCursor


class RecipientQuery(PageQuery):
    """Filters and paging."""

    status: RecipientStatus | None = Field(
        None, description="Only recipients with this status.", examples=["failed"]
    )
    reason: Reason | None = Field(
        None,
        description="Only recipients who did not get it for this reason.",
        examples=["user_blocked_bot"],
    )
