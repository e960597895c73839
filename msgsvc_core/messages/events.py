"""Events about messages."""

from typing import ClassVar, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import (
    Time,
)
from msgsvc_core.channels.failures import Reason
from msgsvc_core.messages.fields import (
    BatchId,
    Failed,
    MessageId,
    Metadata,
    Sent,
    Skipped,
    Unknown,
)
from msgsvc_core.routing.models import SkippedReason


class DeliverySuccess(ResponseModel):
    """Fields of `delivery.success`. `batch_id` is that of `POST /v1/send/batch`, `job_id` that of a
    broadcast or another mailing."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"batch_id", "job_id"})

    message_id: MessageId
    batch_id: str | None = Field(
        None,
        description="Batch that the message came with; absent for others.",
        examples=[examples.BATCH_ID],
    )
    job_id: str | None = Field(
        None,
        description="Broadcast or other mailing that the message belongs to; absent for others.",
    )
    metadata: Metadata


class DeliveryDelivered(DeliverySuccess):
    """Fields of `delivery.delivered`: the messenger reports that the message arrived."""

    delivered_at: Time = Field(
        description="When it arrived, as the messenger reports it.", examples=[examples.DONE]
    )


class DeliveryRead(DeliverySuccess):
    """Fields of `delivery.read`: the messenger reports that the recipient has read the message."""

    read_at: Time = Field(
        description="When it was read, as the messenger reports it.", examples=[examples.DONE]
    )


class DeliveryFailed(DeliverySuccess):
    """Fields of `delivery.failed`. Act on the flags, not on the text of `error`.

    `status` is the message's: `failed`; `skipped` if it was not sent, e.g. because it had expired; or
    `unknown` where the service can't tell whether it arrived. If that turns out later, the message's status
    is corrected; `delivery.success` follows if it did arrive. On a channel that reports failures later, this
    event may follow `delivery.success`.
    """

    status: Literal["failed", "unknown", "skipped"] = Field(
        description="`unknown`: the connection broke while it was sent, so it may have arrived. `skipped`: no"
        " attempt was made, for the `reason`.",
        examples=["failed"],
    )
    reason: Reason | SkippedReason = Field(
        description="Why it failed or was skipped, for programs.", examples=["user_blocked_bot"]
    )
    retryable: bool | None = Field(
        description="Whether the same message could succeed later; null if `status` is `unknown`.",
        examples=[False],
    )
    should_unsubscribe: bool | None = Field(
        description="Whether the person can't be reached any more; null if `status` is `unknown`.",
        examples=[True],
    )
    error: str = Field(
        description="Why it failed, for people; the wording may change.",
        examples=["Forbidden: bot was blocked by the user"],
    )


class BatchCompleted(ResponseModel):
    """Fields of `batch.completed`: `total` is the sum of `sent`, `failed` and `skipped`. `failed` holds
    those of `unknown`: the service can't tell whether they arrived."""

    batch_id: BatchId
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(description="Messages of the batch that were accepted.", examples=[3])


class ButtonClicked(ResponseModel):
    """Fields of `button.clicked`."""

    message_id: str | None = Field(
        description="Message that has the button; null if it is not known, e.g. for an old one.",
        examples=[examples.MESSAGE_ID],
    )
    data: str = Field(description="The button's `data`.", examples=["call:1207"])
    text: str = Field(description="The button's label.", examples=["Call me back"])
