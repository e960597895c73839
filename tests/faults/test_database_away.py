"""PostgreSQL that is away for longer than every lease, in the midst of work, and comes back."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from msgsvc_core.channels import Pace
from msgsvc_core.db import postgres_batches, postgres_notices, postgres_pool, tx
from msgsvc_core.http import operations
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.work import PATIENCE_S
from tests.contracts.proxy import Proxy
from tests.faults.conftest import Figure, Rounds
from tests.faults.names import Names
from tests.faults.outage import (
    MODES,
    Mode,
    Senders,
    are_final,
    away,
    client_at,
    has_called,
    is_ready,
    ledger,
)
from tests.faults.recorder import Recorder, subscribed

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("backend", ["postgresql"], indirect=True),
    pytest.mark.parametrize("runner", ["embedded", "redis"], indirect=True),
]

#: Seconds of a lease, and of each bound, whose own values would make this test take minutes.
LEASE_S, BOUND_S = 1.0, 1.0

#: Seconds in which the service is back.
BACK_S = 10.0

CHATS = 6

MakeTenant = Callable[..., Awaitable[Tenant]]


def shorten_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is started after it: the others, which are not cut off, wait for a slow machine."""
    for name in ("CONNECT_S", "STATEMENT_S", "ACQUIRE_S", "GIVE_BACK_S", "CLOSE_S"):
        monkeypatch.setattr(postgres_pool, name, BOUND_S)
    for module in (tx, postgres_batches):
        monkeypatch.setattr(module, "UNDO_S", BOUND_S)
    for name in ("CHECK_S", "PATIENCE_S", "RETRY_S"):
        monkeypatch.setattr(postgres_notices, name, BOUND_S)
    monkeypatch.setattr(operations, "DATABASE_TIMEOUT_S", BOUND_S)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
async def witness(make_service: ServiceFactory) -> Service:
    """Looks at the database directly, and works on nothing."""
    recorder = Recorder(Pace())
    return await make_service(
        extra_plugins=[("recorder", recorder)],
        channels={"messenger_a": {"plugin": "recorder"}},
        jobs={"runner": "none"},
    )


@pytest.fixture
async def proxy(witness: Service) -> AsyncIterator[Proxy]:
    async with Proxy(witness.settings.database_url).running() as running:
        yield running
        # Whoever stops then must not wait for the other end.
        running.go_on()


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
@pytest.mark.parametrize("mode", MODES)
async def test_nothing_is_lost_or_shown_twice_while_the_database_is_away(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    witness: Service,
    proxy: Proxy,
    names: Names,
    monkeypatch: pytest.MonkeyPatch,
    rounds: Rounds,
    figure: Figure,
    mode: Mode,
    beside: bool,
) -> None:
    count, each_s = rounds(short=1, long=5), rounds(short=3, long=12)
    recorder = Recorder(Pace())

    async def start(url: str) -> Service:
        return await make_service(
            extra_plugins=[("recorder", recorder)],
            use_clock=SystemClock(),
            database_url=url,
            channels={"messenger_a": {"plugin": "recorder"}},
            jobs={"lease_s": LEASE_S, "sweep_s": 0.1},
        )

    if beside:
        # It sees the leases of the one that is cut off end, and takes over.
        await start(proxy.direct_url)
    shorten_bounds(monkeypatch)
    service = await start(proxy.url_by("database.test"))
    tenant = await make_tenant(witness)
    people = await subscribed(witness, tenant.project.project_id, CHATS)
    during: list[tuple[int, bool]] = []
    shown: list[str] = []
    slowest_back_s = 0.0
    async with client_at(service, tenant.key) as client:
        senders = Senders(client, people)
        async with senders.at_work():
            for _ in range(count):
                await until(partial(has_called, recorder, len(recorder.calls) + 20))
                async with away(proxy, names, mode):
                    ends_s = time.monotonic() + each_s
                    while time.monotonic() < ends_s:
                        answer = await client.get("/readyz")
                        check = answer.json()["checks"]["database"]
                        during.append((answer.status_code, check["ok"]))
                        await asyncio.sleep(LEASE_S / 4)
                    shown.append((await service.metrics.scrape())[0].decode())
                back_at_s = time.monotonic()
                patience_s = rounds(short=PATIENCE_S, long=BACK_S)
                await until(lambda: is_ready(client), timeout_s=patience_s)
                await until(partial(has_called, recorder, len(recorder.calls) + 20))
                slowest_back_s = max(slowest_back_s, time.monotonic() - back_at_s)
    await until(lambda: are_final(witness, senders), timeout_s=60)
    found = await ledger(witness, senders, recorder)

    figure(
        f"PostgreSQL away for {each_s} s, {mode}, {'beside another' if beside else 'alone'}",
        f"{count} times, {found}; {senders.answers[503]} answered 503, the slowest after"
        f" {senders.slowest_s:.1f} s; at work again after {slowest_back_s:.1f} s",
        times=count,
        accepted=len(senders.accepted),
        unknown=found.statuses["unknown"],
        twice=len(found.twice),
        back_s=round(slowest_back_s, 2),
    )
    found.check(allows_doubt=True)
    assert senders.answers[503] > 0
    # The first may still have been answered by what was under way.
    assert set(during[1:]) == {(503, False)}
    assert all("msgsvc_database_up 0.0" in text for text in shown)
    assert mode != "unresolved" or names.failed > 0
