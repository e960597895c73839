"""What became of the steps, in a form in which two clients can be compared."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: An id, whose random part differs from run to run.
_ID = re.compile(r"\b([a-z]{2,4})_(?:[0-9A-Za-z]{16,})\b")

#: Random parts of addresses: start links, QR codes.
_TOKEN = re.compile(r"(?<=[=/_])[0-9A-Za-z_.-]{20,}")

_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")

_SLUG = re.compile(r"shop-[0-9a-f]{8}")

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

_WORD = re.compile(r"[a-z]+(_[a-z]+)*")

#: Fields whose values are random, or count seconds.
_VARYING = {"expires_in", "code", "match_number", "secret", "webhook-signature", "duration_seconds"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One step: what the client returned or raised, and the requests that it made for it."""

    scenario: str
    number: int
    does: str
    outcome: Any
    requests: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @property
    def comparable(self) -> Any:
        return (self.does, normal(self.outcome), self.requests)


@dataclass(slots=True)
class Transcript:
    """What one client did."""

    client: str
    entries: list[Entry] = field(default_factory=list)

    def of(self, scenario: str) -> list[Entry]:
        return [each for each in self.entries if each.scenario == scenario]

    def codes(self) -> dict[str, str]:
        """The error codes that were raised, with the class of each."""
        errors = [each.outcome["error"] for each in self.entries if "error" in each.outcome]
        return {error["code"]: error["class"] for error in errors}


def normal(value: Any, name: str = "") -> Any:
    """The value without what differs from run to run: ids, times, tokens."""
    match value:
        case Mapping():
            return {key: normal(each, key) for key, each in value.items()}
        case list() | tuple():
            return [normal(each) for each in value]
        case str() | int() | float() if name in _VARYING and not _is_word(value):
            return f"<{name}>"
        case str():
            for pattern, stand_in in (
                (_SLUG, "<slug>"),
                (_PORT, "<port>"),
                (_TIME, "<time>"),
                (_ID, r"<\1>"),
                (_TOKEN, "<token>"),
            ):
                value = pattern.sub(stand_in, value)
            return value
    return value


def _is_word(value: object) -> bool:
    """Such as the code of an error, beside the codes of sign-ins."""
    return isinstance(value, bool) or (isinstance(value, str) and bool(_WORD.fullmatch(value)))
