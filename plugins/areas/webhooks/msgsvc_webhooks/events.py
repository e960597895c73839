"""The plugin's own events."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_webhooks.models import DisabledReason

TEST = "webhook.test"


class WebhookDisabled(ResponseModel):
    """Fields of `webhook.disabled`."""

    webhook_id: str
    description: str | None = Field(description="The webhook's description.")
    reason: DisabledReason = Field(
        description="`failing`: no attempt succeeded for days; `gone`: the receiver responded 410."
    )
    failing_since: str | None = Field(
        description="Time of the first failure, RFC 3339 in UTC; null if it did not fail before."
    )
    status_code: int | None = Field(
        description="Status of the last response; null if there was none."
    )
    error: str | None = Field(description="The error of the last attempt.")


class WebhookTest(ResponseModel):
    """Fields of `webhook.test`."""

    webhook_id: str


WEBHOOK_EVENTS = (
    EventSpec(
        "webhook.disabled",
        "A webhook was disabled: it failed for days, or its receiver responded 410.",
        WebhookDisabled,
        of_subscriber=False,
    ),
    EventSpec(
        TEST,
        "You requested a test of a webhook. Sent only to that webhook, and not in the feed.",
        WebhookTest,
        of_subscriber=False,
    ),
)
