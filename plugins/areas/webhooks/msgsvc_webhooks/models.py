"""Models of webhooks, deliveries and attempts: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, Kept, MomentMs, Time, UpdatedAt, Url, UrlText
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.values import value_object

WebhookStatus = Literal["active", "disabled"]
#: Why the service disabled a webhook: no attempt succeeded for days, or its receiver answered 410.
DisabledReason = Literal["failing", "gone"]
#: Why an attempt did not succeed.
AttemptCode = Literal["bad_status", "no_response"]
#: As it is stored.
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]
#: As the API and pages show it.
ShownStatus = Literal["queued", "delivered", "failed", "cancelled"]

#: Characters of the note on a webhook.
MAX_DESCRIPTION_LENGTH = 500

#: Event names of one webhook; more than there are events.
MAX_EVENTS = 100

#: What these fields mean, in bodies and responses alike.
_URL = "Where events are POSTed to."
_EVENTS = "Names of the events that it receives; empty for all."
_DESCRIPTION = "Your own note on it; null for none."
_STATUS = "A `disabled` webhook receives nothing."

#: The webhook of the examples, and where it leads.
_ID, _HOOK = "whs_032aJfa0arMIzQyDYEpEI5", f"{examples.SITE_URL}/hooks/msgsvc"

WebhookId = Annotated[str, Field(description="The webhook's id.", examples=[_ID])]
DeliveryId = Annotated[
    str,
    Field(
        description="The delivery's id, which every attempt carries in a header, so that receivers can"
        " recognise repetitions.",
        examples=["whd_032aJamqrS1XqQvY0gJt5u"],
    ),
]
SigningSecret = Annotated[
    str,
    Field(
        description="Secret that its deliveries are signed with: `whsec_` and the base64 of 32 bytes. It"
        " can't be read again.",
        examples=["whsec_YW4tZXhhbXBsZS1zZWNyZXQtd2l0aC0zMi1ieXRlcyE="],
    ),
]


#: Names and values of headers.
HeaderPairs = tuple[tuple[str, str], ...]


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
    """One HTTP call. `error` says in English why it did not end in a complete 2xx response; `failure` is the
    same for pages, which word it in their reader's language. Attempts of earlier releases have none.

    `answer` is the start of the response body. `request_headers` are those that we chose, as they were
    sent, and `response_headers` those that came, both shortened (`headers.kept`). `retry_after_s` is the
    receiver's Retry-After, and `forbidden` is set when the guard refused the target; both are evaluated
    immediately and not stored, nor is `is_ours`, for an attempt that failed before any call.
    """

    started_at_ms: int
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
    failure: Finding | None = None
    answer: str = ""
    request_headers: HeaderPairs = ()
    response_headers: HeaderPairs = ()
    retry_after_s: float | None = None
    forbidden: bool = False
    is_ours: bool = False

    @property
    def code(self) -> AttemptCode | None:
        """Why it did not succeed; None if it did."""
        if self.status_code is not None and not 200 <= self.status_code < 300:
            return "bad_status"
        return None if self.error is None else "no_response"


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

    @property
    def shown_status(self) -> ShownStatus:
        return "queued" if self.status == "pending" else self.status


class CreateWebhookBody(RequestModel):
    """A new webhook."""

    url: UrlText = Field(
        description=f"{_URL} Private and internal addresses are refused.", examples=[_HOOK]
    )
    events: list[str] = Field(
        default=[],
        max_length=MAX_EVENTS,
        description=_EVENTS,
        examples=[["auth.completed", "delivery.failed"]],
    )
    description: str | None = Field(
        None, max_length=MAX_DESCRIPTION_LENGTH, description=_DESCRIPTION, examples=["The shop"]
    )


class UpdateWebhookBody(RequestModel):
    """Changes; omitted fields stay unchanged. `description: null` removes the note."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"events": ["auth.completed"], "description": None}, {"status": "active"}]
        }
    )

    url: Kept[UrlText] = Field(None, description=_URL, examples=[_HOOK])
    events: Kept[Annotated[list[str], Field(max_length=MAX_EVENTS)]] = Field(
        None, description=_EVENTS, examples=[["auth.completed"]]
    )
    description: str | None = Field(
        None, max_length=MAX_DESCRIPTION_LENGTH, description=_DESCRIPTION, examples=["The shop"]
    )
    status: Kept[WebhookStatus] = Field(
        None,
        description="`disabled` to receive nothing, which cancels queued deliveries; `active` to receive"
        " again.",
    )


class ReplayWebhookBody(RequestModel):
    """The deliveries to repeat."""

    since: MomentMs = Field(description="Events that happened then or later.")
    include_delivered: bool = Field(
        False, description="Whether those that were delivered are delivered once more."
    )


class DeliveryQuery(PageQuery):
    """Filters and paging."""

    status: ShownStatus | None = Field(
        None, description="Only deliveries with this status.", examples=["failed"]
    )
    event: str | None = Field(
        None, description="Only deliveries of this event.", examples=["auth.completed"]
    )

    @property
    def stored_status(self) -> DeliveryStatus | None:
        return "pending" if self.status == "queued" else self.status


class WebhookAnswer(ResponseModel):
    """A webhook as the API shows it."""

    webhook_id: WebhookId
    url: Url = Field(description=_URL, examples=[_HOOK])
    events: list[str] = Field(description=_EVENTS, examples=[["auth.completed", "delivery.failed"]])
    description: str | None = Field(description=_DESCRIPTION, examples=["The shop"])
    status: WebhookStatus = Field(description=_STATUS)
    failing_since: Time | None = Field(
        description="The first failed attempt after the last that succeeded; null if that is the last.",
        examples=[None],
    )
    disabled_reason: DisabledReason | None = Field(
        description="Why the service disabled it: `failing` for days, or `gone` (410). Null if it is active,"
        " or you disabled it.",
        examples=[None],
    )
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookAnswer":
        return cls(**_shown(webhook))


class NewWebhookAnswer(WebhookAnswer):
    """A webhook with its signing secret, which is shown this once."""

    secret: SigningSecret

    @classmethod
    def with_secret(cls, webhook: Webhook, secret: str) -> "NewWebhookAnswer":
        return cls(**_shown(webhook), secret=secret)


class WebhookList(ResponseModel):
    """A page of webhooks, newest first."""

    data: list[WebhookAnswer] = Field(description="The webhooks of this page.")
    next_cursor: NextCursor


class RotatedWebhookSecretAnswer(ResponseModel):
    """The new signing secret, which is shown once, and until when the previous one also signs."""

    webhook_id: WebhookId
    secret: SigningSecret
    previous_valid_until: Time = Field(
        description="Until when deliveries are also signed with the previous secret.",
        examples=[examples.LATER],
    )


class WebhookAttemptAnswer(ResponseModel):
    """One HTTP call."""

    attempted_at: Time = Field(description="When it was made.")
    duration_seconds: float = Field(description="Seconds until it ended.", examples=[0.084])
    status_code: int | None = Field(
        description="HTTP status of the response; null if there was none.", examples=[200]
    )
    code: AttemptCode | None = Field(
        description="Why it did not succeed. `bad_status`: the response was not 2xx. `no_response`: there was"
        " no complete response, or no call. Null if it succeeded.",
        examples=[None],
    )
    error: str | None = Field(
        description="Details for people; null if `status_code` is enough.", examples=[None]
    )
    answer: str | None = Field(
        description="The first 2 KiB of the response's body, as text; null if there was none.",
        examples=["ok"],
    )

    @classmethod
    def of(cls, attempt: Attempt) -> "WebhookAttemptAnswer":
        return cls(
            attempted_at=to_rfc3339(attempt.started_at_ms),
            duration_seconds=attempt.duration_ms / 1000,
            status_code=attempt.status_code,
            code=attempt.code,
            error=attempt.error,
            answer=attempt.answer or None,
        )


class WebhookDeliveryAnswer(ResponseModel):
    """A delivery of an event to a webhook, with its attempts."""

    delivery_id: DeliveryId
    webhook_id: WebhookId
    event_id: str = Field(description="The event's id.", examples=[examples.EVENT_ID])
    event: str = Field(description="The event's name.", examples=["auth.completed"])
    status: ShownStatus = Field(
        description="`queued` until an attempt succeeds; `failed` after the last one; `cancelled` with"
        " its webhook.",
        examples=["delivered"],
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    next_attempt_at: Time | None = Field(
        description="When it is attempted next; null unless it is queued.", examples=[None]
    )
    finished_at: Time | None = Field(
        description="When it was delivered, failed or cancelled; null while it is queued."
    )
    attempts: list[WebhookAttemptAnswer] = Field(description="Its attempts, the first one first.")

    @classmethod
    def of(cls, delivery: Delivery, attempts: list[Attempt]) -> "WebhookDeliveryAnswer":
        return cls(
            delivery_id=delivery.delivery_id,
            webhook_id=delivery.webhook_id,
            event_id=delivery.event_id,
            event=delivery.event,
            status=delivery.shown_status,
            created_at=to_rfc3339(delivery.created_at_ms),
            next_attempt_at=optional_rfc3339(delivery.next_attempt_at_ms),
            finished_at=optional_rfc3339(delivery.finished_at_ms),
            attempts=[WebhookAttemptAnswer.of(attempt) for attempt in attempts],
        )


class WebhookDeliveryList(ResponseModel):
    """A page of the journal, newest first."""

    data: list[WebhookDeliveryAnswer] = Field(description="The deliveries of this page.")
    next_cursor: NextCursor


class WebhookReplayAnswer(ResponseModel):
    """A replay that has begun, in the background."""

    webhook_id: WebhookId
    since: Time = Field(description="Events that happened then or later are looked at.")
    until: Time = Field(
        description="Up to the time of the request; later events are delivered as usual.",
        examples=[examples.LATER],
    )
    include_delivered: bool = Field(
        description="Whether those that were delivered are delivered once more."
    )
    events: int = Field(
        description="How many events are looked at, and delivered if they need be.", examples=[42]
    )


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
