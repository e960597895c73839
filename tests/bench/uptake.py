"""How long it takes until all is taken up that is due at one moment, and to pause a chain of many people.

    python -m tests.bench.uptake --people 10000 --databases sqlite postgresql

Steps of chains and scheduled messages, taken up in this process, without a runner beside it: what is
delivered meanwhile is not measured. "CPU" is this process's time, without PostgreSQL's.
"""

import argparse
import asyncio
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import migrate
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_drip.step_runner import StepRunner
from msgsvc_scheduling import store
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.settings import SchedulingSettings
from tests.bench.databases import KINDS, Databases
from tests.bench.report import NONE, Bound, Finding

#: Seconds for 10,000 steps of one moment (the tracker's line).
MOST_S = 10.0

#: Seconds that a pause of a chain may take: it is one request.
MOST_PAUSE_S = 0.5

HOUR_MS = 3_600_000

#: Rows of one statement while the database is filled.
ROWS = 10_000

#: Scheduled messages of one project.
PER_PROJECT = 100


@asynccontextmanager
async def _service(database_url: str) -> AsyncIterator[Service]:
    settings = Settings.model_validate(
        {
            "secret_keys": (SECRET_KEY,),
            "plugins": ("drip", "scheduling"),
            "database_url": database_url,
            "channels": {"messenger_a": {"plugin": "recording"}},
            "jobs": {"runner": "none"},
            "limits": {"requests_per_minute": 1_000_000},
        }
    )
    service = Service(settings, clock=FakeClock(), extra_plugins=[("recording", RecordingPlugin())])
    await migrate(database_url, service.migrations)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def _project(service: Service) -> tuple[str, httpx2.AsyncClient]:
    project = await service.projects.create("Bench")
    _, key = await service.projects.create_key(project.project_id, "bench")
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.bench",
        headers={"Authorization": f"Bearer {key}"},
    )
    return project.project_id, client


async def _people(service: Service, project_id: str, count: int) -> list[str]:
    now_ms = service.clock.now_ms()
    rows = [
        {
            "project_id": project_id,
            "subscriber_id": new_id("sub"),
            "channel": "messenger_a",
            "bot": service.channels["messenger_a"].key,
            "user_id": f"user-{number}",
            "chat_id": f"chat-{number}",
            "first_name": f"Ann {number}",
            "lang": "en" if number % 2 else "ru",
            "status": "active",
            "source": "api",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
        }
        for number in range(count)
    ]
    await _insert(service, "core_subscribers", rows)
    return [str(row["subscriber_id"]) for row in rows]


async def _insert(service: Service, name: str, rows: list[dict[str, Any]]) -> None:
    for begin in range(0, len(rows), ROWS):
        async with service.db.transaction() as tx:
            await tx.insert_many(name, rows[begin : begin + ROWS])


async def _chain(service: Service, people: int, **message: Any) -> tuple[httpx2.AsyncClient, str]:
    """A chain with so many in it, whose first step is due in an hour."""
    project_id, client = await _project(service)
    body = {
        "name": "Bench",
        "trigger": {"on": "manual"},
        "steps": [
            {"delay": {"hours": 1}, "message": message},
            {"delay": {"days": 9}, "message": message},
        ],
    }
    if "template" in message:
        text = {"en": "Hello {{ first_name }}", "ru": "Здравствуйте, {{ first_name }}"}
        await client.post("/v1/templates", json={"key": message["template"], "text": text})
    answer = await client.post("/v1/drips", json=body)
    assert answer.status_code == 201, answer.text
    drip_id = str(answer.json()["drip_id"])
    now_ms = service.clock.now_ms()
    rows = [
        {
            "project_id": project_id,
            "enrollment_id": new_id("enr"),
            "drip_id": drip_id,
            "version": 1,
            "subscriber_id": subscriber_id,
            "status": "active",
            "next_step": 0,
            "due_at_ms": now_ms + HOUR_MS,
            "created_at_ms": now_ms,
        }
        for subscriber_id in await _people(service, project_id, people)
    ]
    await _insert(service, "drip_enrollments", rows)
    return client, drip_id


async def _timed(work: Callable[[], Awaitable[Any]], profile: bool) -> tuple[float, float]:
    """Seconds on the clock and of the processor; with `profile`, where they went is printed."""
    profiler = cProfile.Profile(time.process_time) if profile else None
    began, began_cpu = time.perf_counter(), time.process_time()
    if profiler is not None:
        profiler.enable()
    await work()
    if profiler is not None:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(35)
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumtime").print_stats(45)
    return time.perf_counter() - began, time.process_time() - began_cpu


def _findings(name: str, count: int, took: tuple[float, float]) -> list[Finding]:
    bound = Bound(most=MOST_S) if count == 10_000 else NONE
    return [
        Finding(f"{name}: s for {count:,}", took[0], bound=bound, alone=True),
        Finding(f"{name}: CPU µs each", took[1] / count * 1e6, alone=True),
    ]


async def steps(url: str, kind: str, people: int, profile: bool, **message: Any) -> list[Finding]:
    """The first step of a chain, due for everybody at once."""
    async with _service(url) as service:
        client, _ = await _chain(service, people, **message)
        clock = service.clock
        assert isinstance(clock, FakeClock)
        clock.advance(3600)
        taker = service.get(StepRunner)

        async def take_all() -> None:
            while await taker.run_batch():
                pass

        took = await _timed(take_all, profile)
        await client.aclose()
        async with service.db.read() as tx:
            queued = await tx.fetch_val("SELECT COUNT(*) FROM core_messages")
        assert queued == people, f"{queued} of {people} were taken up"
    what = "template" if "template" in message else "text"
    return _findings(f"steps, {what}, {kind}", people, took)


async def pauses(url: str, kind: str, people: int) -> list[Finding]:
    """A pause of a chain of many, and its end, each one request."""
    async with _service(url) as service:
        client, drip_id = await _chain(service, people, text="Hello")
        found = []
        for action in ("pause", "resume", "delete"):

            async def call(action: str = action) -> None:
                if action == "delete":
                    answer = await client.delete(f"/v1/drips/{drip_id}")
                else:
                    answer = await client.post(f"/v1/drips/{drip_id}/{action}")
                assert answer.is_success, answer.text

            took, _ = await _timed(call, profile=False)
            name = f"{action} of a chain of {people:,}, {kind}: s"
            found.append(Finding(name, took, bound=Bound(most=MOST_PAUSE_S), alone=True))
        await client.aclose()
    return found


async def messages(url: str, kind: str, count: int, profile: bool) -> list[Finding]:
    """Scheduled messages to one subscriber each, `PER_PROJECT` of a project."""
    async with _service(url) as service:
        clock = service.clock
        assert isinstance(clock, FakeClock)
        for _ in range(max(1, count // PER_PROJECT)):
            project_id, client = await _project(service)
            await client.aclose()
            now_ms = clock.now_ms()
            rows = [
                {
                    "project_id": project_id,
                    "record_id": new_id("sch"),
                    "kind": "scheduled",
                    "status": "scheduled",
                    "message": '{"text": "Hello"}',
                    "subscriber_id": subscriber_id,
                    "send_at_ms": now_ms + HOUR_MS,
                    "due_at_ms": now_ms + HOUR_MS,
                    "created_at_ms": now_ms,
                }
                for subscriber_id in await _people(service, project_id, PER_PROJECT)
            ]
            await _insert(service, "scheduling_records", rows)
        clock.advance(3601)
        took = await _timed(lambda: run_due(service), profile)
        async with service.db.read() as tx:
            queued = await tx.fetch_val("SELECT COUNT(*) FROM core_messages")
        assert queued == count, f"{queued} of {count} were taken up"
    return _findings(f"scheduled, {kind}", count, took)


async def run_due(service: Service) -> None:
    """All that is due, as the job does it."""
    most = service.section(SchedulingSettings).batch
    while True:
        async with service.db.read() as tx:
            found = await store.list_due(tx, service.clock.now_ms(), most)
        await service.get(Running).run(*found)
        if len(found) < most:
            return


#: What can be measured, by `--only`.
KINDS_OF_WORK = ("text", "template", "messages", "pauses")

#: The same, as a step's message.
TEXT = {"en": "Hello", "ru": "Здравствуйте"}


def main(arguments: list[str]) -> list[Finding]:
    """Measures, and prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=10_000, help="of the steps due at once")
    parser.add_argument("--chain", type=int, default=100_000, help="people of the paused chain")
    parser.add_argument("--messages", type=int, default=10_000, help="scheduled ones due at once")
    parser.add_argument("--databases", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--only", nargs="+", choices=KINDS_OF_WORK, default=list(KINDS_OF_WORK))
    parser.add_argument("--profile", action="store_true", help="says where the time went")
    options = parser.parse_args(arguments)
    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="uptake-", dir=".") as folder:
        databases = Databases(Path(folder).resolve(), options.databases)
        try:
            for kind in databases.kinds:
                for work in options.only:
                    url = databases.new(kind)
                    found += asyncio.run(_measured(work, url, kind, options))
        finally:
            databases.drop_all()
    for one in found:
        sys.stdout.write(f"{one.name:60} {one.value:10.3f} {one.bound}\n")
    return found


async def _measured(work: str, url: str, kind: str, options: argparse.Namespace) -> list[Finding]:
    if work == "pauses":
        return await pauses(url, kind, options.chain)
    if work == "messages":
        return await messages(url, kind, options.messages, options.profile)
    message = {"template": "hello"} if work == "template" else {"text": TEXT}
    return await steps(url, kind, options.people, options.profile, **message)


if __name__ == "__main__":
    main(sys.argv[1:])
