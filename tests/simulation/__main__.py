"""`make simulate`: prints what a simulation showed. Fails, with the seed, if an invariant does not hold."""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.simulation import bulk, report, stepped
from tests.simulation.invariants import Violated

#: Characters of a line of the tables, where they go to a file.
WIDTH = 110

#: A folder in memory, where there is one.
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of a random name is made in it


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="repeats a run (default: 1)")
    parser.add_argument(
        "--messages", type=int, default=100_000_000, help="of both parts (default: 100,000,000)"
    )
    parser.add_argument("--bots", type=int, default=40)
    parser.add_argument(
        "--tenants", type=int, default=4, help="on every bot, in the part stepped singly"
    )
    parser.add_argument(
        "--singly",
        type=int,
        default=10_000,
        help="messages of the part that goes through whole services (default: 10,000)",
    )
    parser.add_argument(
        "--singly-bots", type=int, default=10, help="bots of that part, at most (default: 10)"
    )
    parser.add_argument(
        "--events", type=int, default=8000, help="questions and faults of the bulk (default: 8,000)"
    )
    parser.add_argument("--no-skip", action="store_true", help="step the bulk singly too")
    parser.add_argument("--by-bot", action="store_true", help="the use of each bot's pace as well")
    return parser.parse_args()


def main() -> int:
    given = options()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    few = min(given.messages, given.singly)
    few_bots = min(given.bots, given.singly_bots)
    singly: stepped.Figures | None = None
    many: bulk.Figures | None = None
    try:
        with Progress(*columns, console=console) as progress:
            if few:
                task = progress.add_task("singly", total=few)
                singly = stepped.run(
                    stepped.Options(given.seed, few, few_bots, given.tenants),
                    progress=lambda done: progress.update(task, completed=done),
                    folder=MEMORY if MEMORY.is_dir() else None,
                )
            if given.messages > few:
                of_bulk = progress.add_task("in bulk", total=given.messages - few)
                many = bulk.run(
                    bulk.Options(
                        given.seed,
                        given.messages - few,
                        given.bots,
                        given.events,
                        skips=not given.no_skip,
                    ),
                    progress=lambda done: progress.update(of_bulk, completed=done),
                )
    except Violated as violated:
        console.print(f"[bold red]violated[/] {violated}", highlight=False)
        return 1
    console.print(report.table(singly, many))
    if given.by_bot:
        console.print(report.by_bot(singly, many))
    return 0


if __name__ == "__main__":
    sys.exit(main())
