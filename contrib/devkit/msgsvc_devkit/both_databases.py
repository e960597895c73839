"""Pytest plugin that selects the tests to run on PostgreSQL too, and records which SQL each test runs.

Most tests don't depend on the database, so the short form of a suite runs them only on SQLite.
`@pytest.mark.both_databases` on a function, a class or a module runs its tests on PostgreSQL too; on a class
that inherits its tests, `@pytest.mark.both_databases("test_one", "test_two")` selects those. The ini setting
`both_databases_folders` lists folders whose tests all run on both. `--all-databases` runs everything on both.

`--record-statements FILE` appends a line of JSON for each test: its name, the database, its duration in
seconds, and every SQL statement that the product executed, with the function that contains it.
`--check-statements` fails a run in which such a function was reached on SQLite but not on PostgreSQL, and
names the cheapest test to mark for it.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from msgsvc_core.db.tx import Tx
from msgsvc_core.db.write_batch import WriteBatch

MARKER = "both_databases"
FOLDERS = "both_databases_folders"

#: Functions never reached on PostgreSQL: what looks at the free pages of the file.
ON_SQLITE_ALONE = frozenset({"msgsvc_core.jobs.steps:repeat"})

_SITES = "statement_sites"

#: Statements that differ only in names, numbers and count of their parameters count as one.
_PARAMETER = re.compile(r":(\w+?)_?\d+\b")
_REPEATED = re.compile(r"(\(?:\w+\)?)(?:, ?\1)+")
_SPACE = re.compile(r"\s+")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("databases")
    group.addoption(
        "--all-databases", action="store_true", help="run every test on SQLite and on PostgreSQL"
    )
    group.addoption(
        "--record-statements", type=Path, metavar="FILE", help="write there which SQL tests reach"
    )
    group.addoption(
        "--check-statements", action="store_true", help="fail where SQL was run on SQLite alone"
    )
    parser.addini(FOLDERS, "folders whose tests all run on both databases", type="paths")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(*names): runs on both databases in the short form too"
    )
    path = config.getoption("record_statements")
    if path or config.getoption("check_statements"):
        config.pluginmanager.register(StatementRecorder(config, path))


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    result = yield
    calls = metafunc._calls
    on_sqlite = {_twin_name(call) for call in calls if _database(call.params) == "sqlite"}
    if on_sqlite and not _runs_on_both(metafunc):
        # Making tests and deselecting them afterwards took a tenth of the collection.
        metafunc._calls = [
            call
            for call in calls
            if _database(call.params) != "postgresql" or _twin_name(call) not in on_sqlite
        ]
    return result


def _runs_on_both(metafunc: pytest.Metafunc) -> bool:
    config, test = metafunc.config, metafunc.definition
    return (
        config.getoption("all_databases")
        or any(not mark.args or test.name in mark.args for mark in test.iter_markers(MARKER))
        or any(test.path.is_relative_to(folder) for folder in config.getini(FOLDERS))
    )


def function_of(nodeid: str) -> str:
    """The test function's name, without the case."""
    return nodeid.partition("[")[0]


def database_of(item: pytest.Item) -> str | None:
    """`sqlite` or `postgresql`, for a test that the fixture `backend` runs on each."""
    return _database(getattr(getattr(item, "callspec", None), "params", {}))


def _database(params: Mapping[str, Any]) -> str | None:
    found = params.get("backend")
    return found if isinstance(found, str) else None


def _twin_name(call: Any) -> tuple[str, ...]:
    """What a case has in common with the same case on the other database."""
    return _parts_without(call.id, {"sqlite", "postgresql"})


def case_without(item: pytest.Item, names: Set[str]) -> tuple[str, ...]:
    """The parts of a case's parameters without these, which identifies the case across databases."""
    return _parts_without(item.nodeid.partition("[")[2].removesuffix("]"), names)


def _parts_without(case: str, names: Set[str]) -> tuple[str, ...]:
    return tuple(part for part in case.split("-") if part not in names)


class StatementRecorder:
    """Records for each test which statements are executed, and by which function of the product."""

    def __init__(self, config: pytest.Config, path: Path | None) -> None:
        self._config = config
        self._path = path
        self._reached: set[tuple[str, str]] = set()
        #: The functions reached on each database in all processes of the run, each with the CPU seconds and
        #: the name of the cheapest test that reaches it.
        self._sites: dict[str, dict[str, tuple[float, str]]] = {"sqlite": {}, "postgresql": {}}
        self._patches = pytest.MonkeyPatch()

    def pytest_sessionstart(self) -> None:
        for kind, name in (
            (Tx, "fetch_all"),
            (Tx, "execute"),
            (Tx, "execute_deferred"),
            (Tx, "insert_many"),
            (Tx, "insert_deferred"),
            (WriteBatch, "insert"),
            (WriteBatch, "require_new"),
        ):
            self._patches.setattr(kind, name, self._recording(getattr(kind, name)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Merges the functions that a worker of pytest-xdist has reached."""
        for database, sites in getattr(node, "workeroutput", {}).get(_SITES, {}).items():
            self._add(database, {site: (cpu_s, test) for site, (cpu_s, test) in sites.items()})

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._patches.undo()
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            output[_SITES] = self._sites
        elif self._on_sqlite_alone() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if missing := self._on_sqlite_alone():
            terminalreporter.section("SQL that no test ran on PostgreSQL")
            terminalreporter.line(f"Mark a test that reaches it `{MARKER}`; the cheapest is named.")
            for site in missing:
                terminalreporter.line(f"  {site}: {self._sites['sqlite'][site][1]}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._reached.clear()
        started_s = time.process_time()
        result = yield
        database, test = database_of(item), function_of(item.nodeid)
        cpu_s = round(time.process_time() - started_s, 3)
        if database is not None:
            self._add(database, {site: (cpu_s, test) for site, _ in self._reached})
        if self._path is not None:
            record = {
                "test": test,
                "database": database,
                "cpu_s": cpu_s,
                "statements": sorted(self._reached),
            }
            # Unbuffered: the workers of pytest-xdist append whole lines to one file.
            with self._path.open("ab", buffering=0) as file:
                file.write(json.dumps(record).encode() + b"\n")
        return result

    def _add(self, database: str, sites: Mapping[str, tuple[float, str]]) -> None:
        known = self._sites[database]
        for site, test in sites.items():
            known[site] = min(test, known.get(site, test))

    def _on_sqlite_alone(self) -> list[str]:
        """Functions reached on SQLite only. None in a run without any PostgreSQL."""
        on_postgresql = self._sites["postgresql"]
        if not on_postgresql or not self._config.getoption("check_statements"):
            return []
        return sorted(self._sites["sqlite"].keys() - on_postgresql.keys() - ON_SQLITE_ALONE)

    def _recording(self, method: Any) -> Any:
        def recorded(target: Any, subject: str, *arguments: Any, **named: Any) -> Any:
            if (site := _site(sys._getframe(1))) is not None:
                self._reached.add((site, _plain(subject)))
            return method(target, subject, *arguments, **named)

        return recorded


def _site(frame: FrameType | None) -> str | None:
    """The innermost function of the product outside of `msgsvc_core.db`."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("msgsvc_") and not module.startswith(
            ("msgsvc_core.db.", "msgsvc_devkit")
        ):
            return f"{module}:{frame.f_code.co_qualname}"
        if not module.startswith(("msgsvc_core.db.", __name__, "contextlib")):
            return None
        frame = frame.f_back
    return None


@lru_cache(maxsize=10_000)
def _plain(sql: str) -> str:
    return _REPEATED.sub(r"\1", _PARAMETER.sub(r":\1", _SPACE.sub(" ", sql.strip())))
