"""Calls of the fake, with parameters, results, and Telegram's error texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Error code for requests that the strict fake rejects although Telegram would accept them; different from
#: Telegram's codes, so that our code doesn't handle it.
STRICT = "Bad Request: the strict fake says: "


@dataclass(slots=True)
class Call:
    """One call. Times are seconds of `time.monotonic()`; `ended_at` is 0 while it is in progress.

    `status` is that of the response; None if the connection was closed instead.
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
    """A response with `"ok": false`."""

    def __init__(
        self, status: int, description: str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = dict(parameters or {})


class Break(Exception):
    """No response: the connection is closed."""


def bad_request(description: str) -> Refusal:
    return Refusal(400, f"Bad Request: {description}")


def complaint(what: str) -> Refusal:
    """The error for requests that Telegram might tolerate, and a client should never send."""
    return Refusal(400, STRICT + what)


def too_many_requests(retry_after: int) -> Refusal:
    return Refusal(
        429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}
    )


@dataclass(slots=True)
class Upload:
    """A file uploaded with a call."""

    filename: str
    content_type: str
    content: bytes = field(repr=False)
