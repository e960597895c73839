"""Webhooks among bad receivers: 200 that trickle delay nobody else, one that fails gets everything."""

import asyncio
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from msgsvc_core.events import NewEvent
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.security.signing import verify
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_webhooks import plugin
from msgsvc_webhooks.models import CreateWebhookBody
from msgsvc_webhooks.service import Webhooks
from tests.faults import receivers
from tests.faults.conftest import Figure, Rounds
from tests.process import Server, start_server

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"),
        [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
        indirect=True,
    ),
]

#: Seconds by which the p99 of a healthy receiver may grow. In the short form other tests run beside it; a
#: delivery that had waited for one that trickles would take its whole timeout.
GROWTH_S, SHORT_GROWTH_S = 1, 5

#: Seconds between two events of the healthy project.
PAUSE_S = 0.05

#: Events of each slow project: twice as many as its webhooks take at once.
EVENTS_OF_SLOW = 16

#: Webhooks of a project (decision 0075).
PER_PROJECT = 5


class Inbox:
    """The receivers' process, and what it was sent."""

    def __init__(self, server: Server, log: Path) -> None:
        self.url = server.url
        self._log = log

    def requests(self, path: str) -> list[dict[str, Any]]:
        lines = self._log.read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [request for request in found if request["path"].startswith(path)]


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, receivers.__file__, str(log)]
    server = start_server(command, tmp_path / "receivers.log", {})
    yield Inbox(server, log)
    server.kill()


OPTIONS: dict[str, Any] = {
    "extra_plugins": [("webhooks", plugin)],
    "webhooks": {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
}


async def add_webhook(service: Service, project_id: str, url: str) -> str:
    async with service.db.transaction() as tx:
        _, secret = await service.get(Webhooks).create(tx, project_id, CreateWebhookBody(url=url))
    return secret


async def emit(service: Service, project_id: str, count: int = 1) -> None:
    new = [
        NewEvent(project_id, "event.tracked", {"name": "n", "properties": {"sent_s": time.time()}})
        for _ in range(count)
    ]
    for start in range(0, count, 200):
        async with service.db.transaction() as tx:
            await service.events.emit_many(tx, new[start : start + 200])


async def next_due_ms(service: Service) -> int | None:
    """When the next delivery is due that is still on its way."""
    async with service.db.read() as tx:
        row = await tx.fetch_one(
            "SELECT MIN(next_attempt_at_ms) AS due_ms FROM webhooks_deliveries"
            " WHERE status = 'pending'"
        )
    return None if row is None else row["due_ms"]


def p99_s(requests: Sequence[dict[str, Any]]) -> float:
    """Of the seconds from the event to its arrival."""
    waits = [
        request["at_s"] - json.loads(request["body"])["data"]["properties"]["sent_s"]
        for request in requests
    ]
    return quantiles(waits, n=100)[98]


async def send_steadily(service: Service, project_id: str, inbox: Inbox, path: str) -> float:
    """The p99 of events that come one after another."""
    count = 100
    for _ in range(count):
        await emit(service, project_id)
        await asyncio.sleep(PAUSE_S)

    async def arrived() -> bool:
        return len(inbox.requests(path)) == count

    await until(arrived, timeout_s=60, interval_s=0.2)
    return p99_s(inbox.requests(path))


async def test_receivers_that_trickle_do_not_delay_a_healthy_one(
    make_service: ServiceFactory, inbox: Inbox, rounds: Rounds, figure: Figure
) -> None:
    slow = rounds(short=50, long=200)
    service = await make_service(use_clock=SystemClock(), **OPTIONS)
    healthy = await service.projects.create("Healthy")
    await add_webhook(service, healthy.project_id, f"{inbox.url}/ok/alone")
    alone_s = await send_steadily(service, healthy.project_id, inbox, "/ok/alone")
    for number in range(slow // PER_PROJECT):
        project = await service.projects.create(f"Slow {number}")
        for hook in range(PER_PROJECT):
            url = f"{inbox.url}/trickle/{number}/{hook}"
            await add_webhook(service, project.project_id, url)
        await emit(service, project.project_id, EVENTS_OF_SLOW)

    async def all_hang() -> bool:
        return len(inbox.requests("/trickle")) >= slow * 8

    await until(all_hang, timeout_s=60, interval_s=0.2)
    async with service.db.transaction() as tx:
        # Its only webhook from now on, so that what comes is counted for itself.
        await tx.execute(
            "UPDATE webhooks_endpoints SET url = :url WHERE project_id = :project_id",
            {"url": f"{inbox.url}/ok/among", "project_id": healthy.project_id},
        )
    among_s = await send_steadily(service, healthy.project_id, inbox, "/ok/among")
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    figure(
        f"{slow} receivers that trickle ({service.db.dialect})",
        f"p99 of a healthy one {among_s * 1000:.0f} ms, {alone_s * 1000:.0f} ms without them;"
        f" {slow * 8} connections held, at most {memory_mib:.0f} MiB with the tests",
        slow=slow,
        p99_s=among_s,
        p99_alone_s=alone_s,
        memory_mib=memory_mib,
    )
    assert among_s - alone_s < rounds(short=SHORT_GROWTH_S, long=GROWTH_S)
    # What waits for a receiver has no connection to the database.
    assert service.db.usage.in_use + service.db.usage.waiting < slow


async def test_everything_arrives_at_a_receiver_that_fails_three_times_of_ten(
    make_service: ServiceFactory,
    clock: FakeClock,
    inbox: Inbox,
    rounds: Rounds,
    figure: Figure,
) -> None:
    count = rounds(short=500, long=10_000)
    service = await make_service(**OPTIONS)
    project = await service.projects.create("Shop")
    secret = await add_webhook(service, project.project_id, f"{inbox.url}/flaky")
    began_s = time.monotonic()
    await emit(service, project.project_id, count)

    # Five failures in a row, of one in 400, wait for 2 minutes: in the test's time, which goes on when
    # nothing is under way.
    while (due_ms := await next_due_ms(service)) is not None:
        clock.advance(max(0, due_ms - clock.now_ms()) / 1000)
        await settled(service, timeout_s=300)
    took_s = time.monotonic() - began_s
    by_id: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for request in inbox.requests("/flaky"):
        by_id[request["headers"]["x-service-delivery-id"]].append(request)
    async with service.db.read() as tx:
        row = await tx.fetch_one(
            "SELECT COUNT(*) AS deliveries, COUNT(DISTINCT event_id) AS events,"
            " SUM(CASE WHEN status = 'delivered' THEN 1 ELSE 0 END) AS delivered"
            " FROM webhooks_deliveries"
        )
    assert row is not None, "an aggregate has one row"
    tries = sum(map(len, by_id.values()))
    unsigned = stale = twice = 0
    for requests in by_id.values():
        signatures = [request["headers"]["x-service-signature"] for request in requests]
        stale += len(signatures) - len(set(signatures))
        twice += sum("failed" not in request for request in requests) - 1
        unsigned += sum(
            not verify(request["body"].encode(), signature, [secret])
            for request, signature in zip(requests, signatures, strict=True)
        )

    figure(
        f"a receiver that fails 30 % of the time ({service.db.dialect})",
        f"{count} events, {row['delivered']} delivered under {len(by_id)} ids in {tries} tries and"
        f" {took_s:.0f} s; {stale} signatures used again, {unsigned} wrong, {twice} delivered twice",
        events=count,
        delivered=row["delivered"],
        ids=len(by_id),
        tries=tries,
        seconds=took_s,
    )
    assert row["delivered"] == row["deliveries"] == row["events"] == len(by_id) == count
    assert (stale, unsigned, twice) == (0, 0, 0)
    assert tries > 1.2 * count
