"""What an operator does about deliveries whose jobs failed by a fault of ours."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_webhooks.service import DELIVER

MakeService = Callable[..., Awaitable[Service]]


@pytest.fixture
async def service(make_webhook_service: MakeService) -> Service:
    """Runs no jobs."""
    return await make_webhook_service(core={"jobs": {"runner": "none"}})


@pytest.fixture
def working(
    service: Service, make_webhook_service: MakeService
) -> Callable[[], Awaitable[Service]]:
    """Starts a service that runs the jobs of `service`, and has run what is due."""

    async def start() -> Service:
        started = await make_webhook_service(core={"database_url": service.settings.database_url})
        await settled(started)
        return started

    return start


async def die(service: Service) -> None:
    """Has the next runner bury the job, as one that has killed several."""
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET deliveries = 100")


async def retry(service: Service) -> None:
    async with service.db.transaction() as tx:
        job_id = await tx.fetch_val(
            "SELECT job_id FROM core_jobs WHERE name = :name AND state = 'dead'", {"name": DELIVER}
        )
        await service.job_admin.retry(tx, job_id)


async def states(service: Service) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT state FROM core_jobs WHERE name = :name", {"name": DELIVER}
        )
    return [row["state"] for row in rows]


async def test_a_delivery_that_died_arrives_when_its_job_is_retried(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, working: Any
):
    webhook = await add_webhook()
    await emit()
    await die(service)
    running = await working()
    [dead] = await journal(webhook)
    before = len(receiver.received)
    await retry(running)
    await settled(running)
    [after] = await journal(webhook)

    assert (dead["status"], before) == ("failed", 0)
    assert len(receiver.received) == 1
    assert (after["status"], after["delivery_id"]) == ("delivered", dead["delivery_id"])
    assert await states(running) == []


async def test_a_retried_delivery_has_the_whole_plan_before_it(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, working: Any
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    await emit()
    await die(service)
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE webhooks_deliveries SET step = 8, first_attempt_at_ms = 1")
    running = await working()
    await retry(running)
    await settled(running)
    [after] = await journal(webhook)

    assert (after["status"], after["next_attempt_at"]) == ("queued", "2026-01-15T12:00:01.000Z")


async def test_a_delivery_that_could_not_be_settled_begins_its_plan_anew(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, working: Any
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    await emit()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET state = 'dead'")
        await tx.execute("UPDATE webhooks_deliveries SET step = 8, first_attempt_at_ms = 1")
    await retry(service)
    await working()
    [after] = await journal(webhook)

    assert (after["status"], after["next_attempt_at"]) == ("queued", "2026-01-15T12:00:01.000Z")


async def _disable(client: Any, webhook: Any, _delivery: Any) -> None:
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "disabled"})


async def _delete(client: Any, webhook: Any, _delivery: Any) -> None:
    await client.delete(f"/v1/webhooks/{webhook['webhook_id']}")


async def _redeliver(client: Any, _webhook: Any, delivery: Any) -> None:
    answer = await client.post(f"/v1/webhooks/deliveries/{delivery['delivery_id']}/redeliver")
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_disable, "set its status to active first"),
        (_delete, "the webhook of this delivery was deleted"),
        (_redeliver, "its delivery has succeeded in the meantime"),
    ],
)
async def test_a_dead_job_that_would_send_nothing_new_is_not_retried(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    journal: Any,
    working: Any,
    change: Any,
    why: str,
):
    webhook = await add_webhook()
    await emit()
    await die(service)
    running = await working()
    [dead] = await journal(webhook)
    await change(client, webhook, dead)
    await settled(running)
    before = len(receiver.received)

    with pytest.raises(ApiError, match=why):
        await retry(running)

    assert await states(running) == ["dead"]
    assert len(receiver.received) == before


@pytest.mark.both_databases
async def test_a_dead_job_whose_delivery_another_job_makes_is_not_retried(
    service: Service, client: Any, add_webhook: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    await emit()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET state = 'dead'")
        await tx.execute("UPDATE webhooks_deliveries SET status = 'failed'")
    [dead] = await journal(webhook)
    await _redeliver(client, webhook, dead)

    with pytest.raises(ApiError, match="is being tried, or about to be"):
        await retry(service)


async def test_a_dead_job_whose_delivery_is_forgotten_is_not_retried(
    service: Service, add_webhook: Any, emit: Any
):
    await add_webhook()
    await emit()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_jobs SET state = 'dead'")
        await tx.execute("DELETE FROM webhooks_deliveries")

    with pytest.raises(ApiError, match="its delivery is no longer kept"):
        await retry(service)


async def test_a_delivery_whose_waiting_job_is_discarded_has_failed(
    service: Service, add_webhook: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    await emit()
    async with service.db.transaction() as tx:
        job_id = await tx.fetch_val("SELECT job_id FROM core_jobs WHERE name = :n", {"n": DELIVER})
        await service.job_admin.discard(tx, job_id)
    [after] = await journal(webhook)

    assert (after["status"], after["next_attempt_at"]) == ("failed", None)
    assert await states(service) == []
