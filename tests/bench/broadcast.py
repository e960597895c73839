"""A broadcast over HTTP, beside clients that send the same messages, and what a message costs.

Counted from the start of the audience's expansion to the broadcast's end, every outcome, message and
event written. The processor's time of the service is told beside: it hardly moves when the machine is
busy, where messages a second do.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median

from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service
from msgsvc_devkit.certificates import write_certificate
from tests.bench import fake_platform
from tests.bench.audience import add_audience
from tests.bench.clients import AIOGRAM, BARE, PEERS, Client, own_python, python_of_peers
from tests.bench.report import NONE, Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import (
    TEXT,
    ServiceUnderTest,
    Setup,
    cpu_s,
    go_on,
    memory_mib,
    pause,
    started,
    started_service,
    while_it_stands,
)

#: The cost of a message may differ so much between audiences, however large.
LEVEL = Bound(most=1.15)

#: How often a small audience is sent to.
MOST_TIMES = 10

#: MiB that the process may grow by.
GROWTH = Bound(most=100)

#: Seconds between two looks whether a broadcast has ended, and until that is called an error.
LOOK_S, MOST_S = 0.05, 900.0

PROGRESS = """
SELECT sent, total, started_at_ms, finished_at_ms FROM core_mailings
WHERE created_at_ms >= :since ORDER BY job_id DESC LIMIT 1
"""


def broadcast_over_tls(run: Run) -> list[Finding]:
    """The same beside others, where the platform and all its clients speak TLS."""
    trusted = write_certificate(run.new_folder() / "platform.pem", "localhost")
    others = [BARE, *([AIOGRAM] if run.options.peers else ())]
    found: list[Finding] = []
    with started(run, fake_platform, str(trusted)) as platform:
        channel = f'plugin = "courier"\nurl = "{platform.url}"\nca_file = "{trusted}"'
        run.tell("broadcast over TLS", total=len(run.databases.kinds) * run.options.rounds)
        for kind in run.databases.kinds:
            setup = Setup(kind, channel=channel, plugins=("courier", "broadcasts"))
            with started_service(run, setup) as service:
                pause(service.server)
                found += _beside_others(run, kind, service, platform.url, others, trusted)
                go_on(service.server)
    return found


def broadcast(run: Run) -> list[Finding]:
    """Messages a second, their processor's time by size of the audience, and the memory's growth."""
    count = run.options.messages
    sizes = sorted({max(100, count // 10), count, run.options.audience})
    found: list[Finding] = []
    with ExitStack() as stack:
        run.tell("starting the servers")
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        run.tell(
            "broadcast", total=len(run.databases.kinds) * run.options.rounds * (1 + len(sizes))
        )
        for kind in run.databases.kinds:
            setup = Setup(kind, channel=channel, plugins=("courier", "broadcasts"))
            with started_service(run, setup) as service:
                pause(service.server)
                others = [BARE, *(PEERS if run.options.peers else ())]
                found += _beside_others(run, kind, service, platform.url, others)
                go_on(service.server)
            with ExitStack() as by_size:
                # One for each, which has nobody but its audience: to look for it among others has its
                # cost too.
                services = {
                    size: by_size.enter_context(started_service(run, setup)) for size in sizes
                }
                for service in services.values():
                    pause(service.server)
                found += _by_size(run, kind, services)
                for service in services.values():
                    go_on(service.server)
    return found


def _beside_others(
    run: Run,
    kind: str,
    service: ServiceUnderTest,
    url: str,
    others: Sequence[Client],
    trusted: Path | None = None,
) -> list[Finding]:
    """`trusted` is the platform's certificate, if it speaks TLS."""
    count = run.options.messages
    name = f"broadcast {kind}" if trusted is None else f"broadcast over TLS {kind}"
    rates: list[float] = []
    costs_us: list[float] = []
    theirs: dict[str, list[dict[str, float]]] = {client.name: [] for client in others}
    for number in range(1, run.options.rounds + 1):
        for client in others:
            run.tell(f"{name}, round {number}: {client.name}")
            python = own_python() if client is BARE else python_of_peers()
            theirs[client.name].append(client.figures(python, url, count, trusted))
        run.tell(f"{name}, round {number}")
        per_s, cost_us = _round(service, count)
        rates.append(per_s)
        costs_us.append(cost_us)
        run.advance(1)
    found: list[Finding] = []
    for client in others:
        figures = theirs[client.name]
        per_s, cost_us = (
            median(each[figure] for each in figures) for figure in ("per_s", "cpu_us")
        )
        bounds = client.bounds if trusted is None else client.bounds_over_tls
        bound, most_cpu = bounds.get(kind, (NONE, NONE))
        found += [
            Finding(f"{name}: per s / {client.name}", median(rates), per_s, bound),
            Finding(
                f"{name}: CPU µs a message / {client.name}", median(costs_us), cost_us, most_cpu
            ),
        ]
    return found


def _by_size(run: Run, kind: str, services: Mapping[int, ServiceUnderTest]) -> list[Finding]:
    sizes = list(services)
    largest = services[sizes[-1]]
    before = memory_mib(largest.server)
    each_us: dict[int, list[float]] = {size: [] for size in sizes}
    for service in services.values():
        # The first of a process pays for what it does once: connections, and the statements on them.
        _round(service, sizes[0])
    for number in range(1, run.options.rounds + 1):
        # In turn: the machine is quicker now and then.
        for size, service in services.items():
            run.tell(f"broadcast {kind} to {size:,}, round {number}")
            # The processor's time is told in hundredths of a second: what is over soon is done again.
            times = max(1, min(MOST_TIMES, run.options.messages // size))
            each_us[size].append(mean(_round(service, size)[1] for _ in range(times)))
            run.advance(1)
    sent = sizes[0] + sizes[-1] * run.options.rounds
    costs_us = {size: median(costs) for size, costs in each_us.items()}
    grown = memory_mib(largest.server) - before
    least, most = min(costs_us.values()), max(costs_us.values())
    first = costs_us[sizes[0]]
    return [
        *(
            Finding(
                f"broadcast {kind} to {size:,}: CPU µs a message / to {sizes[0]:,}", cost, first
            )
            for size, cost in costs_us.items()
        ),
        Finding(
            f"broadcast {kind}: CPU µs a message, the dearest / the cheapest", most, least, LEVEL
        ),
        Finding(f"broadcast {kind}: growth over {sent:,} messages, MiB", grown, None, GROWTH, True),
    ]


def _round(service: ServiceUnderTest, count: int) -> tuple[float, float]:
    """Messages a second, and the processor's µs of one."""
    found: list[tuple[float, float]] = []

    async def send(opened: Service) -> None:
        since = int(time.time() * 1000)
        await _ask(opened, service.project_id, count)
        before_s = cpu_s(service.server)
        # Only now, so that what the service costs while it is idle is not counted.
        go_on(service.server)
        try:
            seconds = await _until_ended(opened, since, count)
        finally:
            pause(service.server)
        after_s = cpu_s(service.server)
        if before_s is None or after_s is None:
            raise BenchError("this system does not tell a process's time")
        found.append((count / seconds, (after_s - before_s) * 1e6 / count))

    while_it_stands(service, send)
    return found[0]


async def _ask(service: Service, project_id: str, count: int) -> None:
    """A broadcast to `count` people."""
    tag = await add_audience(service, project_id, count)
    async with service.db.transaction() as tx:
        new = NewMailing("broadcasts", MailingMessage(text=TEXT), Audience(tags_any=[tag]))
        await service.mailings.start(tx, project_id, new)


async def _until_ended(service: Service, since: int, count: int) -> float:
    """Seconds from its start to its end, by the times that the service wrote."""
    ends_at = time.monotonic() + MOST_S
    while True:
        async with service.db.read() as tx:
            row = await tx.fetch_one(PROGRESS, {"since": since})
        assert row is not None, "it was asked for"
        if row["finished_at_ms"] is not None:
            break
        if time.monotonic() > ends_at:
            raise BenchError(f"{row['sent']} of {count} are sent after {MOST_S:g} s")
        await asyncio.sleep(LOOK_S)
    if (row["sent"], row["total"]) != (count, count):
        raise BenchError(f"{row['sent']} of {count} were sent")
    return float(row["finished_at_ms"] - row["started_at_ms"]) / 1000
