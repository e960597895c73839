"""A queue that is filled while the server stands still, and emptied: beside a bare client's calls.

So the server has nothing else to do meanwhile, and the client makes the same calls from a process of
its own, as many at once, with nothing written down.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from msgsvc_core.service import Service
from tests.bench.report import Bound, Finding
from tests.bench.run import BenchError, Run
from tests.bench.servers import ServiceUnderTest, go_on, pause, while_it_stands

#: Seconds between two looks whether something is left, and until that is called an error.
LOOK_S, MOST_S = 0.2, 300.0

#: Outcomes are written together. What the first writing brings was done before it.
RATE = """
WITH ended AS ({ended}), spans AS (SELECT MIN(at_ms) AS first_ms, MAX(at_ms) AS last_ms FROM ended)
SELECT first_ms, last_ms, (SELECT COUNT(*) FROM ended) AS done,
       (SELECT COUNT(*) FROM ended WHERE at_ms > first_ms) AS later
FROM spans
"""


async def until_empty(service: Service, lanes: str, most_s: float = MOST_S) -> None:
    """Returns when no job is left in lanes whose names begin so.

    Found by an index: to count what is left took from the service a part of the time that was measured.
    Raises `BenchError`.
    """
    ends_at = time.monotonic() + most_s
    beyond = lanes[:-1] + chr(ord(lanes[-1]) + 1)
    of_lanes = "lane >= :lanes AND lane < :beyond"
    while True:
        async with service.db.read() as tx:
            left = await tx.fetch_all(
                f"SELECT * FROM (SELECT 1 FROM core_jobs WHERE state = 'ready' AND {of_lanes} LIMIT 1)"
                f" AS waits UNION ALL SELECT * FROM (SELECT 1 FROM core_jobs WHERE state = 'running'"
                f" AND {of_lanes} LIMIT 1) AS runs",
                {"lanes": lanes, "beyond": beyond},
            )
        if not left:
            return
        if time.monotonic() > ends_at:
            raise BenchError(f"jobs of {lanes} are left after {most_s:g} s")
        await asyncio.sleep(LOOK_S)


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in `lanes`, whose names begin so. `fill` adds so many of it to a project; `ended` is SQL
    for when each ended (`at_ms`) of those that were added since `:since` and ended well."""

    name: str
    lanes: str
    fill: Callable[[Service, str, int], Awaitable[None]]
    ended: str

    def emptied(self, service: ServiceUnderTest, count: int) -> float:
        """How many a second, from the first recorded outcomes, which don't count, to the last."""
        since = int(time.time() * 1000)
        while_it_stands(service, lambda opened: self.fill(opened, service.project_id, count))
        go_on(service.server)
        try:
            return service.use(partial(self._rate, since=since, count=count))
        finally:
            pause(service.server)

    async def _rate(self, service: Service, since: int, count: int) -> float:
        await until_empty(service, self.lanes)
        async with service.db.read() as tx:
            row = await tx.fetch_one(RATE.format(ended=self.ended), {"since": since})
        assert row is not None, "an aggregate has one row"
        if row["done"] != count:
            raise BenchError(f"{self.name}: {row['done']} of {count} ended well")
        return float(row["later"]) * 1000 / (row["last_ms"] - row["first_ms"])


def beside_the_client(
    run: Run,
    queue: Queue,
    services: Mapping[str, ServiceUnderTest],
    *,
    client: Callable[[], float],
    count: int,
    least: Bound,
) -> list[Finding]:
    """Rounds of `client`'s calls a second and of each service's, in turn; by kind of database."""
    for service in services.values():
        pause(service.server)
    of_client: list[float] = []
    rates: dict[str, list[float]] = {kind: [] for kind in services}
    run.tell(queue.name, total=run.options.rounds * (1 + len(services)))
    for number in range(1, run.options.rounds + 1):
        run.tell(f"{queue.name}, round {number}: the bare client")
        of_client.append(client())
        run.advance(1)
        for kind, service in services.items():
            run.tell(f"{queue.name}, round {number}: {kind}")
            rates[kind].append(queue.emptied(service, count))
            run.advance(1)
    for service in services.values():
        go_on(service.server)
    reference = median(of_client)
    return [
        Finding(f"{queue.name} {kind}: per s / bare client", median(measured), reference, least)
        for kind, measured in rates.items()
    ]


def in_own_process(module: str, url: str, count: int) -> float:
    """Calls a second that a module prints when it is run as a script."""
    printed = subprocess.run(
        [sys.executable, "-m", module, url, str(count)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(json.loads(printed))
