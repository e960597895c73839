"""The scenarios as the file has them, and the variables of a run."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("scenarios.toml")

_VARIABLE = re.compile(r"\$\{?([a-z_]+(?:\.\w+)*)\}?")

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is shown, and how."""

    title: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """The whole file. `unreachable` are error codes that no request of a client brings about, and why."""

    scenarios: tuple[Scenario, ...]
    unreachable: Mapping[str, str]


@cache
def script() -> Script:
    found = tomllib.loads(FILE.read_text("utf-8"))
    scenarios = [Scenario(each["title"], tuple(each["step"])) for each in found["scenario"]]
    return Script(tuple(scenarios), found["unreachable"])


class Variables(dict[str, Any]):
    """What steps have kept, by name: `$session.links.messenger_a`."""

    def fill(self, value: Any) -> Any:
        """The value with its variables replaced. One that stands alone keeps its type."""
        match value:
            case str():
                alone = _VARIABLE.fullmatch(value)
                if alone:
                    return self._value(alone[1])
                return _VARIABLE.sub(lambda found: str(self._value(found[1])), value)
            case list():
                return [self.fill(each) for each in value]
            case dict():
                return {name: self.fill(each) for name, each in value.items()}
        return value

    def _value(self, path: str) -> Any:
        return at(self, path)


def at(value: Any, path: str) -> Any:
    """What stands at `data.0.message_id`; `.` is the value itself."""
    for part in path.split(".") if path != "." else ():
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def lacks(expected: Any, found: Any, path: str = "") -> list[str]:
    """Where `found` differs from what is expected of it. Objects may have further fields."""
    match expected, found:
        case dict(), dict():
            return [
                problem
                for name, value in expected.items()
                for problem in (
                    lacks(value, found[name], f"{path}.{name}")
                    if name in found
                    else [f"{path}.{name} is missing"]
                )
            ]
        case list(), list() if len(expected) == len(found):
            return [
                problem
                for number, (one, other) in enumerate(zip(expected, found, strict=True))
                for problem in lacks(one, other, f"{path}.{number}")
            ]
    return [] if expected == found else [f"{path or '.'} is {found!r}, not {expected!r}"]
