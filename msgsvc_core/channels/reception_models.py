"""Reception status, for the API and events."""

from enum import StrEnum
from typing import Literal, Protocol

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.channels.contract import Channel
from msgsvc_core.kernel.clock import to_rfc3339


class InterruptionReason(StrEnum):
    """Why a bot receives nothing: asking for updates fails, the platform takes no address to call, or does
    not call it with success."""

    POLLING_FAILED = "polling_failed"
    WEBHOOK_NOT_SET = "webhook_not_set"
    WEBHOOK_NOT_CALLED = "webhook_not_called"


class ReceptionRecovered(ResponseModel):
    """Fields of `channel.reception_recovered`; `channel` is the name."""

    channel: str


class ReceptionInterrupted(ReceptionRecovered):
    """Fields of `channel.reception_interrupted`: `since` is the first failure, `reason` is for programs,
    `detail` in the messenger's words."""

    since: str
    reason: InterruptionReason
    detail: str


class ReceptionAnswer(ResponseModel):
    """How a bot receives. `since`, `reason` and `detail` say since when and why it does not; null while it
    does."""

    state: Literal["receiving", "interrupted"]
    since: str | None
    reason: InterruptionReason | None
    detail: str | None


class NotedReception(Protocol):
    """What is in the database of it."""

    @property
    def interrupted_since_ms(self) -> int | None: ...
    @property
    def interrupted_reason(self) -> str | None: ...
    @property
    def interrupted_detail(self) -> str | None: ...


def reception_of(channel: Channel, noted: NotedReception | None) -> ReceptionAnswer | None:
    """As it is shown; None for a bot that is to receive nothing."""
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
