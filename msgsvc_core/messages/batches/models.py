"""Batches, inside and on the wire."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, SkipValidation

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import CreatedAt, Time
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.fields import BatchId, Failed, Sent, Skipped, Unknown


@value_object
class Batch:
    """A row. `total` are the messages that were taken; those not final yet are in none of the others."""

    project_id: str
    batch_id: str
    total: int
    sent: int
    #: Those of `unknown` among them.
    failed: int
    skipped: int
    created_at_ms: int
    finished_at_ms: int | None
    #: Of `failed`, those of which nobody knows whether they arrived.
    unknown: int = 0

    def event_fields(self) -> dict[str, Any]:
        return {
            "batch_id": self.batch_id,
            "sent": self.sent,
            "failed": self.failed,
            "unknown": self.unknown,
            "skipped": self.skipped,
            "total": self.total,
        }


class SendBatchBody(RequestModel):
    """Messages, each as `POST /v1/send` takes it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"subscriber_id": examples.SUBSCRIBER_ID, "text": "Hi Ann, we have news."},
                        {"external_id": "user-43", "template": "news", "variables": {"count": 3}},
                    ]
                }
            ]
        }
    )

    #: Each is validated on its own; those that are refused are in `rejected`.
    messages: list[SkipValidation[SendBody]] = Field(
        min_length=1,
        description="1 to 500 bodies of `POST /v1/send`, or as many as `limits.batch_messages` of"
        " `GET /v1/project`. An invalid one is rejected by itself.",
    )


class Rejected(ResponseModel):
    """A message that was not accepted, with the error that `POST /v1/send` would have returned."""

    index: int = Field(description="Its position in `messages`, from 0.", examples=[1])
    error: str = Field(
        description="The error for people.",
        examples=["there is no subscriber with external_id 'user-43'"],
    )
    code: str = Field(
        description="Error code of `POST /v1/send`, e.g. `validation_failed`.",
        examples=["subscriber_not_found"],
    )


class BatchAnswer(ResponseModel):
    """`accepted` messages are queued; those in `rejected` are not."""

    batch_id: BatchId = Field(
        description="Names the batch in `/v1/batches`, in `GET /v1/messages` and in `batch.completed`."
    )
    accepted: int = Field(description="Messages that are queued.", examples=[1])
    rejected: list[Rejected] = Field(
        description="Messages that are not queued, in the order of `messages`."
    )


class BatchStatusAnswer(ResponseModel):
    """A batch. While it runs, messages without a final status are only in `total`; then `total` is the sum
    of `sent`, `failed` and `skipped`."""

    batch_id: BatchId
    status: Literal["running", "completed"] = Field(
        description="`completed` when all messages are final.", examples=["completed"]
    )
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(description="Messages of the batch that were accepted.", examples=[3])
    created_at: CreatedAt = Field(examples=[examples.TIME])
    finished_at: Time | None = Field(
        description="When the last message became final; null until then.",
        examples=[examples.DONE],
    )

    @classmethod
    def of(cls, batch: Batch) -> "BatchStatusAnswer":
        return cls(
            **batch.event_fields(),
            status="running" if batch.finished_at_ms is None else "completed",
            created_at=to_rfc3339(batch.created_at_ms),
            finished_at=optional_rfc3339(batch.finished_at_ms),
        )
