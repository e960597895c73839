"""A webhook that fails for days, or says that it is gone, is disabled, and all concerned are told."""

import asyncio
import json
from typing import Any

import pytest
import structlog
from aiohttp import web

from msgsvc_core.service import Service
from msgsvc_devkit import settled, until

DAY_S = 86400


@pytest.fixture
def shown(client: Any) -> Any:
    """The webhook as the API shows it now."""

    async def show(webhook: dict[str, Any]) -> dict[str, Any]:
        return (await client.get(f"/v1/webhooks/{webhook['webhook_id']}")).json()

    return show


@pytest.fixture
def days(service: Service, clock: Any, emit: Any) -> Any:
    """Lets days go by, with an event on each."""

    async def go_by(count: int) -> None:
        for _ in range(count):
            await emit()
            await settled(service)
            clock.advance(DAY_S)

    return go_by


def disabled(service: Service) -> dict[str, float | None]:
    value = service.metrics.registry.get_sample_value
    return {
        reason: value("msgsvc_webhooks_disabled_total", {"reason": reason})
        for reason in ("failing", "gone")
    }


async def test_a_webhook_that_fails_for_five_days_is_disabled(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, days: Any, shown: Any
):
    receiver.always = receiver.answer(404)
    webhook = await add_webhook()
    await days(5)
    before = await shown(webhook)
    await emit()
    await settled(service)
    after = await shown(webhook)
    await emit()
    await settled(service)

    assert (before["status"], before["disabled_reason"]) == ("active", None)
    assert before["failing_since"] == "2026-01-15T12:00:00.000Z"
    assert (after["status"], after["disabled_reason"]) == ("disabled", "failing")
    assert len(receiver.received) == 6


async def test_an_outage_of_days_ends_with_the_last_retry(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any, shown: Any
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    states = []
    for _ in range(3):
        await emit()
        await settled(service)
        clock.advance(2 * DAY_S)
        # What is left of the quick burst, and the ladder's last step.
        for _ in range(3):
            await settled(service)
            clock.advance(10)
        await settled(service)
        states.append((await shown(webhook))["status"])

    assert states == ["active", "active", "disabled"]


@pytest.mark.both_databases
async def test_the_days_are_a_setting(
    make_webhook_service: Any, make_tenant: Any, receiver: Any, clock: Any
):
    service = await make_webhook_service(disable_after_days=1)
    tenant = await make_tenant(service)
    receiver.always = receiver.answer(404)
    added = (await tenant.client.post("/v1/webhooks", json={"url": receiver.url})).json()
    for _ in range(3):
        async with service.db.transaction() as tx:
            await service.events.emit(
                tx, tenant.project.project_id, "subscription.created", {"source": "api"}
            )
        await settled(service)
        clock.advance(DAY_S / 2)
    answer = await tenant.client.get(f"/v1/webhooks/{added['webhook_id']}")

    assert answer.json()["status"] == "disabled"


async def test_a_success_in_between_begins_the_days_anew(
    service: Service, add_webhook: Any, receiver: Any, days: Any, shown: Any
):
    receiver.always = receiver.answer(404)
    webhook = await add_webhook()
    await days(4)
    receiver.then(receiver.answer(200))
    await days(1)
    well = await shown(webhook)
    await days(4)
    after = await shown(webhook)

    assert well["failing_since"] is None
    assert after["status"] == "active"
    assert after["failing_since"] == "2026-01-20T12:00:00.000Z"


async def test_a_hiccup_days_after_a_failure_is_no_reason(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any, shown: Any
):
    receiver.then(receiver.answer(404), receiver.answer(500))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    clock.advance(6 * DAY_S)
    await emit()
    await settled(service)
    hiccup = await shown(webhook)
    clock.advance(1)
    await settled(service)
    after = await shown(webhook)

    assert hiccup["status"] == "active"
    assert (after["status"], after["failing_since"]) == ("active", None)


async def test_a_deployment_days_after_a_failure_is_no_reason_however_much_it_refuses(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any, shown: Any
):
    receiver.then(*[receiver.answer(404)] * 6)
    webhook = await add_webhook()
    await emit()
    await settled(service)
    clock.advance(6 * DAY_S)
    for _ in range(5):
        await emit()
        await settled(service)
    during = await shown(webhook)
    clock.advance(60)
    await emit()
    await settled(service)

    assert (during["status"], during["failing_since"]) == ("active", "2026-01-15T12:00:00.000Z")
    assert (await shown(webhook))["failing_since"] is None


async def test_a_webhook_that_gets_little_and_takes_nothing_is_disabled_by_the_third_failure(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any, shown: Any
):
    receiver.always = receiver.answer(404)
    webhook = await add_webhook()
    states = []
    for _ in range(3):
        await emit()
        await settled(service)
        states.append((await shown(webhook))["status"])
        clock.advance(7 * DAY_S)

    assert states == ["active", "active", "disabled"]


async def test_failures_before_a_success_are_not_counted_after_it(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any, shown: Any
):
    receiver.then(*[receiver.answer(status) for status in (404, 404, 200, 404, 404, 404)])
    webhook = await add_webhook()
    states = []
    for days_later in (7, 0, 0, 4, 4, 0):
        await emit()
        await settled(service)
        states.append((await shown(webhook))["status"])
        clock.advance(days_later * DAY_S)

    assert states == [*["active"] * 5, "disabled"]


async def test_tests_that_fail_do_not_count(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    clock: Any,
    shown: Any,
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    for _ in range(4):
        await client.post(f"/v1/webhooks/{webhook['webhook_id']}/test")
        await settled(service)
        clock.advance(3 * DAY_S)
    tested = await shown(webhook)
    receiver.always = receiver.answer(404)
    await emit()
    await settled(service)
    clock.advance(6 * DAY_S)
    await client.post(f"/v1/webhooks/{webhook['webhook_id']}/test")
    await settled(service)
    clock.advance(6 * DAY_S)
    await client.post(f"/v1/webhooks/{webhook['webhook_id']}/test")
    await settled(service)

    assert (tested["status"], tested["failing_since"]) == ("active", None)
    assert (await shown(webhook))["status"] == "active"


async def test_a_test_that_arrives_ends_a_time_of_failures(
    service: Service, client: Any, add_webhook: Any, receiver: Any, days: Any, shown: Any
):
    receiver.always = receiver.answer(404)
    webhook = await add_webhook()
    await days(3)
    receiver.always = None
    await client.post(f"/v1/webhooks/{webhook['webhook_id']}/test")
    await settled(service)

    assert (await shown(webhook))["failing_since"] is None


async def test_what_we_can_not_sign_does_not_count_as_the_receivers_failure(
    service: Service, add_webhook: Any, days: Any, shown: Any
):
    webhook = await add_webhook()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE webhooks_secrets SET encrypted = 'sealed with a lost key'")
    await days(7)

    assert (await shown(webhook))["status"] == "active"
    assert (await shown(webhook))["failing_since"] is None


@pytest.mark.parametrize(("status", "reason"), [(404, "failing"), (410, "gone")])
async def test_the_feed_the_other_webhooks_the_log_and_the_metrics_tell_of_it(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    make_receiver: Any,
    days: Any,
    emit: Any,
    status: int,
    reason: str,
):
    watcher = await make_receiver()
    receiver.always = receiver.answer(status)
    webhook = await add_webhook(receiver.url + "?token=in-the-url", description="Shop")
    await add_webhook(watcher.url, events=["webhook.disabled"])
    with structlog.testing.capture_logs() as logs:
        if reason == "failing":
            await days(5)
        await emit()
        await settled(service)
    feed = (await client.get("/v1/events?event=webhook.disabled")).json()["data"]
    told = [entry for entry in logs if entry["event"] == "webhook_disabled"]

    [event] = feed
    data = dict(event["data"])
    data.pop("occurred_at")
    assert data == {
        "webhook_id": webhook["webhook_id"],
        "description": "Shop",
        "reason": reason,
        "failing_since": "2026-01-15T12:00:00.000Z" if reason == "failing" else None,
        "status_code": status,
        "error": None,
    }
    assert [request.event["data"] for request in watcher.received] == [
        {"event_id": event["event_id"], **event["data"]}
    ]
    assert [(entry["webhook_id"], entry["reason"]) for entry in told] == [
        (webhook["webhook_id"], reason)
    ]
    assert "in-the-url" not in json.dumps(logs, default=str) + json.dumps(feed)
    assert disabled(service) == {"failing": 0.0, "gone": 0.0, reason: 1.0}


async def test_a_webhook_that_is_activated_again_begins_without_a_past(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, days: Any, shown: Any
):
    receiver.always = receiver.answer(404)
    webhook = await add_webhook()
    await days(6)
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "active"})
    activated = await shown(webhook)
    await emit()
    await settled(service)

    assert (activated["failing_since"], activated["disabled_reason"]) == (None, None)
    assert (await shown(webhook))["status"] == "active"


@pytest.mark.both_databases
@pytest.mark.parametrize("status", [410, 404])
async def test_what_the_address_before_answers_does_not_count_against_the_new_one(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    make_receiver: Any,
    emit: Any,
    shown: Any,
    status: int,
):
    other, may_answer = await make_receiver(), asyncio.Event()

    async def answer_late(request: web.Request) -> web.StreamResponse:
        await may_answer.wait()
        return await receiver.answer(status)(request)

    receiver.always = answer_late
    webhook = await add_webhook()
    await emit()
    await until(lambda: _called(receiver))
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"url": other.url})
    may_answer.set()
    await settled(service)

    after = await shown(webhook)
    assert (after["status"], after["failing_since"]) == ("active", None)


async def _called(receiver: Any) -> bool:
    return bool(receiver.received)
