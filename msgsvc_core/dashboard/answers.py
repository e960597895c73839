"""Results of page handlers."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Render:
    """A template of the area, e.g. `tickets.html` of `msgsvc_helpdesk.dashboard`, and its values.

    A template that extends `page.html` is a complete page; any other is a fragment, which htmx swaps in.
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirects to another page (`page.url(...)`), where `notice` is shown once, e.g. "Saved."."""

    to: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file download; its pieces are generated while they are sent."""

    pieces: AsyncIterator[bytes]
    filename: str
    media_type: str = "text/csv; charset=utf-8"


Result = Render | Redirect | Download
