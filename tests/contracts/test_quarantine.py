"""A restored copy in quarantine sends nothing of what its original sends too."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core.cli.outbox import withdraw_due
from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Scope, backup, restore
from msgsvc_core.jobs.inspection import count_waiting
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.webhooks import WebhookReceiver
from tests.api.subscribing import subscribing

HOUR_S = 3600


def unseen(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def sent_by(service: Service) -> list[str]:
    """What the messenger was given by a service."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    return [str(each.message.text) for each in channel.sent]


def client_of(service: Service, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {key}"},
    )


async def jobs_of(service: Service) -> set[tuple[Any, ...]]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT job_id, lane, state, attempts, run_at_ms FROM core_jobs")
    return {tuple(row) for row in rows}


@dataclass(frozen=True, slots=True)
class Full:
    """A service that runs no jobs, with messages, a broadcast and webhooks in its outbox."""

    service: Service
    key: str
    settings: dict[str, Any]

    @property
    def url(self) -> str:
        return self.service.settings.database_url

    @property
    def scope(self) -> Scope:
        return Scope(self.service.migrations, CORE_NOT_COPIED)


@pytest.fixture
async def full(make_service: ServiceFactory, webhook_receiver: WebhookReceiver) -> Full:
    settings: dict[str, Any] = {
        "plugins": ("webhooks", "broadcasts"),
        "webhooks": {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
    }
    service = await make_service(**settings)
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "site", ("*",))
    async with client_of(service, key) as client:
        await subscribing(service, Tenant(project, key, client))("Ann", external_id="ann")
        hook = await client.post("/v1/webhooks", json={"url": webhook_receiver.url})
        webhook_receiver.secret = hook.json()["secret"]
    await settled(service)
    await service.stop()
    url = service.settings.database_url
    idle = await make_service(database_url=url, **settings, jobs={"runner": "none"})
    async with client_of(idle, key) as client:
        for number in range(3):
            await accepted(client, "/v1/send", external_id="ann", text=f"Message {number}")
        await accepted(client, "/v1/broadcast", audience={"all": True}, text="To all")
        await accepted(client, "/v1/events", external_id="ann", name="order.paid")
    return Full(idle, key, settings)


async def accepted(client: httpx2.AsyncClient, path: str, **body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def test_nothing_is_sent_twice_in_quarantine(
    full: Full,
    make_service: ServiceFactory,
    webhook_receiver: WebhookReceiver,
    clock: FakeClock,
    backend: Any,
    tmp_path: Path,
) -> None:
    file = tmp_path / "full.backup"
    target = await backend.fresh(full.service.migrations)
    label = {"release": "1.0", "created_at": "2026-01-01T00:00:00.000Z"}
    await backup(full.url, file, full.scope, unseen, **label)
    await full.service.stop()
    await restore(file, target, full.scope, unseen)
    original = await make_service(database_url=full.url, **full.settings)
    await settled(original)
    told = len(webhook_receiver.requests)

    copy = await make_service(database_url=target, quarantine=True, **full.settings)
    waiting = await jobs_of(copy)
    clock.advance(HOUR_S)
    async with client_of(copy, full.key) as client:
        message = await accepted(client, "/v1/send", external_id="ann", text="In quarantine")
        shown = await client.get(f"/v1/messages/{message['message_id']}")
        people = await client.get("/v1/subscribers")
        called = await client.post("/hooks/messenger_a", content=b"{}")
        ready = await client.get("/readyz")
    still_waiting = await jobs_of(copy)

    assert sorted(sent_by(original)) == ["Message 0", "Message 1", "Message 2", "To all"]
    assert told >= 5
    assert sent_by(copy) == []
    assert len(webhook_receiver.requests) == told
    assert len(waiting) >= 5
    assert waiting < still_waiting
    assert shown.json()["status"] == "queued"
    assert [each["external_id"] for each in people.json()["data"]] == ["ann"]
    assert called.status_code == 503
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert "nothing is sent" in ready.json()["checks"]["quarantine"]["detail"]
    assert ready.json()["checks"]["channel:messenger_a"]["detail"].startswith("not asked")

    # Without quarantine it would all go out again: what was asserted above can fail.
    await copy.stop()
    live = await make_service(database_url=target, **full.settings)
    await settled(live)

    assert sorted(sent_by(live)) == sorted([*sent_by(original), "In quarantine"])
    assert len(webhook_receiver.requests) > told


async def _claim_message(service: Service, *, until_ms: int) -> None:
    """Has a process, which ended since, been sending one of the messages when the backup was made."""
    async with service.db.transaction() as tx:
        job_id = await tx.fetch_val(
            "SELECT MIN(job_id) FROM core_jobs WHERE name = 'message.deliver'"
        )
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_1', leased_until_ms = :until_ms"
            " WHERE job_id = :job_id",
            {"job_id": job_id, "until_ms": until_ms},
        )
        payload = await tx.fetch_val(
            "SELECT payload FROM core_jobs WHERE job_id = :job_id", {"job_id": job_id}
        )
        await tx.execute(
            "UPDATE core_messages SET status = 'sending' WHERE message_id = :message_id",
            {"message_id": json.loads(payload)["message_id"]},
        )


async def test_a_copy_that_becomes_the_original_sends_nothing_twice_after_its_outbox_was_cancelled(
    full: Full,
    make_service: ServiceFactory,
    webhook_receiver: WebhookReceiver,
    clock: FakeClock,
    backend: Any,
    tmp_path: Path,
) -> None:
    file = tmp_path / "full.backup"
    target = await backend.fresh(full.service.migrations)
    label = {"release": "1.0", "created_at": "2026-01-01T00:00:00.000Z"}
    await backup(full.url, file, full.scope, unseen, **label)
    await full.service.stop()
    original = await make_service(database_url=full.url, **full.settings)
    await settled(original)
    await original.stop()
    clock.advance(60)
    stopped_ms = clock.now_ms()
    told = {request.headers["x-service-delivery-id"] for request in webhook_receiver.requests}

    await restore(file, target, full.scope, unseen)
    copy = await make_service(database_url=target, quarantine=True, **full.settings)
    await _claim_message(copy, until_ms=stopped_ms)
    async with copy.db.read() as tx:
        waiting = {each.name: each for each in await count_waiting(tx, stopped_ms)}
    withdrawn, refused = await withdraw_due(copy, stopped_ms)
    async with client_of(copy, full.key) as client:
        await accepted(client, "/v1/send", external_id="ann", text="After the restore")
        messages = (await client.get("/v1/messages")).json()["data"]
    await copy.stop()
    before = len(webhook_receiver.requests)
    live = await make_service(database_url=target, **full.settings)
    await settled(live)
    async with live.db.read() as tx:
        broadcasts = [each.status for each in await live.mailings.list_any(tx, ended=True, limit=9)]
    events = [json.loads(request.body) for request in webhook_receiver.requests[before:]]
    repeated = [
        event["event"]
        for event, request in zip(events, webhook_receiver.requests[before:], strict=True)
        if request.headers["x-service-delivery-id"] not in told
    ]

    assert sorted(sent_by(original)) == ["Message 0", "Message 1", "Message 2", "To all"]
    messages_waiting = waiting["message.deliver"]
    assert (messages_waiting.count, messages_waiting.claimed) == (2, 1)
    assert not refused
    assert withdrawn["message.deliver"] == 3
    assert withdrawn["mailing.expand"] == 1
    assert sorted(each["status"] for each in messages) == ["queued", *["unknown"] * 3]
    assert sent_by(live) == ["After the restore"]
    assert broadcasts == ["paused"]
    # What the receiver has not had: three messages in doubt, and the new one.
    assert sorted(repeated) == [*["delivery.failed"] * 3, "delivery.success"]


async def test_a_copy_that_becomes_the_original_repeats_no_schedule_and_no_step(
    make_service: ServiceFactory, clock: FakeClock, backend: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "plugins": ("drip", "scheduling"),
        "drip": {"look_s": 0.001},
    }
    service = await make_service(**settings)
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "site", ("*",))
    async with client_of(service, key) as client:
        await subscribing(service, Tenant(project, key, client))("Ann", external_id="ann")
        await _plan(client, in_one_hour=to_rfc3339(clock.now_ms() + HOUR_S * 1000))
    url, file = service.settings.database_url, tmp_path / "b"
    target = await backend.fresh(service.migrations)
    scope = Scope(service.migrations, CORE_NOT_COPIED)
    await service.stop()
    label = {"release": "1.0", "created_at": "2026-01-01T00:00:00.000Z"}
    await backup(url, file, scope, unseen, **label)
    original = await make_service(database_url=url, **settings)
    # The second step follows the first by an hour, so the original has sent two, and two reminders.
    for _ in range(2):
        clock.advance(HOUR_S + 60)
        await settled(original)
    await original.stop()
    clock.advance(60)
    stopped_ms = clock.now_ms()

    await restore(file, target, scope, unseen)
    copy = await make_service(database_url=target, quarantine=True, **settings)
    async with copy.db.read() as tx:
        counted = [await each.count(tx, stopped_ms) for each in copy.planned_messages]
    waiting = {each.name: each.count for each in counted if each is not None}
    withdrawn, refused = await withdraw_due(copy, stopped_ms)
    async with client_of(copy, key) as client:
        events = (await client.get("/v1/events")).json()["data"]
        [once] = (await client.get("/v1/scheduled")).json()["data"]
    await copy.stop()
    live = await make_service(database_url=target, **settings)
    await settled(live)
    at_once = sent_by(live)
    clock.advance(HOUR_S)
    await settled(live)

    assert sorted(sent_by(original)) == ["Once", "Reminder", "Reminder", "Step 1", "Step 2"]
    assert waiting == {"drip.step": 1, "scheduling.message": 2}
    assert withdrawn == {"drip.step": 2, "scheduling.message": 2}
    assert not refused
    assert (once["status"], once["reason"]) == ("skipped", "withdrawn")
    assert [e["data"]["reason"] for e in events if e["event"] == "scheduled.skipped"] == [
        "withdrawn"
    ] * 2
    assert at_once == []
    assert sorted(sent_by(live)) == ["Reminder", "Step 3"]


async def _plan(client: httpx2.AsyncClient, in_one_hour: str) -> None:
    """A message in an hour, one every hour, and a campaign of three steps an hour apart."""
    for path, body in (
        ("/v1/scheduled", {"external_id": "ann", "text": "Once", "send_at": in_one_hour}),
        ("/v1/recurring", {"external_id": "ann", "text": "Reminder", "every": {"hours": 1}}),
    ):
        made = await client.post(path, json=body)
        assert made.status_code in {201, 202}, made.text
    steps = [{"delay": {"hours": 1}, "message": {"text": f"Step {number}"}} for number in (1, 2, 3)]
    drip = {"name": "Welcome", "trigger": {"on": "manual"}, "steps": steps}
    made = await client.post("/v1/drips", json=drip)
    assert made.status_code == 201, made.text
    path = f"/v1/drips/{made.json()['drip_id']}/enroll"
    enrolled = await client.post(path, json={"external_id": "ann"})
    assert enrolled.status_code in {200, 201, 202}, enrolled.text


async def test_the_metrics_and_the_dashboard_tell_of_a_quarantine(
    make_service: ServiceFactory,
) -> None:
    found = {}
    for quarantine in (True, False):
        service = await make_service(plugins=("dashboard",), quarantine=quarantine)
        project = await service.projects.create("Shop")
        owner = await visitor(service, project.project_id)
        page = await owner.get("/keys")
        metrics, _ = await service.metrics.scrape()
        found[quarantine] = ("This copy is in quarantine" in page.text, metrics.decode())
        assert page.status_code == 200
        await owner.client.aclose()

    assert found[True][0]
    assert not found[False][0]
    assert "msgsvc_quarantine 1.0" in found[True][1]
    assert "msgsvc_quarantine 0.0" in found[False][1]


async def test_a_projects_own_bot_is_not_checked_in_quarantine(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(quarantine=True)
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "site", ("*",))
    async with client_of(service, key) as client:
        own = {"name": "own_bot", "plugin": "recording"}
        made = await client.post("/v1/channels", json=own)
        checked = await client.post("/v1/channels/own_bot/check")

    assert made.status_code == 201, made.text
    assert checked.json()["code"] == "platform_busy"
    assert "quarantine" in checked.text
