"""What fault tests share: how often they do it, and the figures that they print at the end.

A fault test does something terrible `rounds` times and counts what is left:

    def test_nothing_is_lost_over_many_kills(rounds: Rounds, figure: Figure) -> None:
        kills = rounds(short=5, long=50)
        ...
        figure("kill -9 of the embedded service", f"{kills} kills, {sent} accepted, {lost} lost",
               kills=kills, accepted=sent, lost=lost)
        assert not lost

`make test` does the short form, `make faults` the long one (`pytest tests/faults --long`). In the
short form a promise that holds for several pairs of a database and a runner is shown on one of them,
with all its other cases; `--all-databases` shows each on all.

Other tests run beside the short form. What it bounds in seconds of the wall is what a machine ten times
slower still keeps and a broken promise does not: who waits for what never comes is as well seen after
a minute. The seconds that are promised are for the long form, alone on its machine.

The figures stand in one table at the end of either, also without `-s`, and with `--figures FILE` as
JSON in a file. `figure` comes before the asserts, so that a broken promise shows its figure too.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar
from zlib import crc32

import pytest

from msgsvc_devkit.both_databases import case_without, function_of

#: What a figure is called among the properties of its test's report.
_FIGURE = "figure"


T = TypeVar("T")


class Rounds(Protocol):
    """How often a test does its fault, and other figures of its two forms."""

    def __call__(self, *, short: T, long: T) -> T:
        """`long` under `--long`, otherwise `short`."""
        ...


class Figure(Protocol):
    """Keeps a test's figure for the table at the end."""

    def __call__(self, fault: str, text: str, /, **numbers: float) -> None:
        """One line of the table; `numbers` go into the file beside it, for machines."""
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--long", action="store_true", help="do each fault as often as promised")
    group.addoption("--figures", type=Path, metavar="FILE", help="write the faults' figures there")


#: What names, in a test's case, on what the fault is done, and not what is done.
_PAIR = {"sqlite", "postgresql", "embedded", "redis", "rabbitmq", "dramatiq"}

_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long form takes the time it takes; the short one fails where a test hangs, and has one pair of a
    database and a runner for each promise. In it, faults and other tests take turns."""
    here = f"{_FOLDER}{os.sep}"
    faults = [item for item in items if str(item.path).startswith(here)]
    if config.getoption("long", default=False):
        for item in faults:
            item.add_marker(pytest.mark.timeout(0))
    elif not config.getoption("all_databases", default=False):
        chosen = set(_one_pair_each(faults))
        config.hook.pytest_deselected(items=[item for item in faults if item not in chosen])
        faults = [item for item in faults if item in chosen]
    others = [item for item in items if not str(item.path).startswith(here)]
    items[:] = _taking_turns(others, faults)


def _one_pair_each(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the cases that differ in the pair alone, one: which one is decided by the function's name, so that
    all pairs have their share of the promises."""
    promises: dict[tuple[str, tuple[str, ...]], list[pytest.Item]] = defaultdict(list)
    for item in items:
        promises[function_of(item.nodeid), case_without(item, _PAIR)].append(item)
    for (function, _), cases in promises.items():
        yield cases[crc32(function.encode()) % len(cases)]


def _taking_turns(others: list[pytest.Item], faults: list[pytest.Item]) -> list[pytest.Item]:
    """Faults wait for most of their time: spread among tests that compute, they cost little. They go between
    modules, whose fixtures would otherwise be made anew after each."""
    ends = [
        at
        for at, (item, following) in enumerate(pairwise(others), 1)
        # Comparing the paths of all tests would take half a second.
        if item.nodeid.partition("::")[0] != following.nodeid.partition("::")[0]
    ]
    if not faults or not ends:
        return [*others, *faults]
    after = defaultdict(list)
    for nth, fault in enumerate(faults):
        after[ends[nth * len(ends) // len(faults)]].append(fault)
    return [one for at, item in enumerate(others, 1) for one in (item, *after[at])]


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Rounds:
    """`rounds(short=5, long=50)`: how often, by the form that is run."""
    # Not known where this file is found only while tests are collected, as by `make test`.
    is_long = request.config.getoption("long", default=False)

    def choose(*, short: T, long: T) -> T:
        return long if is_long else short

    return choose


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """`figure("kill -9 of Redis", "20 kills, 0 lost", kills=20, lost=0)`."""

    def keep(fault: str, text: str, /, **numbers: float) -> None:
        one = {"fault": fault, "figure": text, "numbers": numbers, "test": request.node.nodeid}
        # With the test's report it comes to the end of the run from whichever process ran it.
        request.node.user_properties.append((_FIGURE, one))

    return keep


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    figures = [
        {**one, "held": outcome == "passed"}
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
        for name, one in report.user_properties
        if name == _FIGURE
    ]
    if not figures:
        return
    figures.sort(key=lambda one: one["test"])
    terminalreporter.section("faults")
    widest = max(len(one["fault"]) for one in figures)
    for one in figures:
        mark = "" if one["held"] else "  BROKEN"
        terminalreporter.line(f"{one['fault']:{widest}}  {one['figure']}{mark}")
    if path := config.getoption("figures", default=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=2) + "\n")
