"""Measures what each test costs.

    python -m pytest -n 3 -p msgsvc_devkit.costs --costs build/costs.jsonl
    python -m msgsvc_devkit.costs build/costs.jsonl            # totals by folder, and the median API test

A line of JSON for each test: its id, and for setup, call and teardown the seconds by the clock and of the
processor, child processes that ended included.
"""

import argparse
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

PHASES = ("setup", "call", "teardown")

#: The folder whose median test the goal is about: requests to a whole service, in process.
API_TESTS = "tests/api/"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--costs", type=Path, metavar="FILE", help="append there what each test costs")
    group.addoption(
        "--sample", type=int, default=1, metavar="N", help="run every Nth test of each file only"
    )


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("costs"):
        path.parent.mkdir(exist_ok=True)
        config.pluginmanager.register(CostRecorder(path))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = items[:: config.getoption("sample")]


class CostRecorder:
    """Appends a line for each test that ran."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._phases: dict[str, tuple[float, float]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._measured("teardown"))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if not self._phases:
            # The controller of pytest-xdist is notified of tests that its workers ran.
            return
        record = {"test": nodeid, **self._phases}
        self._phases = {}
        # Unbuffered: the workers of pytest-xdist append whole lines to one file.
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(record).encode() + b"\n")

    def _measured(self, phase: str) -> Iterator[None]:
        clock, cpu = time.perf_counter(), _cpu_s()
        try:
            return (yield)
        finally:
            self._phases[phase] = (
                round(time.perf_counter() - clock, 4),
                round(_cpu_s() - cpu, 4),
            )


def _cpu_s() -> float:
    return sum(os.times()[:4])


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The records of a run."""
    return [json.loads(line) for line in lines]


def seconds(record: Mapping[str, Any]) -> tuple[float, float]:
    """Of the whole test: by the clock, of the processor."""
    spent = [record[phase] for phase in PHASES if phase in record]
    return sum(each[0] for each in spent), sum(each[1] for each in spent)


def folder_of(nodeid: str) -> str:
    """Two levels of the tree: `tests/api`, `plugins/areas/auth`."""
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[: 3 if parts[0] == "plugins" else 2])


def report(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of a table: folders by the processor time of their tests, then the median API test."""
    by_folder: dict[str, list[tuple[float, float]]] = defaultdict(list)
    api: list[float] = []
    for record in records:
        spent = seconds(record)
        by_folder[folder_of(record["test"])].append(spent)
        if record["test"].startswith(API_TESTS) and "postgresql" not in record["test"]:
            api.append(spent[1])
    yield f"{'folder':<28} {'tests':>6} {'clock s':>9} {'CPU s':>9} {'ms a test':>9}"
    rows = [
        (folder, len(each), sum(clock for clock, _ in each), sum(cpu for _, cpu in each))
        for folder, each in by_folder.items()
    ]
    rows.sort(key=lambda row: row[3])
    count, clock, cpu = (sum(column) for column in list(zip(*rows, strict=True))[1:])
    for folder, tests, clock_s, cpu_s in [*rows[::-1], ("all", count, clock, cpu)]:
        yield f"{folder:<28} {tests:>6} {clock_s:>9.1f} {cpu_s:>9.1f} {1000 * cpu_s / tests:>9.1f}"
    if api:
        yield f"CPU of the median test in {API_TESTS} on SQLite: {1000 * statistics.median(api):.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", type=Path)
    with parser.parse_args().recorded.open(encoding="utf-8") as file:
        print(*report(read(file)), sep="\n")


if __name__ == "__main__":
    main()
