"""The fake's log of the bot's calls, with their times and results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Call:
    """One request. `at` is in seconds of the event loop's clock; `status` 0 is a closed connection."""

    at: float
    method: str
    path: str
    query: Mapping[str, str]
    body: Any = None
    status: int = 0
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """E.g. `POST /messages`."""
        return f"{self.method} {self.path}"
