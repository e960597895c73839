"""What a project, its operator and its database go through while a broadcast waits or is under way."""

import asyncio
import json
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import add, counts, ended, events, give, recipients, shown, take
from .gate import PEOPLE, Gate, begun, gate_of, gated, post, under_way

LATER = "2026-01-15T13:00:00Z"


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await gated(make_service)


@pytest.fixture
def gate(service: Service) -> Gate:
    return gate_of(service)


async def is_paused(tenant: Tenant, job_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await shown(tenant.client, job_id)
        return found if found["status"] == "paused" else None

    return await until(look)


# ---- what the audience goes by -------------------------------------------------------------------


@pytest.mark.parametrize("change", ["renamed", "deleted"])
async def test_tag_that_is_gone_when_it_begins_cancels_it(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock, change: str
) -> None:
    ids = await add(service, tenant, 3)
    await give(service, tenant, "no-ads", ids[:1])
    job_id = await take(tenant.client, audience={"tags_none": ["no-ads"]}, send_at=LATER)

    if change == "renamed":
        await tenant.client.patch("/v1/tags/no-ads", json={"name": "quiet"})
    else:
        await tenant.client.delete("/v1/tags/no-ads")
    clock.advance(3600)
    done = await ended(tenant.client, job_id)

    assert done["status"] == "cancelled"
    assert "no-ads" in done["error"]
    assert gate.begun == 0
    assert len(await events(tenant.client, "broadcast.cancelled")) == 1


@pytest.mark.both_databases
async def test_permission_that_is_gone_when_it_begins_cancels_it(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 1)
    await tenant.client.post("/v1/permissions", json={"key": "sale", "title": "Sale"})
    job_id = await take(tenant.client, audience={"permission": "sale"}, send_at=LATER)

    assert (await tenant.client.delete("/v1/permissions/sale")).is_success
    clock.advance(3600)
    done = await ended(tenant.client, job_id)

    assert (done["status"], gate.begun) == ("cancelled", 0)
    assert "sale" in done["error"]


async def test_permission_that_is_withdrawn_in_the_middle_is_kept_to(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    await add(service, tenant, PEOPLE)
    last = f"sub_a{PEOPLE - 1:07d}"
    await tenant.client.post("/v1/permissions", json={"key": "sale", "title": "Sale"})
    async with service.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO core_subscriber_permissions (project_id, subscriber_id, permission,"
            " granted_at_ms) SELECT project_id, subscriber_id, 'sale', created_at_ms FROM core_subscribers"
        )
    job_id = await take(tenant.client, audience={"permission": "sale"})
    await begun(gate, 200)
    await tenant.client.delete(f"/v1/subscribers/{last}/permissions/sale")
    gate.open()
    done = await ended(tenant.client, job_id)

    assert counts(done) == (PEOPLE - 1, 0, 1, PEOPLE)
    [skipped] = await recipients(tenant.client, job_id, status="skipped")
    assert skipped["subscriber_id"] == last


async def test_template_that_is_deleted_in_the_middle_is_sent_all_the_same(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    await tenant.client.post("/v1/templates", json={"key": "hello", "text": "Hello"})
    job_id = await under_way(service, tenant, gate, template="hello")

    assert (await tenant.client.delete("/v1/templates/hello")).is_success
    gate.open()
    done = await ended(tenant.client, job_id)

    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)
    assert set(gate.texts) == {"Hello"}


# ---- the project ---------------------------------------------------------------------------------


async def test_disabled_project_is_not_sent_for_and_goes_on_when_it_is_resumed(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    job_id = await under_way(service, tenant, gate)
    project_id = tenant.project.project_id

    await service.projects.set_active(project_id, False)
    gate.open()
    await settled(service)
    held = len(gate.sent)
    await service.projects.set_active(project_id, True)
    await settled(service)
    paused = await shown(tenant.client, job_id)
    await post(tenant.client, job_id, "resume")
    done = await ended(tenant.client, job_id)

    assert held < PEOPLE
    assert (paused["status"], paused["sent"]) == ("paused", held)
    assert "disabled" in paused["error"]
    assert (done["error"], counts(done)) == (None, (PEOPLE, 0, 0, PEOPLE))
    assert len({sent.chat_id for sent in gate.sent}) == len(gate.sent) == PEOPLE


async def test_broadcast_whose_time_comes_while_its_project_is_disabled_waits(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 3)
    job_id = await take(tenant.client, send_at=LATER)
    await service.projects.set_active(tenant.project.project_id, False)
    clock.advance(3600)
    await settled(service)
    await service.projects.set_active(tenant.project.project_id, True)

    paused = await is_paused(tenant, job_id)
    called = gate.begun
    gate.open()
    await post(tenant.client, job_id, "resume")
    done = await ended(tenant.client, job_id)

    assert (called, paused["total"], counts(done)) == (0, 3, (3, 0, 0, 3))


async def test_project_that_is_removed_in_the_middle_leaves_no_job(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    await under_way(service, tenant, gate)

    async with service.db.transaction() as tx:
        await tx.execute(
            "DELETE FROM core_projects WHERE project_id = :project_id",
            {"project_id": tenant.project.project_id},
        )
    gate.open()

    async def is_idle() -> bool:
        async with service.db.read() as tx:
            jobs = "SELECT COUNT(*) AS count FROM core_jobs WHERE name = 'mailing.send'"
            return await tx.fetch_val(jobs) == 0

    await until(is_idle)
    assert len(gate.sent) < PEOPLE


# ---- pauses --------------------------------------------------------------------------------------


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_broadcast_can_be_paused_at_once_and_resumed(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    await add(service, tenant, 3)
    gate.open()

    job_id = await take(tenant.client)
    paused = await post(tenant.client, job_id, "pause")
    await settled(service)
    held = len(gate.sent)
    await post(tenant.client, job_id, "resume")
    done = await ended(tenant.client, job_id)

    # It may have begun by then, and ended.
    assert paused.is_success or held == 3
    assert held in {0, 3}
    assert counts(done) == (3, 0, 0, 3)


async def test_scheduled_broadcast_that_is_paused_waits_for_its_resume(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 3)
    gate.open()
    job_id = await take(tenant.client, send_at=LATER)

    paused = (await post(tenant.client, job_id, "pause")).json()
    clock.advance(3600)
    await settled(service)
    held = gate.begun
    again = (await post(tenant.client, job_id, "resume")).json()
    done = await ended(tenant.client, job_id)

    assert (paused["status"], held, again["status"]) == ("paused", 0, "scheduled")
    assert counts(done) == (3, 0, 0, 3)


async def test_paused_and_resumed_before_its_time_it_begins_then(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 3)
    gate.open()
    job_id = await take(tenant.client, send_at=LATER)

    for what in ("pause", "resume"):
        assert (await post(tenant.client, job_id, what)).is_success
    await settled(service)
    before = gate.begun
    clock.advance(3600)
    done = await ended(tenant.client, job_id)

    assert (before, counts(done)) == (0, (3, 0, 0, 3))


async def test_refusal_after_a_pause_of_days_is_waited_for(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    job_id = await under_way(service, tenant, gate)
    await post(tenant.client, job_id, "pause")
    gate.open()
    await settled(service)

    clock.advance(48 * 3600)
    gate.failures.append(DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=30))
    await post(tenant.client, job_id, "resume")

    async def is_refused() -> bool:
        return not gate.failures

    await until(is_refused)
    await settled(service)
    clock.advance(31)
    done = await ended(tenant.client, job_id)

    assert counts(done) == (PEOPLE, 0, 0, PEOPLE)


async def test_platform_that_asks_to_wait_for_a_day_is_waited_for_no_longer(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 1)
    gate.open()
    wait = DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=13 * 3600)
    gate.failures += [wait] * 3
    job_id = await take(tenant.client)

    for left in (2, 1, 0):

        async def is_refused(left: int = left) -> bool:
            return len(gate.failures) == left

        await until(is_refused)
        await settled(service)
        clock.advance(13 * 3600 + 1)
    done = await ended(tenant.client, job_id)

    assert counts(done) == (0, 1, 0, 1)
    [failed] = await recipients(tenant.client, job_id, status="failed")
    assert failed["reason"] == "rate_limited"


async def test_what_was_scheduled_to_an_audience_is_watched_and_cancelled_by_its_id(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    await add(service, tenant, PEOPLE)
    new = NewMailing("scheduled", MailingMessage(text="Hi"), Audience(all=True))
    async with service.db.transaction() as tx:
        mailing = await service.mailings.start(tx, tenant.project.project_id, new)
    await begun(gate, 200)
    running = await shown(tenant.client, mailing.job_id)
    listed = (await tenant.client.get("/v1/broadcast")).json()["data"]
    cancelled = await post(tenant.client, mailing.job_id, "cancel")
    gate.open()
    done = await ended(tenant.client, mailing.job_id)

    assert (running["source"], running["status"]) == ("scheduled", "running")
    assert listed == []
    assert cancelled.is_success
    assert (done["status"], done["sent"] < PEOPLE) == ("cancelled", True)
    assert await events(tenant.client, "broadcast.cancelled") == []


async def test_people_are_erased_while_the_platform_says_that_they_are_gone(
    service: Service, tenant: Tenant, gate: Gate
) -> None:
    ids = await add(service, tenant, 200)
    gate.failures += [DeliveryError(Reason.CHAT_NOT_FOUND, "gone")] * 200
    job_id = await take(tenant.client)
    await begun(gate, 200)
    gate.open()
    # As many at once as a site has, so that none waits for the database until it is refused.
    at_once = asyncio.Semaphore(20)

    async def erase(subscriber_id: str) -> int:
        async with at_once:
            answer = await tenant.client.delete(f"/v1/subscribers/{subscriber_id}?erase=true")
            return answer.status_code

    erased = await asyncio.gather(*map(erase, ids[::-1]))
    done = await ended(tenant.client, job_id)

    assert set(erased) == {204}
    sent, failed, skipped, total = counts(done)
    assert (sent, failed + skipped, total) == (0, 200, 200)
    # Nobody was left in doubt, as they are whose outcomes could not be written.
    assert "unknown" not in {
        each["reason"] for each in await events(tenant.client, "delivery.failed")
    }


# ---- what is kept, and what can't be done --------------------------------------------------------


@pytest.mark.both_databases
async def test_broadcast_that_is_cancelled_before_it_begins_keeps_no_ids(
    service: Service, tenant: Tenant
) -> None:
    ids = await add(service, tenant, 2)
    job_id = await take(tenant.client, audience={"subscriber_ids": ids}, send_at=LATER)

    await post(tenant.client, job_id, "cancel")
    async with service.db.read() as tx:
        kept = await tx.fetch_val("SELECT audience FROM core_mailings")

    assert json.loads(kept) == {"subscriber_ids_count": 2}
    assert (await shown(tenant.client, job_id))["audience"] == {"subscriber_ids_count": 2}


async def test_what_has_expired_is_not_sent_again(
    service: Service, tenant: Tenant, gate: Gate, clock: FakeClock
) -> None:
    await add(service, tenant, 1)
    gate.open()
    gate.failures.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True))
    job_id = await take(tenant.client, expires_in=60)
    await ended(tenant.client, job_id)

    clock.advance(61)
    answer = await post(tenant.client, job_id, "resend-unknown")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "expired" in answer.json()["error"]
