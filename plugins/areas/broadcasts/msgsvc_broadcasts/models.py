"""Models of broadcasts in the API."""

from typing import Any

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import MomentMs
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.mailings import Audience, Mailing, MailingMessage, Recipient
from msgsvc_core.mailings.models import MailingStatus, RecipientStatus


class BroadcastBody(MailingMessage):
    """A message to an audience, now or at `send_at`."""

    audience: Audience
    send_at: MomentMs | None = Field(None, description="Start time (default: now).")
    messages_per_minute: int | None = Field(
        None, ge=1, le=1_000_000, description="Maximum messages per minute, evenly spread."
    )
    dry_run: bool = Field(
        False, description="Validate only: return the number of recipients and the credits."
    )

    def to_message(self) -> MailingMessage:
        """What everybody gets, without how and when."""
        given = self.model_dump(
            include=set(MailingMessage.model_fields), exclude_unset=True, exclude_none=True
        )
        return MailingMessage.model_validate(given)


class BroadcastAccepted(ResponseModel):
    """The broadcast that was taken; `total` is how many would get it now.

    With `dry_run` there are `total` and `credits` alone: nothing was taken.
    """

    leave_out_none = frozenset({"job_id", "status", "credits"})

    job_id: str | None = None
    status: MailingStatus | None = None
    total: int
    credits: int | None = None


class BroadcastAnswer(ResponseModel):
    """A broadcast. When it has ended, `total` is the sum of `sent`, `failed` and `skipped`.

    `failed` holds those of `unknown`: the service can't tell whether they got it. `progress` goes from 0 to
    1; `eta_seconds` is null while it does not run. `audience` has `subscriber_ids_count` in place of ids.

    `source` is `broadcasts`, or `scheduled` for one that came by `/v1/scheduled` or `/v1/recurring`: its end
    is not told by `broadcast.completed`. `error` says why it could not go on. `resend_of` is the broadcast
    whose recipients of unknown outcome get this one. `recipients_until` is until when they can be listed,
    null while it has not ended.
    """

    job_id: str
    source: str
    status: MailingStatus
    sent: int
    failed: int
    unknown: int
    skipped: int
    total: int
    progress: float
    eta_seconds: int | None
    error: str | None
    audience: dict[str, Any]
    messages_per_minute: int | None
    metadata: dict[str, Any] | None
    resend_of: str | None
    send_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    recipients_until: str | None

    @classmethod
    def of(cls, mailing: Mailing, now_ms: int, until_ms: int | None) -> "BroadcastAnswer":
        return cls(
            **mailing.event_fields(),
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

    data: list[BroadcastAnswer]
    next_cursor: str | None


class BroadcastQuery(PageQuery):
    """Filters and paging."""

    status: MailingStatus | None = None


class RecipientAnswer(ResponseModel):
    """A person of the audience. `message_id` is there from the last try on, `reason` when it failed."""

    subscriber_id: str
    status: RecipientStatus
    reason: str | None
    error: str | None
    attempts: int
    message_id: str | None

    @classmethod
    def of(cls, recipient: Recipient) -> "RecipientAnswer":
        return cls(
            subscriber_id=recipient.subscriber_id,
            status=recipient.status,
            reason=recipient.reason,
            error=recipient.error,
            attempts=recipient.attempts,
            message_id=recipient.message_id,
        )


class RecipientList(ResponseModel):
    """A page of recipients, those who subscribed last first."""

    data: list[RecipientAnswer]
    next_cursor: str | None


class RecipientQuery(PageQuery):
    """Filters and paging."""

    status: RecipientStatus | None = None
