"""Many webhooks whose receivers are slow, and one that answers at once: what it notices of the others.

A delivery takes from when its event was recorded until its outcome was, by the service's own clock. The
slow ones are another project's, with a queue that lasts for the whole time.
"""

import asyncio
import json
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from msgsvc_core.events import NewEvent
from msgsvc_core.service import Service
from msgsvc_webhooks.calls import CALLS
from msgsvc_webhooks.models import CreateWebhookBody
from msgsvc_webhooks.service import Webhooks
from tests.bench.load import Request
from tests.bench.polls import allow_open_files
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.scale import slow_receiver
from tests.bench.scale.upkeep import vacuum
from tests.bench.servers import (
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
from tests.bench.steady import at, times_ms
from tests.process import Server

#: Of the healthy receiver's p99 without the others; MiB that the process grows by for each slow webhook.
MOST_P99, MOST_KIB = Bound(most=3), Bound(most=200)

#: Events of the healthy webhook's project, a second.
PER_S = 50

#: Calls that a process starts a second to slow receivers, at most (`calls.SLOW_PAUSE_S`).
SLOW_PER_S = 250

#: Seconds until as many slow calls are under way as ever will be, and for what is delivered to be written.
WARM_S, WRITTEN_S = slow_receiver.DELAY_S + 2, 60.0

EVENT = "event.tracked"

TOOK = """
SELECT finished_at_ms - created_at_ms AS took_ms FROM webhooks_deliveries
WHERE project_id = :project_id AND created_at_ms >= :since AND status = 'delivered'
"""

LEFT = """
SELECT COUNT(*) FROM webhooks_deliveries WHERE project_id = :project_id AND status = 'pending'
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one window: milliseconds of the healthy webhook's deliveries in order, MiB, and connections."""

    took_ms: Sequence[float]
    mib: float
    percent: float | None
    connections: int


def slow_webhooks(run: Run) -> list[Finding]:
    """On every database: a window without calls to the slow receivers, and one among them."""
    slow = run.options.slow_webhooks - 1
    allow_open_files(16 * slow + 500)
    found: list[Finding] = []
    with started(run, slow_receiver) as receiver:
        for kind in run.databases.kinds:
            run.tell(f"{slow} slow webhooks, {kind}: starting the server")
            with started_service(run, _setup(kind, slow)) as service:
                others = _add_webhooks(service, receiver.url, slow)
                run.tell(f"{slow} slow webhooks, {kind}: without them", total=2)
                quiet = _window(run, service, receiver)
                run.advance(1)
                run.tell(f"{slow} slow webhooks, {kind}: among them")
                _queue_slow(run, service, others, slow)
                time.sleep(WARM_S)
                among = _window(run, service, receiver)
                _check_outlasted(service, others)
                run.advance(1)
            found += _findings(
                f"a healthy webhook among {slow} slow ones {kind}", slow, quiet, among
            )
    return found


def _findings(name: str, slow: int, quiet: Seen, among: Seen) -> list[Finding]:
    kib = (among.mib - quiet.mib) * 1024 / slow
    return [
        Finding(f"{name}: p50 ms / without them", median(among.took_ms), median(quiet.took_ms)),
        Finding(
            f"{name}: p99 ms / without them",
            at(0.99, [*among.took_ms]),
            at(0.99, [*quiet.took_ms]),
            MOST_P99,
        ),
        Finding(f"{name}: growth, KiB for each", kib, bound=MOST_KIB, alone=True),
        Finding(f"{name}: % of a core / without them", among.percent, quiet.percent),
        Finding(f"{name}: connections / without them", among.connections, quiet.connections),
    ]


def _setup(kind: str, slow: int) -> Setup:
    section = (
        f"[webhooks]\nendpoints_per_project = {slow}\nallow_http = true\n"
        'allow_cidrs = ["127.0.0.0/8"]'
    )
    return Setup(kind, plugins=("sink", "webhooks"), sections=(section,))


def _add_webhooks(service: ServiceUnderTest, url: str, slow: int) -> str:
    """The project of the slow ones."""

    async def add(opened: Service) -> str:
        webhooks = opened.get(Webhooks)
        other = await opened.projects.create("Others")
        async with opened.db.transaction() as tx:
            healthy = CreateWebhookBody(url=f"{url}/healthy", events=[EVENT])
            await webhooks.create(tx, service.project_id, healthy)
            for number in range(slow):
                body = CreateWebhookBody(url=f"{url}/slow/{number}", events=[EVENT])
                await webhooks.create(tx, other.project_id, body)
        return other.project_id

    return service.use(add)


def _queue_slow(run: Run, service: ServiceUnderTest, project_id: str, slow: int) -> None:
    """As many deliveries as last for the window and for the time before it, and some."""
    needed = SLOW_PER_S * (run.options.window + WARM_S)
    events = round(needed / slow) + 3 * CALLS
    new = NewEvent(project_id, EVENT, {"name": "order_paid", "properties": {"note": "x" * 140}})

    async def emit(opened: Service) -> None:
        for _ in range(events):
            async with opened.db.transaction() as tx:
                await opened.events.emit_many(tx, [new])

    # Not while deliveries are made: PostgreSQL's plans for a journal of few would go through all of it.
    pause(service.server)
    while_it_stands(service, emit)
    vacuum(service)
    go_on(service.server)


def _window(run: Run, service: ServiceUnderTest, receiver: Server) -> Seen:
    since = int(time.time() * 1000)
    before_s, began_s = cpu_s(service.server), time.monotonic()
    times_ms(_tracking(service), per_s=PER_S, seconds=run.options.window)
    after_s, passed_s = cpu_s(service.server), time.monotonic() - began_s
    percent = None
    if before_s is not None and after_s is not None:
        percent = (after_s - before_s) / passed_s * 100
    mib = memory_mib(service.server)
    with urllib.request.urlopen(receiver.url + "/open") as answer:
        # Its own is one of them.
        connections = int(answer.read()) - 1
    return Seen(
        took_ms=_took_ms(service, since, PER_S * run.options.window),
        mib=mib,
        percent=percent,
        connections=connections,
    )


def _tracking(service: ServiceUnderTest) -> Request:
    """`POST /v1/events` of the same people that messages would go to."""
    lines = service.sends.lines.with_name("events.jsonl")
    if not lines.exists():
        people = service.sends.lines.read_text().splitlines()
        ids = [json.loads(line)["subscriber_id"] for line in people]
        bodies = [json.dumps({"subscriber_id": id_, "name": "order_paid"}) for id_ in ids]
        lines.write_text("\n".join(bodies) + "\n")
    return replace(service.sends, url=f"{service.server.url}/v1/events", lines=lines)


def _took_ms(service: ServiceUnderTest, since: int, count: int) -> Sequence[float]:
    async def read(opened: Service) -> Sequence[float]:
        ends_at = time.monotonic() + WRITTEN_S
        while True:
            async with opened.db.read() as tx:
                rows = await tx.fetch_all(TOOK, {"project_id": service.project_id, "since": since})
            if len(rows) == count:
                return sorted(float(row["took_ms"]) for row in rows)
            if time.monotonic() > ends_at:
                raise BenchError(f"{len(rows)} of {count} deliveries of the healthy webhook ended")
            await asyncio.sleep(0.5)

    return service.use(read)


def _check_outlasted(service: ServiceUnderTest, project_id: str) -> None:
    """Raises `BenchError` if the slow ones had nothing left to do before the window's end."""

    async def count(opened: Service) -> int:
        async with opened.db.read() as tx:
            return int(await tx.fetch_val(LEFT, {"project_id": project_id}))

    if not service.use(count):
        raise BenchError("the slow webhooks' queues ended before the window did")
