"""Answers about messages."""

from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, OnChannel, SubscriberId, Time
from msgsvc_core.channels.failures import Reason
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.messages.content import (
    TEXT_EXAMPLE,
    ButtonAnswer,
    MediaAnswer,
    MessageContent,
    shown,
)
from msgsvc_core.messages.fields import (
    Awaited,
    CopyStatus,
    ErrorReason,
    MessageId,
    MessageStatus,
    Metadata,
    reason_of,
)
from msgsvc_core.messages.models import Message, MessageCopy
from msgsvc_core.routing.models import SkippedReason


class QueuedMessageAnswer(ResponseModel):
    """The message was taken and will be delivered."""

    message_id: MessageId = Field(
        description="Names the message in `/v1/messages` and in delivery events."
    )
    status: Literal["queued"] = Field(
        "queued",
        description="Always `queued`: the outcome is reported by `delivery.success` and `delivery.failed`.",
        examples=["queued"],
    )


class PastStepAnswer(ResponseModel):
    """A finished step of a message's route, or one that waits for a report."""

    channel: OnChannel
    subscriber_id: str | None = Field(
        description="Whom it was sent to; null if the step was passed over.",
        examples=[examples.SUBSCRIBER_ID],
    )
    status: CopyStatus = Field(
        description="`sent`: the messenger accepted the message there. `skipped`: the step was passed over.",
        examples=["failed"],
    )
    reason: str | None = Field(
        description="Why it failed, as in `reason` of the message, or was passed over: e.g. `no_subscriber`,"
        " `unsubscribed`, `outside_hours` or `not_in_time`; null if it was sent.",
        examples=["user_blocked_bot"],
    )
    error: str | None = Field(
        description="For people: why it failed; null otherwise.",
        examples=["Forbidden: bot was blocked by the user"],
    )
    finished_at: Time = Field(
        description="When the messenger accepted or refused it, or the step was passed over.",
        examples=[examples.DONE],
    )
    delivered_at: Time | None = Field(
        description="When it arrived there, as the messenger reports it; null otherwise.",
        examples=[None],
    )
    read_at: Time | None = Field(
        description="When it was read there, as the messenger reports it; null otherwise.",
        examples=[None],
    )

    @classmethod
    def of(cls, copy: MessageCopy) -> "PastStepAnswer":
        return cls(
            channel=copy.channel,
            subscriber_id=copy.subscriber_id,
            status=copy.status,
            reason=copy.reason,
            error=copy.error,
            finished_at=to_rfc3339(copy.finished_at_ms),
            delivered_at=optional_rfc3339(copy.delivered_at_ms),
            read_at=optional_rfc3339(copy.read_at_ms),
        )


class _Delivery(ResponseModel):
    """Which message it is, and what became of it."""

    message_id: MessageId
    subscriber_id: SubscriberId
    channel: OnChannel
    status: MessageStatus = Field(
        description="`queued` and `sending` are not final. `skipped`: it was not sent, and `error` says why."
        " `unknown`: the connection broke while it was sent, so it may have arrived.",
        examples=["sent"],
    )
    reason: Reason | SkippedReason | ErrorReason | None = Field(
        description="What `error` says, for programs: why it failed or was skipped. `attempt_failed`: it is"
        " tried again. `change_refused`: it could not be edited or deleted. Null without an `error`.",
        examples=[None],
    )
    error: str | None = Field(
        description="For people: why it failed, was skipped, has to be tried again, or could not be edited or"
        " deleted; null if nothing of that happened.",
        examples=[None],
    )
    attempts: int = Field(
        description="Tries of delivery so far; waiting for a platform that is limiting or unavailable is"
        " none.",
        examples=[1],
    )


class MessageAnswer(
    MessageContent[
        Annotated[
            str,
            Field(
                description="What the recipient sees; of a template, with its variables filled in.",
                examples=[TEXT_EXAMPLE],
            ),
        ],
        Annotated[MediaAnswer, Field(examples=[None])],
        list[list[ButtonAnswer]],
    ],
    _Delivery,
):
    """A message as the API shows it."""

    silent: bool = Field(
        description="Whether it is delivered without a notification sound.", examples=[False]
    )
    permission: str | None = Field(
        description="Permission that the recipient must have granted on delivery; null if none is needed.",
        examples=[None],
    )
    batch_id: str | None = Field(
        description="Batch of `POST /v1/send/batch` that it came with; null for others.",
        examples=[None],
    )
    job_id: str | None = Field(
        description="Broadcast or other mailing that it belongs to; null for others.",
        examples=[None],
    )
    metadata: Metadata
    created_at: CreatedAt = Field(examples=[examples.TIME])
    expires_at: Time | None = Field(
        description="When it is skipped if not sent yet; null without a limit.",
        examples=[None],
    )
    finished_at: Time | None = Field(
        description="When `status` became final; null until then.", examples=[examples.DONE]
    )
    delivered_at: Time | None = Field(
        description="When it arrived, as the messenger reports it; null before that, and on channels that do"
        " not report it.",
        examples=[None],
    )
    read_at: Time | None = Field(
        description="When the recipient read it, as the messenger reports it; null before that, and on"
        " channels that do not report it.",
        examples=[None],
    )
    edited_at: Time | None = Field(
        description="When the last edit became visible; null without one.", examples=[None]
    )
    deleted_at: Time | None = Field(
        description="When it was deleted from the chat, or cancelled; null otherwise.",
        examples=[None],
    )
    route_id: str | None = Field(
        description="Route that it is sent by; null without one. `subscriber_id` and `channel` are those of"
        " the step that it is at.",
        examples=[None],
    )
    waits_for: Awaited | None = Field(
        description="The report that this step of the route waits for before the next step, while `status`"
        " is `sending`; else null.",
        examples=[None],
    )
    past_steps: list[PastStepAnswer] = Field(
        description="Steps of its route so far, in their order; empty without a route."
    )

    @classmethod
    def of(cls, message: Message) -> "MessageAnswer":
        return cls(
            **shown(message.content),
            message_id=message.message_id,
            subscriber_id=message.subscriber_id,
            channel=message.channel,
            status=message.status,
            reason=_reason_of(message),
            error=message.error,
            attempts=message.attempts,
            silent=message.content.silent,
            permission=message.permission,
            batch_id=message.batch_id,
            job_id=message.job_id,
            metadata=message.metadata,
            created_at=to_rfc3339(message.created_at_ms),
            expires_at=optional_rfc3339(message.expires_at_ms),
            finished_at=optional_rfc3339(message.finished_at_ms),
            delivered_at=optional_rfc3339(message.delivered_at_ms),
            read_at=optional_rfc3339(message.read_at_ms),
            edited_at=optional_rfc3339(message.edited_at_ms),
            deleted_at=optional_rfc3339(message.deleted_at_ms),
            route_id=message.route_id,
            waits_for=message.waits_for,
            past_steps=[PastStepAnswer.of(copy) for copy in message.past_steps],
        )


def _reason_of(message: Message) -> Reason | SkippedReason | ErrorReason | None:
    """The reason of a message's outcome, or of its error if it has none."""
    if message.reason is not None or message.error is None:
        return reason_of(message.reason)
    if message.status in {"queued", "sending"}:
        return ErrorReason.ATTEMPT_FAILED
    return ErrorReason.CHANGE_REFUSED


class MessageList(ResponseModel):
    """A page of messages, newest first."""

    data: list[MessageAnswer] = Field(description="The page's messages.")
    next_cursor: NextCursor
