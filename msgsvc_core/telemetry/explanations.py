"""What `msgsvc explain` prints: a sentence, the facts behind it, and what happened when.

Whoever owns a kind of id explains it: the core its messages, jobs and mailings, a plugin its own by the hook
`register_explainers`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, MINUTE_MS, to_datetime
from msgsvc_core.kernel.values import value_object

#: A fact as JSON has it; None where there is nothing to say.
Fact = str | int | None


@value_object
class TimelineEntry:
    """What happened, or will, in a few words without a full stop. Unix milliseconds."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something is where it is. `summary` is one or two plain sentences; `facts` are named as in the
    API."""

    summary: str
    facts: Mapping[str, Fact]
    timeline: Sequence[TimelineEntry] = field(default=())


#: Explains an id; None if there is no such thing.
Explain = Callable[[Tx, str], Awaitable[Explanation | None]]

#: What became of events of a project, by their ids, e.g. which webhooks received them.
FollowEvents = Callable[[Tx, str, Sequence[str]], Awaitable[Sequence[TimelineEntry]]]


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains ids that begin with `prefix` and an underscore, for operators: of any project.

    Several may share a prefix; the first that knows an id explains it. `follow_events` adds to the timeline
    of what emitted the events.
    """

    prefix: str
    explain: Explain
    follow_events: FollowEvents | None = None


def moment(ms: int) -> str:
    """A time for people: `2026-11-20 09:30:00 UTC`."""
    return f"{to_datetime(ms):%Y-%m-%d %H:%M:%S} UTC"


def moment_from(ms: int, now_ms: int) -> str:
    """A time for people, and how far from now: `2026-11-20 09:30:00 UTC (in 2 min)`."""
    far = duration(abs(ms - now_ms))
    return f"{moment(ms)} ({f'in {far}' if ms > now_ms else f'{far} ago'})"


def duration(ms: int) -> str:
    """A duration for people, in its largest unit: `45 s`, `2 min`, `3 h`, `4 d`."""
    for unit_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min")):
        if ms >= unit_ms:
            return f"{ms // unit_ms} {unit}"
    return f"{ms // 1000} s"
