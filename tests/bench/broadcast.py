"""A broadcast over HTTP, beside the bare client that sends the same bodies, and what a message costs.

Counted from the start of the audience's expansion to the broadcast's end, every outcome, message and
event written. The processor's time of the service is told beside: it hardly moves when the machine is
busy, where messages a second do.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.mailings.sending import MOST_IN_HAND
from msgsvc_core.service import Service
from tests.bench import fake_platform
from tests.bench.courier import PATH, body_of
from tests.bench.report import Bound, Finding
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

LEAST = Bound(least=0.6)

#: The cost of a message may differ so much between the smallest audience and the largest.
LEVEL = Bound(most=1.15)

#: MiB that the process may grow by.
GROWTH = Bound(most=100)

#: Seconds between two looks whether a broadcast has ended, and until that is called an error.
LOOK_S, MOST_S = 0.2, 900.0

PROGRESS = """
SELECT sent, total, started_at_ms, finished_at_ms FROM core_mailings
WHERE created_at_ms >= :since ORDER BY job_id DESC LIMIT 1
"""


def broadcast(run: Run) -> list[Finding]:
    """Messages a second, their processor's time by size of the audience, and the memory's growth."""
    count = run.options.messages
    sizes = sorted({max(100, count // 10), count, run.options.audience})
    found: list[Finding] = []
    with ExitStack() as stack:
        run.tell("starting the servers")
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        run.tell("broadcast", total=len(run.databases.kinds) * (run.options.rounds + len(sizes)))
        for kind in run.databases.kinds:
            setup = Setup(kind, channel=channel, plugins=("courier", "broadcasts"))
            with started_service(run, setup) as service:
                pause(service.server)
                found += _beside_the_client(run, kind, service, platform.url, count)
                found += _by_size(run, kind, service, sizes)
                go_on(service.server)
    return found


def _beside_the_client(
    run: Run, kind: str, service: ServiceUnderTest, url: str, count: int
) -> list[Finding]:
    rates: list[float] = []
    costs_us: list[float] = []
    of_client: list[float] = []
    client_us: list[float] = []
    for number in range(1, run.options.rounds + 1):
        run.tell(f"broadcast {kind}, round {number}")
        bare = _client(url, count)
        of_client.append(bare["per_s"])
        client_us.append(bare["cpu_us"])
        per_s, cost_us = _round(service, count)
        rates.append(per_s)
        costs_us.append(cost_us)
        run.advance(1)
    return [
        Finding(f"broadcast {kind}: per s / bare client", median(rates), median(of_client), LEAST),
        Finding(
            f"broadcast {kind}: CPU µs a message / bare client", median(costs_us), median(client_us)
        ),
    ]


def _by_size(run: Run, kind: str, service: ServiceUnderTest, sizes: list[int]) -> list[Finding]:
    before = memory_mib(service.server)
    costs_us: list[float] = []
    for size in sizes:
        run.tell(f"broadcast {kind} to {size:,}")
        costs_us.append(_round(service, size)[1])
        run.advance(1)
    grown = memory_mib(service.server) - before
    found = [
        Finding(f"broadcast {kind} to {size:,}: CPU µs a message / to {sizes[0]:,}", cost, first)
        for size, cost, first in zip(sizes, costs_us, [costs_us[0]] * len(sizes), strict=True)
    ]
    found[-1] = Finding(found[-1].name, found[-1].value, found[-1].reference, LEVEL)
    name = f"broadcast {kind}: growth over {sum(sizes):,} messages, MiB"
    return [*found, Finding(name, grown, bound=GROWTH, alone=True)]


def _round(service: ServiceUnderTest, count: int) -> tuple[float, float]:
    """Messages a second, and the processor's µs of one."""
    since = int(time.time() * 1000)
    while_it_stands(service, lambda opened: _ask(opened, service.project_id, count))
    before_s = cpu_s(service.server)
    go_on(service.server)
    try:
        seconds = service.use(lambda opened: _until_ended(opened, since, count))
    finally:
        pause(service.server)
    after_s = cpu_s(service.server)
    if before_s is None or after_s is None:
        raise BenchError("this system does not tell a process's time")
    return count / seconds, (after_s - before_s) * 1e6 / count


async def _ask(service: Service, project_id: str, count: int) -> None:
    """Adds the people that are not there yet, and a broadcast to `count` of them."""
    tag = f"first-{count}"
    now_ms = service.clock.now_ms()
    async with service.db.read() as tx:
        known = await tx.fetch_val("SELECT COUNT(*) FROM core_subscribers WHERE source = 'form'")
    for start in range(known, count, 5000):
        numbers = range(start, min(count, start + 5000))
        rows = [
            {
                "project_id": project_id,
                "subscriber_id": f"sub_{number:09d}",
                "channel": "messenger_a",
                "bot": "messenger_a",
                "user_id": f"of-many-{number}",
                "chat_id": f"of-many-{number}",
                "first_name": "Ann",
                "lang": "en",
                "status": "active",
                "source": "form",
                "created_at_ms": now_ms,
                "last_seen_at_ms": now_ms,
            }
            for number in numbers
        ]
        async with service.db.transaction() as tx:
            await tx.insert_many("core_subscribers", rows)
    async with service.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO core_tags (project_id, name, created_at_ms) VALUES"
            " (:project_id, :tag, :now_ms) ON CONFLICT (project_id, name) DO NOTHING",
            {"project_id": project_id, "tag": tag, "now_ms": now_ms},
        )
        await tx.execute(
            "INSERT INTO core_subscriber_tags (project_id, subscriber_id, tag)"
            " SELECT project_id, subscriber_id, CAST(:tag AS text) FROM core_subscribers"
            " WHERE source = 'form' AND subscriber_id < :end"
            " ON CONFLICT (project_id, subscriber_id, tag) DO NOTHING",
            {"tag": tag, "end": f"sub_{count:09d}"},
        )
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


def _client(url: str, count: int) -> dict[str, float]:
    """The bare client's figures, from a process of its own."""
    printed = subprocess.run(
        [sys.executable, "-m", "tests.bench.broadcast", url, str(count)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    figures: dict[str, float] = json.loads(printed)
    return figures


async def _calls(url: str, count: int) -> dict[str, float]:
    left = iter(range(count))
    async with ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar()) as http:

        async def call_again_and_again() -> None:
            for number in left:
                body = body_of(f"of-many-{number}", TEXT, silent=False)
                async with http.post(url + PATH, json=body, allow_redirects=False) as answer:
                    await answer.json()

        began, used = time.monotonic(), _used_s()
        await asyncio.gather(*(call_again_and_again() for _ in range(MOST_IN_HAND)))
        per_s = count / (time.monotonic() - began)
        return {"per_s": per_s, "cpu_us": (_used_s() - used) * 1e6 / count}


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_calls(sys.argv[1], int(sys.argv[2])))))  # noqa: T201 - who started this process reads it
