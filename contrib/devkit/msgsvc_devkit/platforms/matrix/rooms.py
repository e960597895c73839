"""The fake's state: events, rooms, and who is in them."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True, eq=False)
class Event:
    """One event; `position` is its place in the stream of all events."""

    position: int
    room_id: str
    kind: str
    sender: str
    content: dict[str, Any]
    state_key: str | None = None
    previous: dict[str, Any] | None = None
    redacts: str | None = None
    redacted_by: str | None = None
    event_id: str = field(default_factory=lambda: "$" + secrets.token_urlsafe(32))
    at_ms: int = field(default_factory=now_ms)

    def to_wire(self, *, with_room: bool = False) -> dict[str, Any]:
        """The specification's ClientEvent."""
        wire: dict[str, Any] = {
            "type": self.kind,
            "sender": self.sender,
            "event_id": self.event_id,
            "origin_server_ts": self.at_ms,
            "content": self.content,
            "unsigned": {"age": now_ms() - self.at_ms},
        }
        if self.state_key is not None:
            wire["state_key"] = self.state_key
            if self.previous is not None:
                wire["unsigned"]["prev_content"] = self.previous
        if self.redacts is not None:
            wire["redacts"] = self.redacts
        if self.redacted_by is not None:
            wire["unsigned"]["redacted_because"] = {"event_id": self.redacted_by}
        if with_room:
            wire["room_id"] = self.room_id
        return wire


@dataclass(frozen=True, slots=True)
class Receipt:
    """Up to where a user has read: in the whole room, or in one thread (`main` for what is in none)."""

    position: int
    kind: str
    user_id: str
    event_id: str
    thread_id: str | None
    at_ms: int


@dataclass(slots=True, eq=False)
class MatrixRoom:
    """A room, with its events in order."""

    room_id: str
    direct: bool
    events: list[Event] = field(default_factory=list)
    #: The latest of each kind, user and thread.
    receipts: dict[tuple[str, str, str | None], Receipt] = field(default_factory=dict)

    def membership(self, user_id: str) -> str:
        """`join`, `invite`, `leave`, `ban`, or empty for someone who has never been here."""
        event = self.member_event(user_id)
        return "" if event is None else str(event.content["membership"])

    def member_event(self, user_id: str) -> Event | None:
        return self.state_event("m.room.member", user_id)

    def state_event(self, kind: str, state_key: str = "") -> Event | None:
        """The present state of that type and key."""
        for event in reversed(self.events):
            if event.kind == kind and event.state_key == state_key:
                return event
        return None

    def lets_write(self, user_id: str) -> bool:
        """Whether the power levels let a user send messages."""
        event = self.state_event("m.room.power_levels")
        levels = {} if event is None else event.content
        mine = levels.get("users", {}).get(user_id, levels.get("users_default", 0))
        return bool(mine >= levels.get("events_default", 0))

    @property
    def joined(self) -> list[str]:
        users = dict.fromkeys(e.state_key for e in self.events if e.kind == "m.room.member")
        return [user for user in users if user is not None and self.membership(user) == "join"]

    def event(self, event_id: str) -> Event | None:
        return next((event for event in self.events if event.event_id == event_id), None)

    def edits_of(self, event: Event) -> list[Event]:
        """The edits of a message that were not redacted, oldest first."""
        return [
            one
            for one in self.events
            if one.kind == event.kind
            and one.sender == event.sender
            and one.content.get("m.relates_to", {}).get("rel_type") == "m.replace"
            and one.content["m.relates_to"].get("event_id") == event.event_id
        ]
