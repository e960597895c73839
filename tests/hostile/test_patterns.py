"""No regular expression takes more than linear time in the way it is used.

Of every pattern in the product texts are made that it nearly matches: what it repeats, repeated, behind what
comes before. A pattern that only sees texts within a bound is listed with that bound.
"""

import ast
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from msgsvc_devkit.growth import growing

pytestmark = pytest.mark.slow

#: The standard library's own reading of patterns.
parser: Any = importlib.import_module("re._parser")
codes: Any = importlib.import_module("re._constants")

ROOT = Path(__file__).parents[2]

#: Characters of the two texts that are compared.
SIZES = (2_000, 8_000)

METHODS = frozenset({"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"})

#: Patterns that take quadratic time, by where and how they are used, and why nobody waits for them.
BOUNDED: Mapping[str, str] = {
    "msgsvc_core.config.environment._OF_KUBERNETES fullmatch": "names of the operator's own variables",
}


@dataclass(frozen=True, slots=True)
class Use:
    """A pattern, and how it is used there."""

    where: str
    pattern: re.Pattern[Any]
    method: str

    def __str__(self) -> str:
        return f"{self.where} {self.method}"


def modules() -> Iterator[ModuleType]:
    """All modules of the product."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in configured["tool"]["importlinter"]["root_packages"]:
        if name == "msgsvc_devkit":
            continue
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def uses_in(module: ModuleType) -> Iterator[Use]:
    """Calls of the module's own patterns, and of the functions of `re`."""
    assert module.__file__ is not None
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        method, owner = node.func.attr, node.func.value
        if method not in METHODS:
            continue
        if isinstance(owner, ast.Subscript):
            owner = owner.value
        if not isinstance(owner, ast.Name):
            continue
        where = f"{module.__name__}.{owner.id}"
        if owner.id == "re" and node.args and isinstance(node.args[0], ast.Constant):
            where = f"{module.__name__}:{node.lineno}"
            flags = re.ASCII if "ASCII" in ast.dump(node) else re.NOFLAG
            yield Use(where, re.compile(node.args[0].value, flags), method)
            continue
        held = getattr(module, owner.id, None)
        for pattern in held.values() if isinstance(held, dict) else (held,):
            if isinstance(pattern, re.Pattern):
                yield Use(where, pattern, method)


def near_matches(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """What may stand before, and what is repeated: of each repetition in the pattern."""
    text = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    yield from _repeated(parser.parse(text, flags), "")


def _repeated(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    for at, (code, value) in enumerate(tree):
        prefix = before + _sample(tree[:at])
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            _, most, inner = value
            if most > 8:
                yield prefix, _sample(inner)
                # What comes next may be what is repeated, too.
                yield prefix, _sample(inner) + _sample(tree[at + 1 : at + 2])
                yield "", prefix + _sample(inner)
            yield from _repeated(inner, prefix)
        elif code is codes.SUBPATTERN:
            yield from _repeated(value[3], prefix)
        elif code is codes.ATOMIC_GROUP:
            yield from _repeated(value, prefix)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _repeated(branch, prefix)
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            yield from _repeated(value[1], prefix)


def _sample(tree: Any) -> str:
    """A text that the pattern matches, mostly."""
    found = ""
    for code, value in tree:
        if code is codes.LITERAL:
            found += chr(value)
        elif code is codes.NOT_LITERAL:
            found += "b" if value == ord("a") else "a"
        elif code is codes.ANY:
            found += "a"
        elif code is codes.IN:
            found += _member(value)
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            found += _sample(value[2]) * max(value[0], 1)
        elif code is codes.SUBPATTERN:
            found += _sample(value[3])
        elif code is codes.ATOMIC_GROUP:
            found += _sample(value)
        elif code is codes.BRANCH:
            found += _sample(value[1][0])
    return found


def _member(items: Any) -> str:
    """A character of a set."""
    candidates = ["a", "1", " ", "-", "<", '"', "\n", ".", "é"]
    candidates += [chr(value) for code, value in items if code is codes.LITERAL]
    candidates += [chr(value[0]) for code, value in items if code is codes.RANGE]
    whole = re.compile(_set_of(items), re.ASCII)
    return next((each for each in candidates if whole.fullmatch(each)), "a")


def _set_of(items: Any) -> str:
    categories = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_WORD: r"\w",
        codes.CATEGORY_NOT_WORD: r"\W",
    }
    written = ""
    for code, value in items:
        if code is codes.NEGATE:
            written += "^"
        elif code is codes.LITERAL:
            written += f"\\U{value:08x}"
        elif code is codes.RANGE:
            written += f"\\U{value[0]:08x}-\\U{value[1]:08x}"
        elif code is codes.CATEGORY:
            written += categories[value]
    return f"[{written}]"


def slow(use: Use) -> list[str]:
    """Texts that the pattern takes too long for."""
    found = []
    for before, unit in dict.fromkeys(near_matches(use.pattern)):
        if not unit:
            continue
        made: list[Any] = [before, unit, "\x01"]
        if isinstance(use.pattern.pattern, bytes):
            made = [each.encode("latin-1", "replace") for each in made]
        run = _run(use)
        found += growing(run, [made[1]], before=made[0] or None, after=made[2], sizes=SIZES)
    return found


def _run(use: Use) -> Any:
    method = getattr(use.pattern, use.method)
    if use.method in {"sub", "subn"}:
        nothing = b"" if isinstance(use.pattern.pattern, bytes) else ""
        return lambda text: method(nothing, text)
    return lambda text: list(method(text)) if use.method == "finditer" else method(text)


def test_every_pattern_takes_linear_time_or_sees_texts_within_a_bound() -> None:
    uses = {(use.pattern, use.method): use for module in modules() for use in uses_in(module)}
    quadratic = {str(use): found for use in uses.values() if (found := slow(use))}

    assert len(uses) > 150
    assert sorted(set(quadratic) - set(BOUNDED)) == []
    assert set(BOUNDED) - {str(use) for use in uses.values()} == set()
