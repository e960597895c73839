"""Wake-ups by dramatiq: sooner than any sweep, few, and never missed when they are missing."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress

import pytest
import structlog
from pika.exceptions import AMQPError

from msgsvc_core.config.settings import Settings
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs import broker as broker_module
from msgsvc_core.jobs.broker import Announcer, Listener, close_broker, open_broker
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.runners import ServiceWithWorker, TestRunner
from msgsvc_devkit.services import SECRET_KEY

by_each_broker = pytest.mark.parametrize("runner", ["redis", "rabbitmq"], indirect=True)
on_each_broker = pytest.mark.parametrize(
    ("backend", "runner"), [("postgresql", "redis"), ("postgresql", "rabbitmq")], indirect=True
)

#: No sweep comes within a test.
NEVER_S = 600

#: Seconds that nothing takes which does not wait for a broker that never comes.
SOON_S = patient(30)


class Work:
    """A plugin whose job `work` counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("work", self._run)]

    async def _run(self, _ctx: JobContext, jobs: Sequence[Job]) -> None:
        self.runs += len(jobs)


async def enqueue(service: Service) -> None:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("work"))


@on_each_broker
async def test_a_worker_hears_of_a_job_before_any_sweep(make_service: ServiceFactory) -> None:
    work = Work()
    service = await make_service(extra_plugins=[("work", work)], jobs={"sweep_s": NEVER_S})
    await settled(service)

    await enqueue(service)
    await settled(service)

    assert work.runs == 1


@pytest.fixture
def settings(runner: TestRunner) -> Settings:
    """Those of a service on the broker of `runner`."""
    return Settings(
        secret_keys=(SECRET_KEY,),
        database_url="postgresql://unused/unused",
        jobs=runner.job_settings,
    )


@pytest.fixture
async def announcer(settings: Settings) -> AsyncIterator[Announcer]:
    """A started announcer, as an API process has one."""
    broker, queue = open_broker(settings)
    made = Announcer(broker, queue)
    made.start()
    yield made
    await asyncio.to_thread(made.stop)
    close_broker(broker)


@by_each_broker
async def test_a_thousand_jobs_of_a_lane_are_a_few_messages(
    settings: Settings, announcer: Announcer
) -> None:
    heard: list[str] = []
    broker, queue = open_broker(settings)
    listener = Listener(broker, queue, heard.append)
    listener.start()
    began = time.monotonic()
    for number in range(1000):
        announcer.announce("lane")
        if number % 100 == 0:
            await asyncio.sleep(0.001)  # as requests come: not all in one turn of the loop
    took_s = time.monotonic() - began
    announcer.announce("last")

    async def heard_last() -> bool:
        return "last" in heard

    await until(heard_last)
    await asyncio.to_thread(listener.stop)
    close_broker(broker)

    # One at once, one a pause, and one for what came in the last of them.
    assert 1 <= heard.count("lane") <= took_s / broker_module.PAUSE_S + 2


@by_each_broker
async def test_a_connection_that_the_broker_closed_delays_no_message(
    settings: Settings, announcer: Announcer
) -> None:
    heard: list[str] = []
    broker, queue = open_broker(settings)
    listener = Listener(broker, queue, heard.append)
    listener.start()

    async def hears(lane: str) -> bool:
        announcer.announce(lane)

        async def heard_it() -> bool:
            return lane in heard

        return await until(heard_it)

    try:
        first = await hears("first")
        # As RabbitMQ does with one that was idle for minutes.
        for connection in list(getattr(announcer.broker, "connections", ())):
            # The announcer's own thread may read from it, or have begun to close it.
            with suppress(AMQPError):
                connection.close()
        second = await hears("second")
    finally:
        # A listener that is left behind fails a later test by its open sockets.
        await asyncio.to_thread(listener.stop)
        close_broker(broker)

    assert first
    assert second


@by_each_broker
async def test_messages_do_not_pile_up_where_nobody_takes_them(
    settings: Settings, announcer: Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "MOST_WAITING", 5)
    monkeypatch.setattr(broker_module, "COUNT_EVERY_S", 0)
    for _ in range(20):
        announcer.announce("lane")
        await asyncio.sleep(0.03)  # more than the announcer's pause, so each could be a message
    heard: list[str] = []
    broker, queue = open_broker(settings)
    listener = Listener(broker, queue, heard.append)
    listener.start()

    async def all_heard() -> bool:
        return len(heard) >= 5

    await until(all_heard)
    await asyncio.to_thread(listener.stop)
    close_broker(broker)

    assert len(heard) == 5


@pytest.fixture
def closed_port() -> Iterator[int]:
    # Bound and not listening: nobody else gets it, and who connects is refused.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}/0", "amqp://127.0.0.1:{}"])
async def test_a_broker_that_is_away_delays_work_and_fails_nothing(
    make_service: ServiceFactory, url: str, closed_port: int
) -> None:
    work = Work()
    settings = {
        "runner": "dramatiq",
        "broker_url": url.format(closed_port),
        "sweep_s": 0.05,
    }
    with structlog.testing.capture_logs() as logs:
        service = await make_service(extra_plugins=[("work", work)], jobs=settings)
        slowest_s = 0.0
        for _ in range(20):
            began = time.monotonic()
            await enqueue(service)
            slowest_s = max(slowest_s, time.monotonic() - began)
            await asyncio.sleep(0.01)
        await settled(service)
        began = time.monotonic()
        await service.stop()
        stopped_s = time.monotonic() - began

    assert isinstance(service, ServiceWithWorker)
    assert work.runs == 20
    assert slowest_s < SOON_S
    assert stopped_s < SOON_S
    # Once by each process that sends: the one that serves, and the worker only if it passed work on.
    assert 1 <= [entry["event"] for entry in logs].count("broker_away") <= 2


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_rabbitmq_without_its_client_is_refused_with_what_to_install(
    make_service: ServiceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dramatiq.brokers.rabbitmq", None)

    with pytest.raises(SettingsError, match=r"msgsvc-core\[rabbitmq\]"):
        await make_service(jobs={"runner": "dramatiq", "broker_url": "amqp://127.0.0.1"})


def test_who_runs_jobs_embedded_loads_no_dramatiq() -> None:
    code = "import sys, msgsvc_core.cli.main; sys.exit('dramatiq' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
