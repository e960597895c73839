"""Recorded answers beside today's: what differs, and which differences are explained."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("differences.toml")

#: Stands for a value that one of the two answers does not have.
ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A difference that is meant. `path` and `field` are patterns as of `fnmatch`."""

    path: str
    field: str
    reason: str

    def explains(self, difference: "Difference") -> bool:
        return fnmatchcase(difference.path, self.path) and fnmatchcase(difference.field, self.field)


@dataclass(frozen=True, slots=True)
class Difference:
    """`field` of the answer to a GET of `path`: what was recorded, and what is answered today."""

    path: str
    field: str
    recorded: Any
    today: Any


def explanations(release: str) -> list[Explanation]:
    """Those for what has changed since that release."""
    listed = tomllib.loads(LIST.read_text("utf-8")).get("difference", [])
    return [
        Explanation(each["path"], each["field"], each["reason"])
        for each in listed
        if each["since"] == release
    ]


def asked_today(path: str, release: str) -> str:
    """What is asked for in place of that path of the release."""
    for each in tomllib.loads(LIST.read_text("utf-8")).get("moved", []):
        if each["since"] == release:
            path = re.sub(each["path"], each["to"], path)
    return path


def compare(recorded: Mapping[str, Any], today: Mapping[str, Any]) -> list[Difference]:
    """All differences, by path of the request and field of the answer."""
    found = []
    for path in sorted({*recorded, *today}):
        before, after = (
            dict(_fields(each[path])) if path in each else {} for each in (recorded, today)
        )
        found += [
            Difference(path, name, before.get(name, ABSENT), after.get(name, ABSENT))
            for name in sorted({*before, *after})
            if before.get(name, ABSENT) != after.get(name, ABSENT)
        ]
    return found


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its place, such as `body.data.0.status`."""
    parts: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    if not parts:
        yield name, value
    for key, part in parts:
        yield from _fields(part, f"{name}.{key}" if name else str(key))


def unexplained(
    differences: Sequence[Difference], known: Sequence[Explanation]
) -> tuple[list[Difference], list[Explanation]]:
    """The differences that nothing explains, and the explanations of what does not differ."""
    return (
        [each for each in differences if not any(one.explains(each) for one in known)],
        [one for one in known if not any(one.explains(each) for each in differences)],
    )
