"""Deliveries of logout tokens."""

from dataclasses import dataclass
from typing import Literal

from msgsvc_core.kernel.errors import Finding

DeliveryStatus = Literal["pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOut:
    """What a client is notified of: a person's session ended, or, without one, all of theirs. `subject` is
    their `sub` for this client."""

    project_id: str
    client_id: str
    subject: str
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutDelivery:
    """A logout token that is or was to be delivered. It has all that the token says, for the session and the
    person may be gone when it is sent."""

    project_id: str
    delivery_id: str
    client_id: str
    subject: str
    session_id: str | None
    status: DeliveryStatus
    attempts: int
    #: Of the last response; None if there was none.
    status_code: int | None
    #: What went wrong last, in English; empty if nothing did.
    error: str
    #: The same as pages word it; None also for what an earlier release recorded.
    failure: Finding | None
    created_at_ms: int
    #: None if there is no further attempt.
    next_attempt_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutAttempt:
    """How one attempt ended."""

    status_code: int | None
    #: What went wrong; None if nothing did.
    failure: Finding | None = None
    #: Seconds that the client asks to be left alone.
    retry_after_s: float | None = None
    #: The URL can't be called at all.
    is_forbidden: bool = False
