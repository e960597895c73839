"""Rounds of load that alternate between servers, so that what disturbs the machine disturbs all."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import httpx2

from tests.bench.load import Load, Request, put_load
from tests.bench.run import BenchError, Run
from tests.bench.servers import cpu_s, go_on, pause, wake
from tests.process import Server


@dataclass(frozen=True, slots=True)
class Target:
    """A request, and the server that is to answer it with `status`.

    `fresh` gives each round a request of its own, whose lines work once.
    """

    name: str
    server: Server
    request: Request | None = None
    status: int = 202
    fresh: Callable[[], Request] | None = None

    def next_request(self) -> Request:
        request = self.request if self.fresh is None else self.fresh()
        assert request is not None
        return request


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one; `cpu_us` is what a request cost the server, None where nobody tells."""

    load: Load
    cpu_us: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of a target's rounds, and how many requests were answered in all of them."""

    per_s: float
    p99_ms: float
    cpu_us: float | None
    requests: int

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> "Figures":
        costs = [made.cpu_us for made in rounds if made.cpu_us is not None]
        return cls(
            per_s=median(made.load.per_s for made in rounds),
            p99_ms=median(made.load.p99_ms for made in rounds),
            cpu_us=median(costs) if costs else None,
            requests=sum(made.load.requests for made in rounds),
        )


def measure(run: Run, title: str, targets: Sequence[Target]) -> Mapping[str, Figures]:
    """Figures by the targets' names. Only one server runs at a time; all run when it is over."""
    options = run.options
    one_s = options.warm_up + options.rounds * options.seconds
    run.tell(title, total=len(targets) * one_s)
    for target in targets:
        pause(target.server)
    measured: dict[str, list[Round]] = defaultdict(list)
    for number in range(0 if options.warm_up else 1, options.rounds + 1):
        for target in targets:
            name = f"round {number}" if number else "warming up"
            run.tell(f"{title}, {name}: {target.name}")
            seconds = options.seconds if number else options.warm_up
            wake(target.server)
            before_s = cpu_s(target.server)
            load = one_round(run, target, seconds, run.advance)
            after_s = cpu_s(target.server)
            pause(target.server)
            if number:
                told = before_s is not None and after_s is not None
                cpu_us = (after_s - before_s) * 1e6 / load.requests if told else None
                measured[target.name].append(Round(load, cpu_us))
    for target in targets:
        go_on(target.server)
    return {name: Figures.of(rounds) for name, rounds in measured.items()}


def one_round(run: Run, target: Target, seconds: int, tick: Callable[[float], None]) -> Load:
    """One round against a running server, `tick` as for `put_load`.

    Raises `BenchError` if a request failed.
    """
    request = target.next_request()
    _check_answer(target, request)
    load = put_load(request, connections=run.options.connections, seconds=seconds, tick=tick)
    if load.failed:
        raise BenchError(f"{target.name}: {load.failed} of {load.requests} requests failed")
    return load


def _check_answer(target: Target, request: Request) -> None:
    """The generators tell success from failure; what success is, is looked at here."""
    line, _, others = request.lines.read_text().partition("\n")
    if target.fresh is not None:
        request.lines.write_text(others)
    headers = {"Authorization": request.authorization}
    if request.method == "GET":
        answer = httpx2.get(httpx2.URL(request.url).join(line), headers=headers)
    else:
        headers["Content-Type"] = request.media_type
        answer = httpx2.post(request.url, content=line, headers=headers)
    if answer.status_code != target.status:
        raise BenchError(f"{target.name}: {answer.status_code} {answer.text}")
