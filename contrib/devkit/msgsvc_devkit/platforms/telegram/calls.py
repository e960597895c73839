"""Calls as the fake sees them: what came, what was answered, and refusals in Telegram's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: What a strict fake refuses though Telegram would let it pass; so no code of ours mistakes it for an
#: answer that it should handle.
STRICT = "Bad Request: the strict fake says: "


@dataclass(slots=True)
class Call:
    """One call. Times are seconds of `time.monotonic()`; `ended_at` is 0 while it is under way.

    `status` is that of the answer; None where the connection was broken instead.
    """

    at: float
    bot_id: int
    method: str
    params: dict[str, Any]
    ended_at: float = 0.0
    status: int | None = None
    description: str = ""
    retry_after: int | None = None

    @property
    def chat_id(self) -> int | None:
        found = self.params.get("chat_id")
        return found if isinstance(found, int) else None


class Refusal(Exception):
    """An answer with `"ok": false`."""

    def __init__(
        self, status: int, description: str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = dict(parameters or {})


class Break(Exception):
    """No answer: the connection is broken."""


def bad_request(description: str) -> Refusal:
    return Refusal(400, f"Bad Request: {description}")


def complaint(what: str) -> Refusal:
    """For what Telegram might tolerate, and a client should never send."""
    return Refusal(400, STRICT + what)


def too_many_requests(retry_after: int) -> Refusal:
    return Refusal(
        429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}
    )


@dataclass(slots=True)
class Upload:
    """A file that came with a call."""

    filename: str
    content_type: str
    content: bytes = field(repr=False)
