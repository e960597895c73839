"""From a request to the recorded outcome: accept, deliver over HTTP, write down what came of it.

The service does all of it in one process. A round is a burst of load and what it takes until no
message is left; so what could be accepted faster than it is delivered counts for nothing. The load's
generator and the fake platform have processes of their own, and the machine's other cores.
"""

import time
from contextlib import ExitStack
from statistics import median

from msgsvc_core.service import Service
from tests.bench import fake_platform
from tests.bench.load import Request
from tests.bench.queues import until_empty
from tests.bench.report import Bound, Finding
from tests.bench.rounds import Target, one_round
from tests.bench.run import BenchError, Run
from tests.bench.servers import (
    ServiceUnderTest,
    Setup,
    go_on,
    pause,
    started,
    started_echo,
    started_service,
    wake,
)

LEAST = {"sqlite": Bound(least=0.26), "postgresql": Bound(least=0.24)}

#: Seconds after which a backlog that is still there is called an error.
MOST_S = 600.0

#: What a round's messages came to; earlier rounds have ended before `since`.
_ROUND = """
SELECT COUNT(*) AS messages, SUM(CASE WHEN status = 'sent' THEN 1 ELSE 0 END) AS sent,
       MIN(created_at_ms) AS first_ms, MAX(finished_at_ms) AS last_ms
FROM core_messages WHERE created_at_ms >= :since
"""


def delivery(run: Run) -> list[Finding]:
    """Messages a second from the first one's acceptance to the last one's outcome."""
    options = run.options
    with ExitStack() as stack:
        run.tell("starting the servers")
        echo = stack.enter_context(started_echo(run))
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        services = {
            kind: stack.enter_context(
                started_service(run, Setup(kind, channel=channel, plugins=("courier",)))
            )
            for kind in run.databases.kinds
        }
        like = next(iter(services.values())).sends
        bare = Target("echo", echo, Request(echo.url + "/v1/send", like.lines, like.api_key))
        for server in (echo, *(service.server for service in services.values())):
            pause(server)
        of_echo: list[float] = []
        rates: dict[str, list[float]] = {kind: [] for kind in services}
        run.tell("deliver", total=options.rounds * (1 + len(services)) * options.seconds)
        # No warming up: a burst and what it takes to its end is long enough.
        for number in range(1, options.rounds + 1):
            name = f"deliver, round {number}"
            run.tell(f"{name}: echo")
            wake(echo)
            of_echo.append(one_round(run, bare, options.seconds, run.advance).per_s)
            pause(echo)
            for kind, service in services.items():
                run.tell(f"{name}: {kind}")
                wake(service.server)
                rates[kind].append(_burst(run, kind, service, name))
                pause(service.server)
        for service in services.values():
            go_on(service.server)
    reference = median(of_echo)
    return [
        Finding(
            f"accept, deliver, record {kind}: per s / echo",
            median(rates[kind]),
            reference,
            LEAST[kind],
        )
        for kind in run.databases.kinds
    ]


def _burst(run: Run, kind: str, service: ServiceUnderTest, name: str) -> float:
    """Messages a second, by the times that the service wrote beside them."""
    since = int(time.time() * 1000)
    target = Target(kind, service.server, service.sends)
    load = one_round(run, target, run.options.seconds, run.advance)
    run.tell(f"{name}: {kind}, what is left")
    return service.use(lambda opened: _drained(opened, since, load.requests))


async def _drained(service: Service, since: int, accepted: int) -> float:
    await until_empty(service, "channel:", MOST_S)
    async with service.db.read() as tx:
        row = await tx.fetch_one(_ROUND, {"since": since})
    assert row is not None, "an aggregate has one row"
    if row["sent"] != row["messages"] or row["messages"] < accepted:
        raise BenchError(f"{accepted} accepted, {row['messages']} written, {row['sent']} sent")
    return float(row["messages"]) * 1000 / (row["last_ms"] - row["first_ms"])
