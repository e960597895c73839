"""Webhooks: deliveries that wait, POSTed signed to a receiver that takes all, beside the bare client.

The bare client sends bodies of the same size, signed as the service signs them, to the same receiver
from a process of its own: as many calls at once as all lanes together make, nothing written down.
"""

import asyncio
import json
import sys
import time
from contextlib import ExitStack

import uvloop
from aiohttp import ClientSession, DummyCookieJar, TCPConnector

from msgsvc_core.events import NewEvent
from msgsvc_core.security.signing import new_secret, sign, standard_headers
from msgsvc_core.service import Service
from msgsvc_webhooks.calls import CALLS
from msgsvc_webhooks.models import CreateWebhookBody
from msgsvc_webhooks.service import Webhooks
from tests.bench import fake_platform
from tests.bench.queues import Queue, beside_the_client, in_own_process
from tests.bench.report import Bound, Finding
from tests.bench.run import Run
from tests.bench.servers import ServiceUnderTest, Setup, started, started_service

LEAST = Bound(least=0.6)

#: Webhooks of the project, which with the calls that each may have at once make 104 connections.
ENDPOINTS = 13

#: Events that are recorded in one transaction while the queue is filled.
EVENTS_AT_ONCE = 50

SECTION = f"""[webhooks]
endpoints_per_project = {ENDPOINTS}
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
"""

#: As long as what a `subscription.created` says of a person.
BODY = json.dumps({"event": "event.tracked", "data": {"properties": {"note": "x" * 200}}}).encode()

ENDED = """
SELECT finished_at_ms AS at_ms FROM webhooks_deliveries
WHERE created_at_ms >= :since AND status = 'delivered'
"""


def webhooks(run: Run) -> list[Finding]:
    """Deliveries a second, from the first recorded outcomes to the last."""
    count = max(1, run.options.messages // ENDPOINTS) * ENDPOINTS
    with ExitStack() as stack:
        run.tell("starting the servers")
        receiver = stack.enter_context(started(run, fake_platform))
        services = {
            kind: stack.enter_context(
                started_service(run, Setup(kind, plugins=("sink", "webhooks"), sections=[SECTION]))
            )
            for kind in run.databases.kinds
        }
        for service in services.values():
            _add_webhooks(service, receiver.url)
        return beside_the_client(
            run,
            Queue("webhooks", "webhook:", _fill, ENDED),
            services,
            client=lambda: in_own_process("tests.bench.webhooks", receiver.url, count),
            count=count,
            least=LEAST,
        )


def _add_webhooks(service: ServiceUnderTest, url: str) -> None:
    async def add(opened: Service) -> None:
        for number in range(ENDPOINTS):
            body = CreateWebhookBody(url=f"{url}/hook/{number}")
            async with opened.db.transaction() as tx:
                await opened.get(Webhooks).create(tx, service.project_id, body)

    service.use(add)


async def _fill(service: Service, project_id: str, deliveries: int) -> None:
    events = deliveries // ENDPOINTS
    fields = {"name": "order_paid", "properties": {"note": "x" * 140}}
    new = NewEvent(project_id, "event.tracked", fields)
    for start in range(0, events, EVENTS_AT_ONCE):
        async with service.db.transaction() as tx:
            await service.events.emit_many(tx, [new] * min(EVENTS_AT_ONCE, events - start))


async def _calls_per_s(url: str, calls: int) -> float:
    left = iter(range(calls))
    secret = new_secret()
    async with ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar()) as http:

        async def call_again_and_again() -> None:
            for number in left:
                delivery_id, timestamp = f"whd_{number}", int(time.time())
                headers = {
                    "Content-Type": "application/json",
                    "X-Service-Signature": sign(BODY, [secret], timestamp),
                    "X-Service-Delivery-Id": delivery_id,
                    **standard_headers(delivery_id, BODY, [secret], timestamp),
                }
                async with http.post(
                    url + "/hook", data=BODY, headers=headers, allow_redirects=False
                ) as answer:
                    await answer.read()

        began = time.monotonic()
        await asyncio.gather(*(call_again_and_again() for _ in range(ENDPOINTS * CALLS)))
        return calls / (time.monotonic() - began)


if __name__ == "__main__":
    print(uvloop.run(_calls_per_s(sys.argv[1], int(sys.argv[2]))))  # noqa: T201 - who started this process reads it
