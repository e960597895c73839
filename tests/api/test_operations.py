"""What an operator's tools see: alive, ready, and why not."""

from pathlib import Path

import httpx2
import pytest

from msgsvc_core.channels import ChannelHealth
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob, store
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel
from msgsvc_devkit.fixtures import ServiceFactory, Tenant


async def test_a_living_process_says_so_without_a_key(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/healthz", headers={"Authorization": ""})

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_ready_service_shows_each_of_its_checks(
    client: httpx2.AsyncClient, service: Service
) -> None:
    answer = await client.get("/readyz", headers={"Authorization": ""})

    assert answer.status_code == 200
    checks = answer.json()["checks"]
    assert set(checks) == {"database", "queue", "channel:messenger_a", "channel:messenger_b"}
    assert checks["database"] == {"ok": True, "detail": service.db.dialect}
    assert set(checks["queue"]["detail"]) == {"ready", "delayed", "running", "dead"}


async def test_readiness_says_that_secret_keys_were_lost_and_the_process_serves_on(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    for key in ("the-first-key-the-first-key-the-first-key", "another-key-another-key-another-key"):
        settings = {"database_url": url, "secret_keys": [key], "plugins": ["sandbox"]}
        async with Service(Settings.model_validate(settings)) as service:
            transport = httpx2.ASGITransport(app=service.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
                answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert not answer.json()["checks"]["secret_keys"]["ok"]


async def test_jobs_for_later_are_not_counted_among_those_that_are_ready(
    client: httpx2.AsyncClient, service: Service, clock: FakeClock
) -> None:
    async with service.db.transaction() as tx:
        later_ms = clock.now_ms() + 3_600_000
        await service.jobs.enqueue(tx, NewJob("core.purge", run_at_ms=later_ms, lane="default"))
        before = await store.count_by_state(tx, clock.now_ms())
        at_its_time = await store.count_by_state(tx, later_ms)

    assert before["delayed"] >= 1
    assert at_its_time.get("delayed", 0) < before["delayed"]
    assert at_its_time["ready"] > before["ready"]


async def test_probes_that_come_close_together_count_the_jobs_once(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[dict[str, int]] = []
    count = store.count_by_state

    async def counted(tx: Tx, now_ms: int) -> dict[str, int]:
        counts.append(await count(tx, now_ms))
        return counts[-1]

    monkeypatch.setattr(store, "count_by_state", counted)
    shown = [(await client.get("/readyz")).json()["checks"]["queue"] for _ in range(3)]

    assert len(counts) == 1
    assert shown == [shown[0]] * 3


async def test_a_service_without_its_database_lives_but_is_not_ready(
    client: httpx2.AsyncClient, service: Service
) -> None:
    await client.get("/readyz")
    await service.db.disconnect()

    alive, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (alive.status_code, ready.status_code) == (200, 503)
    assert ready.headers["Retry-After"] == "5"
    assert ready.json()["checks"]["database"]["ok"] is False
    await service.db.connect()


async def test_a_channel_that_does_not_work_is_a_detail_of_readiness(
    client: httpx2.AsyncClient, channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused() -> ChannelHealth:
        return ChannelHealth(False, "the token was revoked")

    monkeypatch.setattr(channel, "check", refused)

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    check = answer.json()["checks"]["channel:messenger_a"]
    assert check == {"ok": False, "detail": "the token was revoked"}


async def test_a_channel_whose_check_fails_is_a_detail_of_readiness(
    client: httpx2.AsyncClient, channel: RecordingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> ChannelHealth:
        raise ZeroDivisionError

    monkeypatch.setattr(channel, "check", broken)

    answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["channel:messenger_a"]["ok"] is False


async def test_a_platform_is_asked_once_for_many_probes(
    client: httpx2.AsyncClient,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    async def count() -> ChannelHealth:
        nonlocal asked
        asked += 1
        return ChannelHealth(True)

    monkeypatch.setattr(channel, "check", count)
    for _ in range(5):
        await client.get("/readyz")
    within = asked
    clock.advance(30)
    await client.get("/readyz")

    assert (within, asked) == (1, 2)


async def test_probes_do_not_use_up_a_projects_rate(
    client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    for _ in range(5):
        await client.get("/readyz")

    answer = await client.get("/v1/project")

    assert answer.headers["X-RateLimit-Remaining"] == "99999"


async def test_details_of_readiness_are_the_operators(service: Service) -> None:
    seen = {}
    for address in ("127.0.0.1", "203.0.113.7"):
        transport = httpx2.ASGITransport(app=service.app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
            answer = await client.get("/readyz")
        seen[address] = (answer.status_code, set(answer.json()))

    assert seen == {"127.0.0.1": (200, {"status", "checks"}), "203.0.113.7": (200, {"status"})}


async def test_the_operator_is_told_that_several_processes_count_requests_alone(
    service: Service, make_service: ServiceFactory, client: httpx2.AsyncClient
) -> None:
    alone = (await client.get("/readyz")).json()
    other = await make_service(database_url=service.settings.database_url)
    app = httpx2.ASGITransport(app=other.app)
    async with httpx2.AsyncClient(transport=app, base_url="http://127.0.0.1") as beside:
        two = (await beside.get("/readyz")).json()

    assert "limits" not in alone["checks"]
    assert two["status"] == alone["status"]
    assert two["checks"]["limits"]["detail"].startswith("each of 2 processes counts")
