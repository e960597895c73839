"""What an attempt means for its delivery, and for the health of its webhook."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.jobs import Job, Reschedule
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_webhooks.health import FAILED_DELIVERIES, Called, Health
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, Webhook
from msgsvc_webhooks.outcomes import Outcome, OutcomeWriter, Written
from msgsvc_webhooks.retries import LAST_STEP, Verdict
from msgsvc_webhooks.service import Webhooks, new_delivery
from msgsvc_webhooks.settings import WebhookSettings
from plugins.areas.webhooks.tests.unit.parts import (
    EVENT,
    NOW_MS,
    ScriptedReceiver,
    add_delivery,
    add_webhook,
    answered,
    counted,
    delivery_of,
    job_of,
)

# ---- outcomes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "step", "status", "outcome"),
    [
        (answered(204), 0, "delivered", "delivered"),
        (answered(500), 0, "pending", "retried"),
        (Attempt(NOW_MS, 5, None, "no answer"), 2, "pending", "retried"),
        (answered(500), LAST_STEP, "failed", "failed"),
        (answered(404), 0, "failed", "failed"),
        (answered(429), 0, "failed", "failed"),
        (answered(410), 0, "failed", "gone"),
        (Attempt(NOW_MS, 5, None, "ours", forbidden=True), 0, "failed", "failed"),
    ],
)
async def test_what_an_attempt_means_for_its_delivery(
    core: MemoryCore,
    receiver: ScriptedReceiver,
    attempt: Attempt,
    step: int,
    status: str,
    outcome: str,
) -> None:
    receiver.answers.append(attempt)
    async with core.db.transaction() as tx:
        delivery = await add_delivery(core, tx, await add_webhook(core, tx), step=step)
    await core.run(job_of(delivery))
    after = await delivery_of(core, delivery.delivery_id)

    assert after.status == status
    assert (after.next_attempt_at_ms is None) == (status != "pending")
    assert counted(core) == {outcome: 1}


@pytest.mark.parametrize("core", [{"retry_timeouts_and_throttling": True}], indirect=True)
async def test_throttling_is_retried_where_the_operator_says_so(
    core: MemoryCore, receiver: ScriptedReceiver
) -> None:
    receiver.answers.append(Attempt(NOW_MS, 5, 429, retry_after_s=90))
    async with core.db.transaction() as tx:
        delivery = await add_delivery(core, tx, await add_webhook(core, tx))
    await core.run(job_of(delivery))

    after = await delivery_of(core, delivery.delivery_id)
    assert after.next_attempt_at_ms == NOW_MS + 90_000


class Settlements(JobInTest):
    """`settled` has the jobs of each transaction that settles some."""

    def __init__(self, core: MemoryCore, *, is_away: bool = False) -> None:
        super().__init__(core.db)
        self.settled: list[list[Job]] = []
        self._is_away = is_away

    def settling(
        self, done: Sequence[Job], back: Sequence[Reschedule] = ()
    ) -> AbstractAsyncContextManager[Tx]:
        self.settled.append([*done, *(each.job for each in back)])
        if self._is_away:
            raise DatabaseUnavailable("away")
        return super().settling(done, back)


def health_of(core: MemoryCore) -> Health:
    settings, metrics = core.settings(WebhookSettings), AttemptMetrics(CollectorRegistry())
    return Health(clock=core.clock, events=core.events, settings=settings, metrics=metrics)


def writer_of(core: MemoryCore) -> OutcomeWriter:
    return OutcomeWriter(
        clock=core.clock,
        dialect=core.db.dialect,
        settings=core.settings(WebhookSettings),
        health=health_of(core),
        metrics=AttemptMetrics(CollectorRegistry()),
    )


async def test_outcomes_that_wait_together_are_written_in_one_transaction(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        webhook = await add_webhook(core, tx)
        deliveries = [await add_delivery(core, tx, webhook) for _ in range(3)]
    jobs = [claimed(job_of(each)) for each in deliveries]
    ctx, writer = Settlements(core), writer_of(core)
    written = Written(ctx, 3)
    for job, delivery in zip(jobs, deliveries, strict=True):
        writer.add(writer.outcome_of(written, job, delivery, webhook, answered(200)))
    await written.all_written()

    assert ctx.settled == [jobs]
    after = [await delivery_of(core, each.delivery_id) for each in deliveries]
    assert [(each.status, each.attempts) for each in after] == [("delivered", 1)] * 3


async def test_an_absent_database_is_told_to_all_who_wait_at_once(core: MemoryCore) -> None:
    ctx, writer = Settlements(core, is_away=True), writer_of(core)
    written = Written(ctx, 2)
    async with core.db.transaction() as tx:
        job = claimed(job_of(await add_delivery(core, tx, await add_webhook(core, tx))))
    for _ in range(2):
        writer.add(Outcome(written, job))

    with pytest.raises(DatabaseUnavailable):
        await written.all_written()
    assert len(ctx.settled) == 1


def test_each_way_to_end_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    metrics = AttemptMetrics(registry)
    metrics.count(Verdict.RETRY, 2)
    metrics.count_disabled("gone")

    counts = {
        outcome: registry.get_sample_value("msgsvc_webhooks_attempts_total", {"outcome": outcome})
        for outcome in ("delivered", "retried", "failed", "gone")
    }
    assert counts == {"delivered": 0, "retried": 2, "failed": 0, "gone": 0}
    disabled = "msgsvc_webhooks_disabled_total"
    assert registry.get_sample_value(disabled, {"reason": "gone"}) == 1
    assert registry.get_sample_value(disabled, {"reason": "failing"}) == 0


# ---- how a webhook is ---------------------------------------------------------------------------

#: In place of a transaction, where nothing may be asked of the database.
NO_DATABASE = cast(Tx, None)


def called(webhook: Webhook, *calls: tuple[int, Verdict]) -> list[Called]:
    """A webhook after calls that ended so."""
    delivery = new_delivery(webhook, EVENT, "{}", NOW_MS)
    return [Called(webhook, delivery, answered(status), verdict) for status, verdict in calls]


async def test_a_webhook_that_works_and_did_before_costs_no_statement(
    core: MemoryCore, tx: Tx
) -> None:
    delivered = (200, Verdict.DELIVERED)
    calls = called(await add_webhook(core, tx), *[delivered] * 3)

    await health_of(core).record(NO_DATABASE, calls)


async def test_one_success_ends_a_time_of_failures(core: MemoryCore, tx: Tx) -> None:
    webhook = await add_webhook(core, tx, failing_since_ms=NOW_MS - DAY_MS)
    outcomes = (500, Verdict.RETRY), (200, Verdict.DELIVERED)
    await health_of(core).record(tx, called(webhook, *outcomes))

    after = await core.get(Webhooks).get(tx, PROJECT, webhook.webhook_id)
    assert after.failing_since_ms is None


@pytest.mark.parametrize(
    ("core", "is_disabled"),
    [
        ({"disable_failing": True, "disable_after_days": 5}, True),
        ({"disable_failing": True, "disable_after_days": 6}, False),
        ({"disable_failing": False, "disable_after_days": 5}, False),
    ],
    indirect=["core"],
)
async def test_days_of_failures_disable_a_webhook_where_the_operator_says_so(
    core: MemoryCore, tx: Tx, is_disabled: bool
) -> None:
    record: dict[str, Any] = {
        "failing_since_ms": NOW_MS - 5 * DAY_MS,
        "failed_deliveries": FAILED_DELIVERIES,
        "failed_delivery_at_ms": NOW_MS,
    }
    webhook = await add_webhook(core, tx, **record)
    await health_of(core).record(tx, called(webhook, (404, Verdict.FAILED)))

    after = await core.get(Webhooks).get(tx, PROJECT, webhook.webhook_id)
    assert (after.status == "disabled") is is_disabled
    assert core.event_names == ["webhook.disabled"] * is_disabled


@pytest.mark.parametrize(
    "core", [{"disable_failing": True, "disable_after_days": 5}], indirect=True
)
async def test_failures_of_one_day_are_counted_once(core: MemoryCore, tx: Tx) -> None:
    since_ms, yesterday_ms = NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS
    webhook = await add_webhook(
        core, tx, failing_since_ms=since_ms, failed_delivery_at_ms=yesterday_ms
    )
    failed, health = (404, Verdict.FAILED), health_of(core)
    for _ in range(2):
        await health.record(tx, called(webhook, failed))
    after = await core.get(Webhooks).get(tx, PROJECT, webhook.webhook_id)

    assert (after.failed_deliveries, after.failed_delivery_at_ms) == (1, NOW_MS)
    await health.record(NO_DATABASE, called(after, failed))
