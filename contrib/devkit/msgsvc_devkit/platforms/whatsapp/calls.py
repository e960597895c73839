"""Requests of the business, as the fake received them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Call:
    """One request. `name` is without version and ids: `POST messages`, `GET number`; `status` 0 is a closed
    connection."""

    method: str
    path: str
    query: Mapping[str, str]
    name: str = ""
    body: Any = None
    status: int = 0
    code: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
