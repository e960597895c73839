"""What areas contribute to the overview of a project: figures of this moment, and problems."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "warn", "bad"]
Unit = Literal["count", "share", "seconds"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of this moment, e.g. open tickets.

    `value` is None where there is nothing to count, e.g. a share of nothing; `at_least` says that it was
    counted only so far. `note` stands beneath in the colour of `tone`; `url` is where it is listed.
    """

    title: str
    value: float | None
    unit: Unit = "count"
    note: str = ""
    tone: Tone = ""
    url: str = ""
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A condition that needs attention, e.g. a stopped channel.

    `tone` is "bad" if something is lost or stands still, else "warn". `url` leads to where it is fixed, and
    `action` is its label; both are empty if the viewer may not.
    """

    title: str
    text: str
    tone: Literal["warn", "bad"] = "bad"
    url: str = ""
    action: str = ""
