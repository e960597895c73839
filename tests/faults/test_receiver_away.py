"""A webhook's receiver that is away: the plan of retries stays, and each event arrives once in the end."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.events import NewEvent
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_webhooks import plugin
from msgsvc_webhooks.models import CreateWebhookBody
from msgsvc_webhooks.retries import BURST_S, JITTER, LADDER_S
from msgsvc_webhooks.service import Webhooks
from tests.contracts.proxy import Proxy
from tests.faults import receivers
from tests.faults.conftest import Figure, Rounds
from tests.faults.names import Names
from tests.faults.outage import MODES, Mode, away
from tests.process import Server, start_server

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"),
        [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
        indirect=True,
    ),
]

#: Seconds from the first attempt to each later one (decision 0075).
PLAN_S = (1.0, 3.0, 7.0, *LADDER_S)

#: Attempts that fail before the receiver is back: the burst, and the ladder as far as ten minutes.
FAILED = 7

#: Seconds of an attempt: enough for one that arrives, on a busy machine.
ATTEMPT_S = 2.0


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the receiver got, a line for each request."""
    return tmp_path / "requests.jsonl"


@pytest.fixture
def receiver(log: Path) -> Iterator[Server]:
    command = [sys.executable, receivers.__file__, str(log)]
    server = start_server(command, log.with_suffix(".log"), {})
    yield server
    server.kill()


@pytest.fixture
async def proxy(receiver: Server) -> AsyncIterator[Proxy]:
    async with Proxy(receiver.url).running() as running:
        yield running
        running.go_on()


def received(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


async def pending_at_ms(service: Service) -> int | None:
    """When the next delivery is due that is still on its way."""
    async with service.db.read() as tx:
        found: int | None = await tx.fetch_val(
            "SELECT MIN(next_attempt_at_ms) AS due_ms FROM webhooks_deliveries"
            " WHERE status = 'pending'"
        )
    return found


async def attempts(service: Service) -> dict[str, list[Any]]:
    """The attempts of each delivery, the first first."""
    found: dict[str, list[Any]] = defaultdict(list)
    async with service.db.read() as tx:
        for row in await tx.fetch_all("SELECT * FROM webhooks_attempts ORDER BY number"):
            found[row["delivery_id"]].append(row)
    return found


@pytest.mark.parametrize("mode", MODES)
async def test_each_event_arrives_once_by_the_plan_when_the_receiver_is_back(
    make_service: ServiceFactory,
    clock: FakeClock,
    names: Names,
    proxy: Proxy,
    log: Path,
    rounds: Rounds,
    figure: Figure,
    mode: Mode,
) -> None:
    count = rounds(short=8, long=1000)
    service = await make_service(
        extra_plugins=[("webhooks", plugin)],
        webhooks={
            "allow_http": True,
            "allow_cidrs": ["127.0.0.0/8"],
            "attempt_timeout_s": ATTEMPT_S,
        },
    )
    project_id = (await service.projects.create("Shop")).project_id
    url = f"{proxy.url_by('hook.test')}/ok"
    async with service.db.transaction() as tx:
        await service.get(Webhooks).create(tx, project_id, CreateWebhookBody(url=url))
    async with away(proxy, names, mode):
        async with service.db.transaction() as tx:
            new = [
                NewEvent(project_id, "event.tracked", {"name": "n", "properties": {"n": n}})
                for n in range(count)
            ]
            await service.events.emit_many(tx, new)
        await settled(service, timeout_s=300)
        while min(map(len, (failed := await attempts(service)).values())) < FAILED:
            await _go_on(service, clock)
        shown = (await getattr(service, "worker", service).metrics.scrape())[0].decode()
        meanwhile = received(log)
        # What it was sent while it was silent went with its host.
        proxy.cut()
    while await pending_at_ms(service) is not None:
        await _go_on(service, clock)
    made = await attempts(service)
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT delivery_id, status FROM webhooks_deliveries")
    got = received(log)
    by_id = Counter(request["headers"]["x-service-delivery-id"] for request in got)
    numbers = Counter(json.loads(request["body"])["data"]["properties"]["n"] for request in got)

    figure(
        f"a receiver away for an hour, {mode} ({service.db.dialect})",
        f"{count} events: {len(numbers)} arrived, {sum(by_id.values()) - len(by_id)} twice, after"
        f" {min(map(len, made.values()))} to {max(map(len, made.values()))} attempts",
        events=count,
        arrived=len(numbers),
        twice=sum(by_id.values()) - len(by_id),
    )
    assert meanwhile == []
    assert {row["status"] for row in rows} == {"delivered"}
    assert set(by_id) == {row["delivery_id"] for row in rows}
    assert numbers == Counter(range(count))
    for tries in made.values():
        assert all(each["error"] and each["status_code"] is None for each in tries[:-1])
        check_plan([(each["started_at_ms"] - tries[0]["started_at_ms"]) / 1000 for each in tries])
    retried = 'msgsvc_webhooks_attempts_total{outcome="retried"}'
    assert f"{retried} {float(sum(map(len, failed.values())))}" in shown
    assert mode != "unresolved" or names.failed > 0


def check_plan(times_s: list[float]) -> None:
    """Each attempt came when the plan says; a step of the ladder is spread by a tenth."""
    assert len(times_s) == FAILED + 1
    for time_s, planned_s in zip(times_s[1:], PLAN_S, strict=False):
        spread = 0.0 if planned_s <= sum(BURST_S) else JITTER * planned_s
        assert abs(time_s - planned_s) <= spread + 0.01


async def _go_on(service: Service, clock: FakeClock) -> None:
    """To when the next attempt is due, and what is due then."""
    due_ms = await pending_at_ms(service)
    assert due_ms is not None
    clock.advance(max(0, due_ms - clock.now_ms()) / 1000)
    await settled(service, timeout_s=300)
