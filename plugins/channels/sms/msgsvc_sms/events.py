"""The event that the plugin emits."""

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec

LIMIT_REACHED = "sms.limit_reached"


class SmsLimitReached(ResponseModel):
    """Fields of `sms.limit_reached`. No number is in it."""

    channel: str = Field(description="Name of the channel.", examples=[examples.CHANNEL])
    limit: str = Field(
        description="The setting that was reached, for programs.", examples=["new_numbers_hour"]
    )
    detail: str = Field(
        description="What it says, for people.",
        examples=["20 new numbers an hour that begin with +7999555"],
    )
    until: str = Field(
        description="When the limit resets, unless the operator lifts it first.",
        examples=["2026-11-28T12:00:00Z"],
    )


SMS_EVENTS = (
    EventSpec(
        LIMIT_REACHED,
        "A limit against toll fraud has stopped one of your messages by SMS. Emitted once until the limit"
        " is reset.",
        SmsLimitReached,
        of_subscriber=False,
        group="developers",
    ),
)
