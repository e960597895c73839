"""Models of webhooks, deliveries and attempts: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept, MomentMs, UrlText
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object

WebhookStatus = Literal["active", "disabled"]
#: Why the service disabled a webhook: no attempt succeeded for days, or its receiver answered 410.
DisabledReason = Literal["failing", "gone"]
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]

#: Characters of the note on a webhook.
MAX_DESCRIPTION_LENGTH = 500

#: Event names of one webhook; more than there are events.
MAX_EVENTS = 100


@value_object
class Webhook:
    """A webhook of a project. Empty `events` means all of them.

    `failing_since_ms` is the first failed attempt after the last successful one, and `failed_deliveries`
    counts the deliveries that have failed since then, as `Health` counts them, the last at
    `failed_delivery_at_ms`. `disabled_reason` is None if its project disabled it.
    """

    project_id: str
    webhook_id: str
    url: str
    events: tuple[str, ...]
    description: str | None
    status: WebhookStatus
    created_at_ms: int
    updated_at_ms: int
    failing_since_ms: int | None = None
    disabled_reason: DisabledReason | None = None
    failed_deliveries: int = 0
    failed_delivery_at_ms: int | None = None

    def wants(self, event_name: str) -> bool:
        return not self.events or event_name in self.events


@value_object
class Attempt:
    """One HTTP call. `error` says why it did not end in a complete 2xx response.

    `answer` is the start of the response body. `retry_after_s` is the receiver's Retry-After, and
    `forbidden` is set when the guard refused the target; both are evaluated immediately and not stored, nor
    is `is_ours`, for an attempt that failed before any call.
    """

    started_at_ms: int
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
    answer: str = ""
    retry_after_s: float | None = None
    forbidden: bool = False
    is_ours: bool = False


@value_object
class Delivery:
    """The delivery of an event to one webhook.

    `body` is the request's body, identical in every attempt. `step` is the position in the retry plan
    (`retries.next_attempt`), `attempts` the number of recorded calls.
    """

    project_id: str
    delivery_id: str
    webhook_id: str
    event_id: str
    event: str
    body: str
    status: DeliveryStatus
    attempts: int
    step: int
    created_at_ms: int
    first_attempt_at_ms: int | None
    next_attempt_at_ms: int | None
    finished_at_ms: int | None


class CreateWebhookBody(RequestModel):
    """A new webhook."""

    url: UrlText = Field(description="Where events are POSTed to.")
    events: list[str] = Field(
        default=[], max_length=MAX_EVENTS, description="Names of events; empty means all."
    )
    description: str | None = Field(None, max_length=MAX_DESCRIPTION_LENGTH)


class UpdateWebhookBody(RequestModel):
    """What is to change; a field that is left out stays. `description: null` removes the note."""

    url: Kept[UrlText] = Field(None, description="Where events are POSTed to.")
    events: Kept[Annotated[list[str], Field(max_length=MAX_EVENTS)]] = Field(
        None, description="Names of events; empty means all."
    )
    description: str | None = Field(None, max_length=MAX_DESCRIPTION_LENGTH)
    status: Kept[WebhookStatus] = None


class ReplayBody(RequestModel):
    """What is to be delivered again."""

    since: MomentMs = Field(description="Events that happened then or later.")
    include_delivered: bool = Field(False, description="Also redeliver those that were delivered.")


class DeliveryQuery(PageQuery):
    """Filters and paging."""

    status: DeliveryStatus | None = None
    event: str | None = Field(None, description="An event's name.")


class WebhookAnswer(ResponseModel):
    """A webhook as the API shows it."""

    webhook_id: str
    url: str
    events: list[str]
    description: str | None
    status: WebhookStatus
    failing_since: str | None = Field(
        description="The first failed attempt after the last that succeeded; null if that is the last."
    )
    disabled_reason: DisabledReason | None = Field(
        description="Why the service disabled it: `failing` for days, or `gone` (410)."
    )
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookAnswer":
        return cls(**_shown(webhook))


class NewWebhookAnswer(WebhookAnswer):
    """A webhook with its signing secret, which is shown this once."""

    secret: str

    @classmethod
    def with_secret(cls, webhook: Webhook, secret: str) -> "NewWebhookAnswer":
        return cls(**_shown(webhook), secret=secret)


class WebhookList(ResponseModel):
    """A page of webhooks, newest first."""

    data: list[WebhookAnswer]
    next_cursor: str | None


class RotatedSecretAnswer(ResponseModel):
    """The new signing secret, which is shown this once, and until when the old one signs too."""

    webhook_id: str
    secret: str
    old_secret_valid_until: str


class AttemptAnswer(ResponseModel):
    """One HTTP call. `answer` is the first 2 KiB of what came back."""

    attempted_at: str
    duration_ms: int
    status_code: int | None
    error: str | None
    answer: str

    @classmethod
    def of(cls, attempt: Attempt) -> "AttemptAnswer":
        return cls(
            attempted_at=to_rfc3339(attempt.started_at_ms),
            duration_ms=attempt.duration_ms,
            status_code=attempt.status_code,
            error=attempt.error,
            answer=attempt.answer,
        )


class DeliveryAnswer(ResponseModel):
    """A delivery and its attempts, the first one first."""

    delivery_id: str
    webhook_id: str
    event_id: str
    event: str
    status: DeliveryStatus
    created_at: str
    next_attempt_at: str | None
    finished_at: str | None
    attempts: list[AttemptAnswer]

    @classmethod
    def of(cls, delivery: Delivery, attempts: list[Attempt]) -> "DeliveryAnswer":
        return cls(
            delivery_id=delivery.delivery_id,
            webhook_id=delivery.webhook_id,
            event_id=delivery.event_id,
            event=delivery.event,
            status=delivery.status,
            created_at=to_rfc3339(delivery.created_at_ms),
            next_attempt_at=optional_rfc3339(delivery.next_attempt_at_ms),
            finished_at=optional_rfc3339(delivery.finished_at_ms),
            attempts=[AttemptAnswer.of(attempt) for attempt in attempts],
        )


class DeliveryList(ResponseModel):
    """A page of the journal, newest first."""

    data: list[DeliveryAnswer]
    next_cursor: str | None


class ReplayAnswer(ResponseModel):
    """A replay that has begun: `events` of that time are looked at, and delivered as they need be."""

    webhook_id: str
    since: str
    until: str
    include_delivered: bool
    events: int


def _shown(webhook: Webhook) -> dict[str, Any]:
    return {
        "webhook_id": webhook.webhook_id,
        "url": webhook.url,
        "events": list(webhook.events),
        "description": webhook.description,
        "status": webhook.status,
        "failing_since": optional_rfc3339(webhook.failing_since_ms),
        "disabled_reason": webhook.disabled_reason,
        "created_at": to_rfc3339(webhook.created_at_ms),
        "updated_at": to_rfc3339(webhook.updated_at_ms),
    }
