"""Batches, inside and on the wire."""

from typing import Any, Literal

from pydantic import Field, SkipValidation

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.models import SendBody


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


class BatchBody(RequestModel):
    """Messages, each as `POST /v1/send` takes it."""

    #: Each is judged by itself, and told of in `rejected`.
    messages: list[SkipValidation[SendBody]] = Field(
        min_length=1, description="1-500 bodies of `POST /v1/send`."
    )


class Rejected(ResponseModel):
    """A message that was not taken: its place in `messages` from 0, and what `POST /v1/send` would have
    answered."""

    index: int
    error: str
    code: str


class BatchAnswer(ResponseModel):
    """`accepted` messages are queued; those in `rejected` are not."""

    batch_id: str
    accepted: int
    rejected: list[Rejected]


class BatchStatusAnswer(ResponseModel):
    """A batch. `total` are the accepted messages, and when all are final, the sum of `sent`, `failed` and
    `skipped`; `failed` holds those of `unknown`: the service can't tell whether they arrived."""

    batch_id: str
    status: Literal["running", "completed"]
    sent: int
    failed: int
    unknown: int
    skipped: int
    total: int
    created_at: str
    finished_at: str | None

    @classmethod
    def of(cls, batch: Batch) -> "BatchStatusAnswer":
        return cls(
            **batch.event_fields(),
            status="running" if batch.finished_at_ms is None else "completed",
            created_at=to_rfc3339(batch.created_at_ms),
            finished_at=optional_rfc3339(batch.finished_at_ms),
        )
