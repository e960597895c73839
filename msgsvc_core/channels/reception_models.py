"""Reception status, for the API and events."""

from enum import StrEnum
from typing import Literal, Protocol

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.channels.contract import Channel
from msgsvc_core.kernel.clock import to_rfc3339


class InterruptionReason(StrEnum):
    """Why a bot receives nothing: polling fails, the platform refuses the webhook URL, or its calls fail."""

    POLLING_FAILED = "polling_failed"
    WEBHOOK_NOT_SET = "webhook_not_set"
    WEBHOOK_NOT_CALLED = "webhook_not_called"


class ReceptionRecovered(ResponseModel):
    """Fields of `channel.reception_recovered`; `channel` is the name."""

    channel: str


class ReceptionInterrupted(ReceptionRecovered):
    """Fields of `channel.reception_interrupted`: `since` is the first failure, `reason` is for programs,
    `detail` is the messenger's text."""

    since: str
    reason: InterruptionReason
    detail: str


class ReceptionAnswer(ResponseModel):
    """How a bot receives. `since`, `reason` and `detail` describe an interruption; null if there is none."""

    state: Literal["receiving", "interrupted"]
    since: str | None
    reason: InterruptionReason | None
    detail: str | None


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
        return ReceptionAnswer(state="receiving", since=None, reason=None, detail=None)
    return ReceptionAnswer(
        state="interrupted",
        since=to_rfc3339(noted.interrupted_since_ms),
        reason=InterruptionReason(noted.interrupted_reason or InterruptionReason.POLLING_FAILED),
        detail=noted.interrupted_detail,
    )
