"""How many jobs that do nothing are done in a second, beside dramatiq's own empty actor.

The queue is filled first and emptied under the clock, by `msgsvc serve`, `msgsvc worker` or dramatiq's
worker, each in a process of its own.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
import dramatiq
from dramatiq.brokers.redis import RedisBroker
from rich.console import Console
from rich.table import Table

from msgsvc_core.config.settings import load_settings
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases, postgres_answers, postgres_url
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import TestRunner, redis_url
from tests.bench import empty
from tests.process import Deployment, install_module

#: What the others are compared with: one process, eight threads, an empty actor.
REFERENCE = "dramatiq alone"

THREADS = 8

#: Seconds that a process gets to start before the jobs are due.
START_S = 6.0

#: Seconds between looks whether all is done.
LOOK_S = 0.01

#: Jobs of one statement while the queue is filled.
ROWS = 500

T = TypeVar("T")

Rates = dict[str, float]


def measure(
    folder: Path, *, jobs: int = 20_000, rounds: int = 3, missing: Callable[[str], None] = print
) -> Rates:
    """Jobs per second, the median of the rounds, by `REFERENCE`, `embedded, sqlite`,
    `embedded, postgresql` and `woken by dramatiq, postgresql`.

    `missing` is told what can't be measured here.
    """
    cases: dict[str, Callable[[], float]] = {}
    installed = install_module(folder / "installed", Path(empty.__file__))
    with ExitStack() as stack:
        cases["embedded, sqlite"] = lambda: _embedded(_place(folder, installed), None, jobs)
        if has("redis"):
            cases[REFERENCE] = lambda: _dramatiq_alone(jobs // 4)
        else:
            missing("dramatiq is not measured: Redis does not answer")
        if postgres_answers(postgres_url()):
            postgres = PostgresDatabases(postgres_url())
            stack.callback(lambda: asyncio.run(postgres.drop_all()))

            def fresh() -> str:
                return asyncio.run(_durable(postgres))

            cases["embedded, postgresql"] = lambda: _embedded(
                _place(folder, installed), fresh(), jobs
            )
            if has("redis"):
                cases["woken by dramatiq, postgresql"] = lambda: _woken(
                    _place(folder, installed), fresh(), jobs
                )
        else:
            missing("PostgreSQL is not measured: it does not answer")
        rates: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, run in cases.items():
                rates[name].append(run())
    return {name: median(measured) for name, measured in rates.items()}


async def _durable(postgres: PostgresDatabases) -> str:
    """A database as the server is configured; those of tests do without waiting for the disk."""
    url = await postgres.empty()
    connection = await asyncpg.connect(url)
    try:
        name = urlsplit(url).path.removeprefix("/")
        await connection.execute(f"ALTER DATABASE {name} RESET synchronous_commit")
    finally:
        await connection.close()
    return url


def _place(folder: Path, installed: Path) -> Deployment:
    place = folder / new_token()
    place.mkdir()
    return Deployment(place, [installed], forks=False)


def _configure(deployment: Deployment, database_url: str | None, jobs: str) -> None:
    deployment.configure(
        f'plugins = ["empty"]\nchannels = {{}}\n[log]\nlevel = "warning"\n[jobs]\n{jobs}',
        database_url,
    )


def _embedded(deployment: Deployment, database_url: str | None, jobs: int) -> float:
    """The jobs are due at a moment when the server is there and has seen when that is."""
    _configure(deployment, database_url, 'runner = "embedded"\n')
    start_s = START_S
    while True:
        due_s = time.time() + start_s + jobs / 10_000
        fill = partial(_fill, jobs=jobs, run_at_ms=round(due_s * 1000))
        asyncio.run(_opened(deployment, fill))
        with deployment.serving():
            was_in_time = time.time() < due_s - 1.0
            took_s = asyncio.run(_opened(deployment, partial(_until_done, began_s=due_s)))
        if was_in_time:
            return jobs / took_s
        # A busy machine started the server while the jobs were due already; the queue is empty again.
        start_s *= 2


def _woken(deployment: Deployment, database_url: str, jobs: int) -> float:
    """The worker makes no sweep meanwhile, and hears of the jobs by a message."""
    runner = TestRunner("redis")
    broker = "".join(f'{name} = "{value}"\n' for name, value in runner.job_settings.items())
    _configure(deployment, database_url, f"{broker}sweep_s = 600\n")

    async def run(service: Service) -> float:
        with deployment.working():
            # The worker's first sweep, which is its only one, is over when its name is on the list.
            await asyncio.sleep(1.0)
            await _fill(service, jobs - 1, 0)
            async with Service(service.settings, extra_plugins=[("empty", empty)]) as server:
                began_s = time.time()
                async with server.db.transaction() as tx:
                    await server.jobs.enqueue(tx, NewJob(empty.JOB, lane=empty.LANE))
                return await _until_done(service, began_s)

    try:
        return jobs / asyncio.run(_opened(deployment, run))
    finally:
        runner.clean_up()


async def _opened(deployment: Deployment, use: Callable[[Service], Awaitable[T]]) -> T:
    """A service that works on nothing, and wakes nobody."""
    settings = load_settings(deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("empty", empty)])
    await service.migrate()
    await service.open_database()
    try:
        return await use(service)
    finally:
        await service.db.disconnect()


async def _fill(service: Service, jobs: int, run_at_ms: int) -> None:
    for start in range(0, jobs, ROWS):
        count = min(ROWS, jobs - start)
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(
                tx, *(NewJob(empty.JOB, lane=empty.LANE, run_at_ms=run_at_ms) for _ in range(count))
            )


async def _until_done(service: Service, began_s: float) -> float:
    """Seconds from then until the queue is empty."""
    await asyncio.sleep(max(0.0, began_s - time.time()))
    while True:
        async with service.db.read() as tx:
            left = await tx.fetch_all(
                "SELECT job_id FROM core_jobs WHERE lane = :lane AND state = 'ready'"
                " UNION ALL SELECT job_id FROM core_jobs WHERE lane = :lane AND state = 'running'"
                " LIMIT 1",
                {"lane": empty.LANE},
            )
        if not left:
            return time.time() - began_s
        await asyncio.sleep(LOOK_S)


def _dramatiq_alone(jobs: int) -> float:
    """A queue of dramatiq's own is filled, then emptied by its worker as it is by default."""
    namespace = f"bench_{new_token().lower()}"
    broker, actor = declare(namespace)
    for _ in range(jobs):
        actor.send()
    command = [sys.executable, "-m", "tests.bench.empty_jobs", "--dramatiq", namespace]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            began_s = time.time()
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
            while broker.do_qsize(actor.queue_name):
                time.sleep(LOOK_S)
            return jobs / (time.time() - began_s)
        finally:
            process.kill()
            for key in broker.client.scan_iter(f"{namespace}:*"):
                broker.client.delete(key)
            broker.client.close()


def declare(namespace: str) -> tuple[Any, Any]:
    """A broker on Redis with what it has by default, and an actor that does nothing."""
    untyped: Any = RedisBroker
    broker = untyped(url=redis_url(), namespace=namespace)

    @dramatiq.actor(broker=broker)
    def nothing() -> None:
        pass

    return broker, nothing


def work_with_dramatiq(namespace: str) -> None:
    """The process that is measured: starts dramatiq's worker when told to, and is killed."""
    broker, _ = declare(namespace)
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    print("ready", flush=True)  # noqa: T201 - who started this process waits for it
    sys.stdin.readline()
    worker.start()
    time.sleep(3600)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.empty_jobs", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dramatiq", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dramatiq:
        work_with_dramatiq(options.dramatiq)
        return
    console = Console()
    with tempfile.TemporaryDirectory(prefix="msgsvc-bench-") as folder:
        rates = measure(
            Path(folder), jobs=options.jobs, rounds=options.rounds, missing=console.print
        )
    table = Table("empty jobs", "per s", f"of {REFERENCE}")
    for name, rate in rates.items():
        base = rates.get(REFERENCE)
        table.add_row(name, f"{rate:,.0f}", f"{rate / base:.1f} x" if base else "")
    console.print(table)


if __name__ == "__main__":
    main()
