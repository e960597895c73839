"""The fake's log of the bot's calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Call:
    """One request. `name` is the API's, e.g. `send`; `status` 0 is a closed connection."""

    method: str
    path: str
    name: str = ""
    query: Mapping[str, str] | None = None
    body: Any = None
    status: int = 0
    code: str = ""
