"""Event types, for declaring, emitting and observing events."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.kernel.values import value_object


class EventSubject(Protocol):
    """Whom an event concerns; a subscriber."""

    @property
    def bot(self) -> str:
        """The key of the channel by which the person is known."""
        ...

    def event_fields(self) -> dict[str, Any]:
        """What every event of the person carries: `subscriber_id`, `channel`, `first_name` and so on."""
        ...


@dataclass(frozen=True, slots=True)
class EventSpec:
    """Declares an event (hook `register_events`).

    `fields` types the payload's own fields; `occurred_at` and, with `of_subscriber`, the
    subscriber's fields are added to every payload.
    """

    name: str
    meaning: str
    fields: type[ResponseModel]
    of_subscriber: bool = True
    #: Whether it is part of the subscriber's history. False for events whose subject is listed there
    #: itself, such as messages; so indexing histories costs nothing where thousands are sent.
    in_history: bool = True


@value_object
class Event:
    """Something that happened in a project. `data` is the payload as the integrator gets it."""

    event_id: str
    project_id: str
    name: str
    data: dict[str, Any]
    occurred_at_ms: int
    #: In whose history it stands, if in anybody's.
    history_of: str | None = None


@value_object
class NewEvent:
    """An event to be emitted. `fields` are those of its `EventSpec`; the time and the subscriber's are
    added."""

    project_id: str
    name: str
    fields: Mapping[str, Any]
    subscriber: EventSubject | None = None


Listener = Callable[[Event], Awaitable[None]]
