"""Entry points of the installed distributions, read once per process."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoints, entry_points


@cache
def installed(group: str) -> EntryPoints:
    """The entry points of a group. One installed later is found by the next process."""
    return _selection()(group=group)


@cache
def _selection() -> Callable[..., EntryPoints]:
    # Reads a file of every installed distribution. It returns `EntryPoints` from Python 3.12 on; both have
    # `select`.
    return entry_points().select
