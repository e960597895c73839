"""A project whose webhooks' names resolve slowly, and the others."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import until
from plugins.areas.webhooks.tests.conftest import PATIENT

#: Webhooks of the project whose names are slow: more than all threads for lookups.
SLOW = 70


class NameServer:
    """Leads `good.example` to loopback at once, and says nothing of names under `slow...` until told to."""

    def __init__(self) -> None:
        self.slow: set[str] = set()
        self.go_on = threading.Event()
        self._ask = socket.getaddrinfo

    def getaddrinfo(self, host: Any, *arguments: Any, **options: Any) -> Any:
        if ".slow" in str(host):
            self.slow.add(host)
            self.go_on.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        found = "127.0.0.1" if str(host).endswith("good.example") else host
        return self._ask(found, *arguments, **options)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    yield made
    made.go_on.set()


@pytest.mark.parametrize(
    "service", [{**PATIENT, "endpoints_per_project": SLOW, "attempt_timeout_s": 30}], indirect=True
)
@pytest.mark.parametrize(
    "slow_host", ["h{}.slow.example", "h.slow{}.example"], ids=["of one domain", "of many domains"]
)
async def test_slow_names_of_a_project_do_not_delay_the_deliveries_of_another(
    names: NameServer,
    service: Service,
    add_webhook: Any,
    emit: Any,
    journal: Any,
    make_receiver: Any,
    make_tenant: Any,
    slow_host: str,
) -> None:
    def named(url: str) -> str:
        return url.replace("127.0.0.1", "hooks.good.example")

    first, second = await make_receiver(), await make_receiver()
    await add_webhook(named(first.url), events=["subscription.created"])
    await emit()

    async def is_known() -> bool:
        return bool(first.received)

    await until(is_known)
    bad = await make_tenant(service, "Bad")
    for number in range(SLOW):
        url = f"http://{slow_host.format(number)}/"
        assert (await bad.client.post("/v1/webhooks", json={"url": url})).status_code == 201
    async with service.db.transaction() as tx:
        project_id = bad.project.project_id
        await service.events.emit(tx, project_id, "subscription.created", {"source": "api"})

    async def slow_names_are_asked() -> bool:
        return len(names.slow) >= 4

    await until(slow_names_are_asked)
    # Another port: what the client remembers of the name is not asked.
    webhook = await add_webhook(named(second.url), events=["subscription.deleted"])
    await emit("subscription.deleted", source="api", reason="left")

    async def is_delivered() -> bool:
        return [one["status"] for one in await journal(webhook)] == ["delivered"]

    await until(is_delivered, timeout_s=20)
    (delivery,) = await journal(webhook)
    assert [attempt["error"] for attempt in delivery["attempts"]] == [None]
    assert not names.go_on.is_set()
