"""One lane without a pace: messages that wait, delivered over HTTP, beside the bare client.

The bare client sends the same bodies to the same fake platform from a process of its own, as fast as
its loop can: as many calls at once as a lane makes, nothing written down.
"""

import asyncio
import sys
import time
from contextlib import ExitStack

import uvloop
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from msgsvc_core.channels.outbound.gate import BATCH, BATCHES
from msgsvc_core.service import Service
from tests.bench import fake_platform
from tests.bench.courier import PATH, body_of
from tests.bench.queues import Queue, beside_the_client, in_own_process
from tests.bench.report import Bound, Finding
from tests.bench.run import Run
from tests.bench.servers import (
    TEXT,
    Setup,
    started,
    started_service,
)

LEAST = Bound(least=0.6)

#: Calls that a lane has under way at once.
CALLS = BATCH * BATCHES

ENDED = """
SELECT finished_at_ms AS at_ms FROM core_messages WHERE created_at_ms >= :since AND status = 'sent'
"""


def lane(run: Run) -> list[Finding]:
    """Messages a second, from the first recorded outcomes to the last."""
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
        count = run.options.messages
        return beside_the_client(
            run,
            Queue("one lane", "channel:", _fill, ENDED),
            services,
            client=lambda: in_own_process("tests.bench.lane", platform.url, count),
            count=count,
            least=LEAST,
        )


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
