"""`make bench`: how much of a bare Starlette echo's throughput is left in `POST /v1/send`.

The echo and the service take the same requests in the same run, in rounds that alternate, each in a
process of its own under uvicorn with uvloop and httptools. Only ratios travel between machines.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tests.bench import report
from tests.bench.load import Load, generator_name, put_load
from tests.bench.servers import Target, all_targets


class BenchError(Exception):
    """A server answered with something that is no success, so its figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Options:
    """How long and how hard. Seconds are whole ones: `wrk` takes no others."""

    seconds: int = 2
    rounds: int = 3
    warm_up: int = 1
    connections: int = 64
    out: Path = Path("build/bench.json")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table, and writes the findings."""
    options = _read(arguments)
    console = Console()
    with tempfile.TemporaryDirectory(prefix="msgsvc-bench-") as folder:
        measured = _measure(Path(folder), options, console)
    figures = {name: report.Figures.of(rounds) for name, rounds in measured.items()}
    title = (
        f"{options.rounds} rounds of {options.seconds} s, {options.connections} connections, "
        f"load by {generator_name()}"
    )
    console.print(report.table(figures, "echo", title))
    report.write(options.out, report.findings(figures, "echo"))
    console.print(f"written to {options.out}")


def _read(arguments: Sequence[str] | None) -> Options:
    default = Options()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=default.seconds, help="of a round")
    parser.add_argument("--rounds", type=int, default=default.rounds, help="for each server")
    parser.add_argument("--warm-up", type=int, default=default.warm_up, help="seconds before")
    parser.add_argument("--connections", type=int, default=default.connections)
    parser.add_argument("--out", type=Path, default=default.out, help="file for the findings")
    return Options(**vars(parser.parse_args(arguments)))


def _measure(folder: Path, options: Options, console: Console) -> dict[str, list[Load]]:
    """The rounds of every server by its name."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting the servers", total=None)
        with all_targets(folder, console.print) as targets:
            one_s = options.warm_up + options.rounds * options.seconds
            progress.update(bar, total=len(targets) * one_s)
            measured: dict[str, list[Load]] = defaultdict(list)
            for number in range(options.rounds + 1):
                for target in targets:
                    name = f"round {number}" if number else "warming up"
                    progress.update(bar, description=f"{name}: {target.name}")
                    load = _run(
                        target,
                        options.seconds if number else options.warm_up,
                        options.connections,
                        lambda seconds: progress.advance(bar, seconds),
                    )
                    if number:
                        measured[target.name].append(load)
            for target in targets:
                _check_all_written(target, measured[target.name])
    return measured


def _run(target: Target, seconds: int, connections: int, tick: Callable[[float], None]) -> Load:
    """One server under load, while the others stand still."""
    target.go_on()
    _check_answer(target)
    load = put_load(target.request, connections=connections, seconds=seconds, tick=tick)
    target.pause()
    if load.failed:
        raise BenchError(f"{target.name}: {load.failed} of {load.requests} requests failed")
    return load


def _check_answer(target: Target) -> None:
    """The generators tell success from failure; what success is, is looked at here."""
    request = target.request
    with request.bodies.open("rb") as bodies:
        body = next(bodies)
    headers = {
        "Authorization": f"Bearer {request.api_key}",
        "Content-Type": "application/json",
    }
    answer = httpx2.post(request.url, content=body, headers=headers)
    if answer.status_code != 202:
        raise BenchError(f"{target.name}: {answer.status_code} {answer.text}")


def _check_all_written(target: Target, rounds: Sequence[Load]) -> None:
    """What was answered with 202 is in the database."""
    accepted = sum(load.requests for load in rounds)
    target.go_on()
    if target.count is not None and (written := target.count()) < accepted:
        raise BenchError(f"{target.name}: {accepted} accepted, {written} written")


if __name__ == "__main__":
    main()
