"""Redis, in which limits are counted and by which workers are woken, is away in the midst of work."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from msgsvc_core.channels import Pace
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.runners import redis_url
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
    pytest.mark.parametrize(
        ("backend", "runner"), [("postgresql", "redis")], indirect=True, ids=["dramatiq"]
    ),
]

#: Seconds in which an accepted message is shown without anybody who wakes a worker: a sweep, and its work.
SHOWN_S = 10.0

#: Seconds that a request takes at most: Redis gets 0.25 s for an answer. In the short form it is less than
#: the outage, which a request that waits for Redis would wait for.
ANSWERED_S, SHORT_ANSWERED_S = 2.0, 6.0

#: Seconds in which the service says that Redis is back.
BACK_S = 10.0

CHATS = 6

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with Proxy(redis_url()).running() as running:
        yield running
        running.go_on()


@pytest.mark.parametrize("mode", MODES)
async def test_work_goes_on_in_order_while_redis_is_away(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    proxy: Proxy,
    names: Names,
    rounds: Rounds,
    figure: Figure,
    mode: Mode,
) -> None:
    count, each_s = rounds(short=1, long=5), rounds(short=8, long=12)
    recorder, url = Recorder(Pace()), proxy.url_by("redis.test")
    service = await make_service(
        extra_plugins=[("recorder", recorder)],
        use_clock=SystemClock(),
        redis_url=url,
        channels={"messenger_a": {"plugin": "recorder"}},
        jobs={"broker_url": url, "sweep_s": 0.5},
    )
    tenant = await make_tenant(service)
    people = await subscribed(service, tenant.project.project_id, CHATS)
    during: Counter[tuple[int, str, bool]] = Counter()
    details: set[str] = set()
    scrapes: list[str] = []
    shown_meanwhile = 0
    async with client_at(service, tenant.key) as client:
        senders = Senders(client, people)
        async with senders.at_work():
            for _ in range(count):
                await until(partial(has_called, recorder, len(recorder.calls) + 20))
                async with away(proxy, names, mode):
                    ends_s = time.monotonic() + each_s
                    before = len(recorder.calls)
                    while time.monotonic() < ends_s:
                        answer = await client.get("/readyz")
                        check = answer.json()["checks"]["redis"]
                        during[answer.status_code, answer.json()["status"], check["ok"]] += 1
                        details.add(check["detail"])
                        await asyncio.sleep(0.2)
                    # An answer is used again for some seconds; long before the end it is a new one.
                    scrapes.append((await service.metrics.scrape())[0].decode())
                    more = partial(has_called, recorder, len(recorder.calls) + CHATS)
                    await until(more, timeout_s=rounds(short=PATIENCE_S, long=SHOWN_S))
                    shown_meanwhile += len(recorder.calls) - before
                patience_s = rounds(short=PATIENCE_S, long=BACK_S)
                await until(partial(is_ready, client), timeout_s=patience_s)
        await until(lambda: are_final(service, senders), timeout_s=60)
        found = await ledger(service, senders, recorder)

    figure(
        f"Redis away for {each_s} s, {mode}",
        f"{count} times, {found}; {shown_meanwhile} shown meanwhile, slowest answer"
        f" {senders.slowest_s:.2f} s",
        times=count,
        accepted=len(senders.accepted),
        twice=len(found.twice),
        slowest_s=round(senders.slowest_s, 2),
    )
    found.check(allows_doubt=False)
    assert set(senders.answers) == {202}
    assert senders.slowest_s < rounds(short=SHORT_ANSWERED_S, long=ANSWERED_S)
    assert set(during) == {(200, "degraded", False)}
    assert all("msgsvc_redis_up 0.0" in text for text in scrapes)
    assert all(detail.startswith("limits are counted per process: ") for detail in details)
