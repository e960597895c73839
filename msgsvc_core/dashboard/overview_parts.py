"""What areas contribute to the overview of a project: figures, charts and problems."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgsvc_core.kernel.i18n import Title

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


@dataclass(frozen=True, slots=True)
class EventTile:
    """A key figure of a period: how many events of a name there were, or the share that they are of those
    named `of`. They are counted from when the plugin is first loaded."""

    title: Title
    event: str
    of: str | None = None


@dataclass(frozen=True, slots=True)
class FirstStep:
    """A step that a new project is asked to take. It is done once an event of that name has happened.

    `path` is the page where it is done, below the project's pages, and `action` the label of the link to it.
    The overview shows the steps by ascending `order` until all are done.
    """

    title: Title
    text: Title
    event: str
    path: str
    action: Title
    order: int = 100


@dataclass(frozen=True, slots=True)
class EventSeries:
    """One colour of a chart: the events of a name, by day or hour."""

    title: Title
    event: str
    style: Literal["first", "second", "third", "fourth"] = "first"


@dataclass(frozen=True, slots=True)
class EventChart:
    """A chart of events. `name` is unique among all charts of the overview."""

    name: str
    title: Title
    series: Sequence[EventSeries]
    order: int = 100
