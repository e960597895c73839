"""One lane without a pace: messages that wait, delivered over HTTP, beside the bare client.

The bare client sends the same bodies to the same fake platform from a process of its own, as fast as
its loop can: as many calls at once as a lane makes, nothing written down.
"""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import uvloop
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from msgsvc_core.channels.calls import BATCH, CHANNEL_LANES
from msgsvc_core.service import Service
from tests.bench import fake_platform
from tests.bench.courier import PATH, body_of
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import (
    TEXT,
    ServiceUnderTest,
    Setup,
    go_on,
    pause,
    started,
    started_service,
)

LEAST = Bound(least=0.6)

#: Calls that a lane has under way at once.
CALLS = BATCH * CHANNEL_LANES.concurrency

#: Seconds between two looks whether messages are left, and until that is called an error.
LOOK_S, MOST_S = 0.2, 300.0

_DONE = """
SELECT COUNT(*) AS messages, SUM(CASE WHEN status = 'sent' THEN 1 ELSE 0 END) AS sent,
       SUM(CASE WHEN finished_at_ms IS NULL THEN 1 ELSE 0 END) AS unfinished,
       MIN(finished_at_ms) AS first_ms, MAX(finished_at_ms) AS last_ms
FROM core_messages WHERE created_at_ms >= :since
"""


def lane(run: Run) -> list[Finding]:
    """Messages a second, from the first recorded outcome to the last."""
    with ExitStack() as stack:
        run.tell("starting the servers")
        platform = stack.enter_context(started(run, fake_platform))
        channel = f'plugin = "courier"\nurl = "{platform.url}"'
        services = {
            kind: stack.enter_context(
                started_service(run, Setup(kind, channel=channel, plugins=("courier",)))
            )
            for kind in run.databases.kinds
        }
        for service in services.values():
            pause(service.server)
        of_client: list[float] = []
        rates: dict[str, list[float]] = {kind: [] for kind in services}
        run.tell("lane", total=run.options.rounds * (1 + len(services)))
        for number in range(1, run.options.rounds + 1):
            run.tell(f"lane, round {number}: the bare client")
            of_client.append(_bare(platform.url, run.options.messages))
            run.advance(1)
            for kind, service in services.items():
                run.tell(f"lane, round {number}: {kind}")
                rates[kind].append(_emptied(service, run.options.messages))
                run.advance(1)
        for service in services.values():
            go_on(service.server)
    reference = median(of_client)
    return [
        Finding(f"one lane {kind}: per s / bare client", median(rates[kind]), reference, LEAST)
        for kind in run.databases.kinds
    ]


def _emptied(service: ServiceUnderTest, messages: int) -> float:
    """Filled while the server stands still, so that it has nothing else to do afterwards."""
    since = int(time.time() * 1000)
    service.use(lambda opened: _fill(opened, service.project_id, messages))
    go_on(service.server)
    try:
        return service.use(lambda opened: _until_done(opened, since, messages))
    finally:
        pause(service.server)


async def _fill(service: Service, project_id: str, messages: int) -> None:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT subscriber_id FROM core_subscribers")
    ids = [row["subscriber_id"] for row in rows]
    for start in range(0, messages, len(ids)):
        await asyncio.gather(
            *(
                service.messages.send(project_id, subscriber_id=id_, text=TEXT)
                for id_ in ids[: messages - start]
            )
        )


async def _until_done(service: Service, since: int, messages: int) -> float:
    ends_at = time.monotonic() + MOST_S
    while True:
        async with service.db.read() as tx:
            row = await tx.fetch_one(_DONE, {"since": since})
        assert row is not None, "an aggregate has one row"
        if not row["unfinished"]:
            break
        if time.monotonic() > ends_at:
            raise BenchError(f"{row['unfinished']} messages are still not delivered")
        await asyncio.sleep(LOOK_S)
    if row["sent"] != messages:
        raise BenchError(f"{row['sent']} of {messages} were sent")
    return float(messages) * 1000 / (row["last_ms"] - row["first_ms"])


def _bare(url: str, messages: int) -> float:
    """Calls a second of the client alone, on uvloop as the service."""
    printed = subprocess.run(
        [sys.executable, "-m", "tests.bench.lane", url, str(messages)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(json.loads(printed))


async def _calls_per_s(url: str, messages: int) -> float:
    left = iter(range(messages))
    async with ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar()) as http:

        async def call_again_and_again() -> None:
            for number in left:
                body = body_of(f"chat-{number % 500}", TEXT, silent=False)
                async with http.post(url + PATH, json=body, allow_redirects=False) as answer:
                    await answer.json()

        began = time.monotonic()
        await asyncio.gather(*(call_again_and_again() for _ in range(CALLS)))
        return messages / (time.monotonic() - began)


if __name__ == "__main__":
    print(uvloop.run(_calls_per_s(sys.argv[1], int(sys.argv[2]))))  # noqa: T201 - who started this process reads it
