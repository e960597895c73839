"""The plugin's own events."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.events import EventSpec
from msgsvc_webhooks.models import DisabledReason, WebhookId

TEST = "webhook.test"


class WebhookDisabled(ResponseModel):
    """Fields of `webhook.disabled`."""

    webhook_id: WebhookId
    description: str | None = Field(
        description="Your own note on the webhook; null for none.", examples=["The shop"]
    )
    reason: DisabledReason = Field(
        description="`failing`: no attempt succeeded for days; `gone`: the receiver responded 410."
    )
    failing_since: Time | None = Field(
        description="The first failed attempt; null if it did not fail before.",
        examples=["2026-02-24T09:30:00.000Z"],
    )
    status_code: int | None = Field(
        description="HTTP status of the last response; null if there was none.", examples=[500]
    )
    error: str | None = Field(
        description="Why the last attempt failed, for people; null if nothing more is known.",
        examples=["the receiver answered 500"],
    )


class WebhookTest(ResponseModel):
    """Fields of `webhook.test`."""

    webhook_id: WebhookId


WEBHOOK_EVENTS = (
    EventSpec(
        "webhook.disabled",
        "A webhook was disabled: it failed for days, or its receiver responded 410.",
        WebhookDisabled,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        TEST,
        "You requested a test of a webhook. Sent only to that webhook, and not in the feed.",
        WebhookTest,
        of_subscriber=False,
        group="developers",
    ),
)
