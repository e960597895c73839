"""Backchannel requests."""

from dataclasses import dataclass, field

from msgsvc_oidc.protocol.polling import PolledRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRequest(PolledRequest):
    """A request whose question the person was sent. `session_id` is that of the question."""

    subscriber_id: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRequest:
    """What the client is told. `match_number` is to be shown where the person acts."""

    auth_req_id: str = field(repr=False)
    expires_in_s: int
    interval_s: int
    match_number: int | None
