"""Reception status, for the API and events."""

from enum import StrEnum
from typing import Literal, Protocol

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.channels.contract import Channel
from msgsvc_core.kernel.clock import to_rfc3339


class InterruptionReason(StrEnum):
    """Why a bot receives nothing: polling fails, the platform refuses the webhook URL, or its calls fail."""

    POLLING_FAILED = "polling_failed"
    WEBHOOK_NOT_SET = "webhook_not_set"
    WEBHOOK_NOT_CALLED = "webhook_not_called"


class ReceptionRecovered(ResponseModel):
    """Fields of `channel.reception_recovered`."""

    channel: str = Field(
        description="Name of the project's own channel.", examples=[examples.CHANNEL]
    )


class ReceptionInterrupted(ReceptionRecovered):
    """Fields of `channel.reception_interrupted`."""

    since: Time = Field(description="When it failed first.")
    reason: InterruptionReason = Field(
        description="Why the bot receives nothing, for programs: polling fails, the messenger refuses the"
        " webhook URL, or its calls to it fail.",
        examples=["webhook_not_called"],
    )
    detail: str = Field(
        description="The messenger's own text, for people.", examples=["Connection refused"]
    )


class ReceptionAnswer(ResponseModel):
    """How a bot receives what people write."""

    status: Literal["receiving", "interrupted"] = Field(
        description="`interrupted`: nothing arrives, and sending may still work.",
        examples=["receiving"],
    )
    since: Time | None = Field(
        description="When receiving failed first; null while it works.", examples=[None]
    )
    reason: InterruptionReason | None = Field(
        description="Why the bot receives nothing, for programs; null while it receives.",
        examples=[None],
    )
    detail: str | None = Field(
        description="The messenger's own text, for people; null while the bot receives.",
        examples=[None],
    )


class NotedReception(Protocol):
    """The stored reception status."""

    @property
    def interrupted_since_ms(self) -> int | None: ...
    @property
    def interrupted_reason(self) -> str | None: ...
    @property
    def interrupted_detail(self) -> str | None: ...


def reception_of(channel: Channel, noted: NotedReception | None) -> ReceptionAnswer | None:
    """The reception status for the API; None for a bot that does not receive."""
    if channel.receiving == "nothing":
        return None
    if noted is None or noted.interrupted_since_ms is None:
        return ReceptionAnswer(status="receiving", since=None, reason=None, detail=None)
    return ReceptionAnswer(
        status="interrupted",
        since=to_rfc3339(noted.interrupted_since_ms),
        reason=InterruptionReason(noted.interrupted_reason or InterruptionReason.POLLING_FAILED),
        detail=noted.interrupted_detail,
    )
