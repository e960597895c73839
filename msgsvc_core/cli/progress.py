"""A progress bar on standard error, for commands that take a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

#: Called with what is being done, how much of it is done, and all of it.
OnProgress = Callable[[str, int, int], None]


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[OnProgress]:
    """Shows it in a terminal alone, and not if `quiet`."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        bar = progress.add_task("")

        def on_progress(what: str, done: int, total: int) -> None:
            progress.update(bar, description=what, completed=done, total=total)

        yield on_progress
