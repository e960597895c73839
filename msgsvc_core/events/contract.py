"""What an event is, for those who declare, emit or observe one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class EventSpec:
    """Declares an event (hook `register_events`).

    `fields` types the payload's own fields; `occurred_at` and, with `of_subscriber`, the
    subscriber's fields are added to every payload.
    """

    name: str
    meaning: str
    fields: type[BaseModel]
    of_subscriber: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a project. `data` is the payload as the integrator gets it."""

    event_id: str
    project_id: str
    name: str
    data: dict[str, Any]
    occurred_at_ms: int


Listener = Callable[[Event], Awaitable[None]]
