"""`POST /v1/send` against a bare echo, with a fresh Idempotency-Key, and against a usual service."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from tests.bench.load import Request
from tests.bench.peers import orm
from tests.bench.report import NONE, Bound, Finding
from tests.bench.rounds import Figures, Target, measure
from tests.bench.run import BenchError, Run
from tests.bench.servers import Setup, started, started_echo, started_service

#: Of the echo's requests a second, and times its p99.
LEAST, LEAST_WITH_KEYS, MOST_P99 = Bound(least=0.45), Bound(least=0.35), Bound(most=6)

#: Times the requests a second of the same call written the usual way.
LEAST_OF_PEER = Bound(least=8)


def sending(run: Run) -> list[Finding]:
    """The service as it is by default, which delivers meanwhile to a messenger that takes everything
    at once; and with `jobs.runner = "none"`, which leaves delivery to other processes.
    """
    with ExitStack() as stack:
        run.tell("starting the servers")
        echo = stack.enter_context(started_echo(run))
        targets: list[Target] = []
        counts: dict[str, Callable[[], int]] = {}
        for kind in run.databases.kinds:
            taking_in = stack.enter_context(started_service(run, Setup(kind, runner="none")))
            delivering = stack.enter_context(started_service(run, Setup(kind)))
            peer = stack.enter_context(started(run, orm, run.databases.new(kind)))
            targets += [
                Target(f"{kind}, taken in only", taking_in.server, taking_in.sends),
                Target(f"{kind}, delivering meanwhile", delivering.server, delivering.sends),
                Target(f"{kind}, with keys", taking_in.server, taking_in.with_fresh_keys()),
                Target(f"{kind}, usual way", peer, orm.request(peer.url, run.new_folder())),
            ]
            counts[f"{kind}, taken in only"] = taking_in.count_messages
            counts[f"{kind}, delivering meanwhile"] = delivering.count_messages
        like = targets[0].request
        request = Request(echo.url + "/v1/send", like.lines, like.api_key)
        figures = measure(run, "send", [Target("echo", echo, request), *targets])
        for name, count in counts.items():
            _check_all_written(name, count(), figures)
    return [found for kind in run.databases.kinds for found in _findings(kind, figures)]


def _findings(kind: str, figures: Mapping[str, Figures]) -> list[Finding]:
    echo, peer = figures["echo"], figures[f"{kind}, usual way"]
    found: list[Finding] = []
    for how, least, most_p99 in (
        ("taken in only", LEAST, MOST_P99),
        ("delivering meanwhile", LEAST, MOST_P99),
        ("with keys", LEAST_WITH_KEYS, NONE),
    ):
        own = figures[f"{kind}, {how}"]
        name = f"send {kind}, {how}"
        found += [
            Finding(f"{name}: per s / echo", own.per_s, echo.per_s, least),
            Finding(f"{name}: p99 ms / echo", own.p99_ms, echo.p99_ms, most_p99),
            Finding(f"{name}: CPU µs / echo", own.cpu_us, echo.cpu_us),
        ]
    own = figures[f"{kind}, taken in only"]
    name = f"send {kind}: per s / FastAPI + ORM"
    return [*found, Finding(name, own.per_s, peer.per_s, LEAST_OF_PEER)]


def _check_all_written(name: str, written: int, figures: Mapping[str, Figures]) -> None:
    """What was answered with 202 is in the database."""
    accepted = figures[name].requests
    if written < accepted:
        raise BenchError(f"{name}: {accepted} accepted, {written} written")
