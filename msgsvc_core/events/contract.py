"""Event types, for declaring, emitting and observing events."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from msgsvc_core.api.endpoint import AreaGroup, ResponseModel
from msgsvc_core.kernel.i18n import Translate, package_of
from msgsvc_core.kernel.values import value_object


class EventSubject(Protocol):
    """The subscriber whom an event concerns."""

    @property
    def bot(self) -> str:
        """The key of the channel through which the person subscribed."""
        ...

    def event_fields(self) -> dict[str, Any]:
        """The fields of every event of the subscriber: `subscriber_id`, `channel`, `first_name` and so on."""
        ...


#: A title of an event by its payload: `lambda _, data: _("Opened a ticket")`.
EventTitle = Callable[[Translate, Mapping[str, Any]], str]


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
    #: Whether it also happens without a subscriber, e.g. on a web site. Its payload then lacks the fields of
    #: subscribers.
    subscriber_is_optional: bool = False
    #: Whether it is part of the subscriber's history. False for events whose subject is in it anyway, such as
    #: messages; so indexing histories costs nothing when thousands are sent.
    in_history: bool = True
    #: The group of areas among which people find it.
    group: AreaGroup = "other"
    #: What a subscriber's history calls it, with the owner's texts; its name if there is none.
    title: EventTitle | None = None
    #: What the history shows below the title, with the owner's texts. An empty string shows nothing; without
    #: it the dashboard shows the values of common fields of the payload, such as `text`, `reason` and `url`.
    detail: EventTitle | None = None

    def titled(self, _: Translate, data: Mapping[str, Any]) -> str:
        """What a subscriber's history calls an event with this payload."""
        return self.title(_[package_of(self.title)], data) if self.title is not None else self.name

    def detailed(self, _: Translate, data: Mapping[str, Any]) -> str | None:
        """What the history shows below the title; None if that is not declared."""
        return None if self.detail is None else self.detail(_[package_of(self.detail)], data)


@value_object
class Event:
    """Something that happened in a project. `data` is the payload that the project receives."""

    event_id: str
    project_id: str
    name: str
    data: dict[str, Any]
    occurred_at_ms: int
    #: The subscriber whose history includes it, if any.
    history_of: str | None = None
    #: The span in which it happened, see `kernel.tracing.Span.traceparent`; it is not stored.
    traceparent: str | None = None


@value_object
class NewEvent:
    """An event to be emitted. `fields` are those of its `EventSpec`; the time and the subscriber's fields
    are added. `traceparent` is the span in which it happened, by default the current one."""

    project_id: str
    name: str
    fields: Mapping[str, Any]
    subscriber: EventSubject | None = None
    traceparent: str | None = None


Listener = Callable[[Event], Awaitable[None]]
