"""Pytest plugin for a suite that people run: what it leaves out, and says so, and how long it waits.

A test marked `slow`, or below one of the ini setting's `slow_folders`, drives servers that take long to
start, or watches something for long. It is left out unless `--slow=all` or `--slow=only` is given, or its
file or folder is named on the command line. The ini setting `timeout` is multiplied by the slowness of the
machine.

Tests below one of the ini setting's `first_folders` run first: those that take longest and mostly wait for
others, such as a browser, which would keep a run waiting for them at its end.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from msgsvc_devkit.deadlines import patient, slowness
from msgsvc_devkit.machine import (
    PARTS,
    REQUIRE_VARIABLE,
    SLOW_PARTS,
    has,
    is_required,
)

SLOW = "slow"
FOLDERS = "slow_folders"
FIRST = "first_folders"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("suite").addoption(
        "--slow",
        choices=("no", "all", "only"),
        help="whether to run tests marked slow (default: no, except for files that are named)",
    )
    parser.addini(FOLDERS, "folders whose tests are slow", type="paths")
    parser.addini(FIRST, "folders whose tests run first", type="paths")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{SLOW}: takes long; run by --slow=all and --slow=only")
    parts = [part.name for part in (*PARTS, *SLOW_PARTS)]
    if missing := [name for name in parts if is_required(name) and not has(name)]:
        raise pytest.UsageError(
            f"{REQUIRE_VARIABLE} asks for what is missing: {', '.join(missing)}"
        )
    if timeout := config.getini("timeout"):
        config.option.timeout = config.option.timeout or patient(float(timeout))


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    # Written here and not in a header, which -q leaves out.
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        for line in opening_lines(session.config):
            terminal.write_line(line)


def opening_lines(config: pytest.Config) -> Iterator[str]:
    """What this session leaves out, and how to get it."""
    which = _chosen(config)
    parts = {"no": PARTS, "all": (*PARTS, *SLOW_PARTS), "only": (*PARTS, *SLOW_PARTS)}[which]
    for part in parts:
        if not has(part.name):
            yield f"left out: tests with {part.name}; to run them: {part.how}"
    if which == "no":
        yield "left out: slow tests; to run them: make test-all"
    if slowness() > 1:
        yield f"this machine is slow, so deadlines are {slowness():.1f} times as long"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Its modules need not be imported, either.
    is_left_out = _chosen(config) == "no" and collection_path in config.getini(FOLDERS)
    return True if is_left_out else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    which, folders = _chosen(config), config.getini(FOLDERS)
    first = tuple(config.getini(FIRST))
    items.sort(key=lambda item: not _is_below(item.path.parent, first))
    if which == "all":
        return
    left_out = [item for item in items if is_slow(item, folders) is not (which == "only")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(left_out)
        items[:] = [item for item in items if item not in dropped]


def is_slow(item: pytest.Item, folders: Sequence[Path]) -> bool:
    """Whether the test is marked `slow` or below one of the folders."""
    return item.get_closest_marker(SLOW) is not None or _is_below(item.path.parent, tuple(folders))


@cache
def _is_below(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _chosen(config: pytest.Config) -> str:
    which: str | None = config.getoption("slow")
    if which is not None:
        return which
    # A test that somebody names is one that they want to run.
    return "all" if config.args_source is pytest.Config.ArgsSource.ARGS else "no"
