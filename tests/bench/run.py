"""One run of the bench: how long and how hard, where its files are, and how far it has come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress, TaskID

from tests.bench.databases import KINDS, Databases


class BenchError(Exception):
    """Something under measurement did not do its work, so its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long and how hard. Seconds are whole ones: `wrk` takes no others."""

    seconds: int = 2
    rounds: int = 3
    warm_up: int = 1
    connections: int = 64
    jobs: int = 20_000
    polls: int = 5000
    bots: int = 1000
    projects: int = 1000
    slow_webhooks: int = 300
    pages: int = 2000
    presses: int = 200
    sends: int = 30_000
    messages: int = 10_000
    audience: int = 10_000
    rows: int = 100_000
    window: int = 10
    peers: bool = False
    statements: bool = False
    only: Sequence[str] = ()
    databases: Sequence[str] = KINDS
    out: Path = Path("build/bench.json")


@dataclass(slots=True)
class Run:
    """What every measurement is given."""

    options: Options
    folder: Path
    databases: Databases
    progress: Progress
    _bar: TaskID = field(init=False)
    _places: int = 0

    def __post_init__(self) -> None:
        self._bar = self.progress.add_task("", total=None)

    def new_folder(self) -> Path:
        self._places += 1
        folder = self.folder / str(self._places)
        folder.mkdir()
        return folder

    def tell(self, doing: str, *, total: float | None = None) -> None:
        """Names what is being done; `total` begins the bar anew, in a unit of the caller's."""
        if total is not None:
            self.progress.reset(self._bar, total=total)
        self.progress.update(self._bar, description=doing)

    @property
    def advance(self) -> Callable[[float], None]:
        return lambda by: self.progress.advance(self._bar, by)
