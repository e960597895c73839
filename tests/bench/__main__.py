"""`make bench`: every figure beside a reference of the same run, for only ratios travel.

Each server has a process of its own; the load comes from another. Figures that miss their target are
shown so, and change nothing about the exit code: a busy machine is no error.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from msgsvc_core.config.sections import LogSettings
from msgsvc_core.telemetry.logs import configure_logs
from tests.bench import report
from tests.bench.bots import bots
from tests.bench.broadcast import broadcast, broadcast_over_tls
from tests.bench.by_route import by_route
from tests.bench.dashboard import dashboard
from tests.bench.databases import KINDS, Databases
from tests.bench.delivery import delivery
from tests.bench.jobs import jobs
from tests.bench.lane import lane
from tests.bench.lists import listing
from tests.bench.load import generator_name
from tests.bench.memory import memory
from tests.bench.paced import paced
from tests.bench.pages import paging
from tests.bench.polls import polls
from tests.bench.postgres import postgres
from tests.bench.pressing import pressing
from tests.bench.run import Options, Run
from tests.bench.scale import (
    partitions,
    processes,
    projects,
    retention,
    rows,
    sign_in_pages,
    slow_webhooks,
)
from tests.bench.sending import sending
from tests.bench.status import status
from tests.bench.tokens import tokens
from tests.bench.verifying import verifying
from tests.bench.webhooks import webhooks

#: What can be measured, by the names that `--only` takes.
MEASUREMENTS: Mapping[str, Callable[[Run], list[report.Finding]]] = {
    "send": sending,
    "status": status,
    "verify": verifying,
    "token": tokens,
    "yes": pressing,
    "deliver": delivery,
    "lane": lane,
    "routes": by_route,
    "broadcast": broadcast,
    "tls": broadcast_over_tls,
    "paced": paced,
    "postgres": postgres,
    "webhooks": webhooks,
    "lists": listing,
    "pages": paging,
    "dashboard": dashboard,
    "jobs": jobs,
    "polls": polls,
    "bots": bots,
    "memory": memory,
    "scale-projects": projects,
    "scale-webhooks": slow_webhooks,
    "scale-rows": rows,
    "scale-retention": retention,
    "scale-partitions": partitions,
    "scale-pages": sign_in_pages,
    "scale-processes": processes,
}

#: Several measurements by one name: those whose names begin so.
GROUPS = ("scale",)

#: Characters of a line of the table, where it goes to a file.
WIDTH = 110


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table, and writes the findings."""
    options = _read(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    found = _measure(options, console)
    title = (
        f"{options.rounds} rounds of {options.seconds} s, {options.connections} connections, "
        f"load by {generator_name()}"
    )
    console.print(report.table(found, title))
    report.write(options.out, found)
    missed = sum(finding.met is False for finding in found)
    console.print(f"{missed or 'no'} target{'s' * (missed != 1)} missed; written to {options.out}")


def _read(arguments: Sequence[str] | None) -> Options:
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=int, help="of a round")
    parser.add_argument("--rounds", type=int, help="for each server")
    parser.add_argument("--warm-up", type=int, help="seconds before, 0 for none")
    parser.add_argument("--connections", type=int)
    parser.add_argument("--jobs", type=int, help="that do nothing")
    parser.add_argument("--polls", type=int, help="that are held")
    parser.add_argument("--bots", type=int, help="that are polled")
    parser.add_argument("--projects", type=int, help="of one process, each with a bot")
    parser.add_argument("--slow-webhooks", type=int, help="of which one is healthy")
    parser.add_argument("--pages", type=int, help="of sign-ins that wait")
    parser.add_argument("--presses", type=int, help="of Yes, with a poll that waits for each")
    parser.add_argument("--sends", type=int, help="over which memory is watched")
    parser.add_argument(
        "--messages", type=int, help="that wait in a lane, and deliveries to webhooks"
    )
    parser.add_argument("--audience", type=int, help="of the largest broadcast")
    parser.add_argument(
        "--rows", type=int, help="messages of the project whose lists are asked for"
    )
    parser.add_argument("--window", type=int, help="seconds beside a broadcast with a pace")
    parser.add_argument(
        "--peers",
        action="store_true",
        help="also send broadcasts by aiogram and python-telegram-bot, installed for that",
    )
    parser.add_argument(
        "--statements",
        action="store_true",
        help="also print what `postgres` counted of each statement",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*MEASUREMENTS, *GROUPS],
        metavar="NAME",
        help=", ".join([*MEASUREMENTS, *(f"{group} for all of it" for group in GROUPS)]),
    )
    parser.add_argument("--databases", nargs="+", choices=KINDS, help="by default all that answer")
    parser.add_argument("--out", type=Path, help="file for the findings")
    parser.set_defaults(**{field.name: getattr(default, field.name) for field in fields(Options)})
    return Options(**vars(parser.parse_args(arguments)))


def _measure(options: Options, console: Console) -> list[report.Finding]:
    # Beside the findings, for the system's folder for temporary files may lie in memory, where a
    # commit waits for no disk.
    options.out.parent.mkdir(parents=True, exist_ok=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    found: list[report.Finding] = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=options.out.parent.resolve()) as folder,
        Progress(*columns, console=console, transient=True) as progress,
    ):
        databases = Databases(Path(folder), options.databases)
        for kind in databases.missing:
            console.print(f"{kind} is not measured: it does not answer")
        if not options.peers and (not options.only or {"broadcast", "tls"} & {*options.only}):
            console.print("broadcasts by aiogram and python-telegram-bot are left out: see --peers")
        run = Run(options, Path(folder), databases, progress)
        try:
            for name, measurement in MEASUREMENTS.items():
                if not options.only or {name, name.partition("-")[0]} & {*options.only}:
                    found += measurement(run)
        finally:
            databases.drop_all()
    return found


if __name__ == "__main__":
    # Ended from outside, it still ends the servers, which may be stopped, and drops the databases.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    # Of the services that are opened here to be set up; those that are measured write files.
    configure_logs(LogSettings(level="warning"))
    main()
