"""The events that the plugin emits. None of them carries what was sent."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_gateway.models import GatewayId, GatewayMessageId

SENT, FAILED = "gateway.sent", "gateway.failed"


class GatewayMessageSent(ResponseModel):
    """Fields of `gateway.sent`, with the subscriber's."""

    message_id: GatewayMessageId
    gateway_id: GatewayId


class GatewayMessageFailed(ResponseModel):
    """Fields of `gateway.failed`, with the fields of the last subscriber that was tried."""

    message_id: GatewayMessageId
    gateway_id: GatewayId
    reason: str = Field(
        description="Why the last channel did not take it, as in `delivery.failed`; `expired` if none did"
        " in time.",
        examples=["user_blocked_bot"],
    )


GATEWAY_EVENTS = (
    EventSpec(
        SENT,
        "A messenger took a message that another server sent through a gateway.",
        GatewayMessageSent,
        group="sign_in",
    ),
    EventSpec(
        FAILED,
        "No channel took a message that another server sent through a gateway.",
        GatewayMessageFailed,
        group="sign_in",
    ),
)
