"""Entries of the journal."""

from dataclasses import dataclass
from typing import Literal

#: How the sign-in was started.
Flow = Literal["code", "device", "ciba", "token", "logout"]

#: The outcome of one that succeeded; any other is a registered error code.
SIGNED_IN = "signed_in"

#: Characters of a detail.
MAX_DETAIL_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One sign-in, or one that failed. `detail` says why, for the client's developer."""

    project_id: str
    entry_id: str
    client_id: str
    flow: Flow
    outcome: str
    detail: str
    subscriber_id: str | None
    at_ms: int
