"""What an attempt means for its delivery, and for the health of its webhook."""

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.jobs import LeaseLost
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_devkit.fakes import FakeDatabase, FakeJobContext, FakeTx
from msgsvc_webhooks.events import TEST
from msgsvc_webhooks.health import Called
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt
from msgsvc_webhooks.outcomes import Outcome, Written
from msgsvc_webhooks.retries import LAST_STEP, Verdict
from plugins.areas.webhooks.tests.unit.parts import (
    COUNTED,
    DELIVERY,
    NOW_MS,
    WEBHOOK,
    Plugin,
    job_of,
)

# ---- outcomes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "step", "status", "verdict"),
    [
        (Attempt(NOW_MS, 5, 204), 0, "delivered", Verdict.DELIVERED),
        (Attempt(NOW_MS, 5, 500), 0, "pending", Verdict.RETRY),
        (Attempt(NOW_MS, 5, None, "no answer"), 2, "pending", Verdict.RETRY),
        (Attempt(NOW_MS, 5, 500), LAST_STEP, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 404), 0, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 429), 0, "failed", Verdict.FAILED),
        (Attempt(NOW_MS, 5, 410), 0, "failed", Verdict.GONE),
        (Attempt(NOW_MS, 5, None, "ours", forbidden=True), 0, "failed", Verdict.FAILED),
    ],
)
def test_what_an_attempt_means_for_its_delivery(
    attempt: Attempt, step: int, status: str, verdict: Verdict
) -> None:
    written = Written(FakeJobContext(), 1)
    delivery = replace(DELIVERY, step=step)
    outcome = Plugin().writer().judged(written, job_of(), delivery, WEBHOOK, attempt)

    assert (outcome.status, outcome.verdict) == (status, verdict)
    assert (outcome.next_at_ms is None) == (status != "pending")


def test_throttling_is_retried_where_the_operator_says_so() -> None:
    writer = Plugin(retry_timeouts_and_throttling=True).writer()
    attempt = Attempt(NOW_MS, 5, 429, retry_after_s=90)
    outcome = writer.judged(Written(FakeJobContext(), 1), job_of(), DELIVERY, WEBHOOK, attempt)

    assert outcome.next_at_ms == NOW_MS + 90_000


async def test_outcomes_that_wait_together_are_written_in_one_transaction() -> None:
    shop = Plugin()
    shop.ctx.db.answers += [3]
    writer, written = shop.writer(), Written(shop.ctx, 3)
    for number in range(3):
        delivery = replace(DELIVERY, delivery_id=f"whd_{number}")
        attempt = Attempt(NOW_MS, 5, 200)
        writer.add(writer.judged(written, job_of(delivery), delivery, WEBHOOK, attempt))
    await written.all_written()

    assert shop.core.db.commits == 1
    assert [row["number"] for row in shop.core.db.rows["webhooks_attempts"]] == [1, 1, 1]
    assert shop.counted("delivered") == 3


async def test_one_outcome_that_another_runner_has_taken_over_does_not_spoil_the_others() -> None:
    shop = Plugin()
    # Together one row is missing; then the first alone is there, and the second alone is not.
    shop.ctx.db.answers += [1, 1, 0]
    writer = shop.writer()
    mine, others = Written(shop.ctx, 1), Written(shop.ctx, 1)
    for written in (mine, others):
        attempt = Attempt(NOW_MS, 5, 200)
        writer.add(writer.judged(written, job_of(), DELIVERY, WEBHOOK, attempt))
    await mine.all_written()

    with pytest.raises(LeaseLost):
        await others.all_written()
    assert shop.counted("delivered") == 1


async def test_an_absent_database_is_told_to_all_who_wait_at_once() -> None:
    class Away(FakeDatabase):
        tries = 0

        def transaction(self, **_options: Any) -> Any:
            self.tries += 1
            raise DatabaseUnavailable("away")

    db = Away()
    writer, written = Plugin().writer(), Written(FakeJobContext(db), 2)
    for _ in range(2):
        writer.add(Outcome(written, job_of()))

    with pytest.raises(DatabaseUnavailable):
        await written.all_written()
    assert db.tries == 1


async def test_a_cancelled_delivery_counts_no_attempt() -> None:
    shop = Plugin()
    shop.ctx.db.answers += [1]
    writer, written = shop.writer(), Written(shop.ctx, 1)
    writer.add(Outcome(written, job_of(), DELIVERY))
    await written.all_written()

    assert shop.core.db.statements[0][1]["status"] == "cancelled"
    assert shop.core.db.rows["webhooks_attempts"] == []
    assert {outcome: shop.counted(outcome) for outcome in ("delivered", "failed")} == {
        "delivered": 0,
        "failed": 0,
    }


def test_each_way_to_end_is_there_from_the_start() -> None:
    registry = CollectorRegistry()
    metrics = AttemptMetrics(registry)
    metrics.count(Verdict.RETRY, 2)
    metrics.count_disabled("gone")

    counts = {
        outcome: registry.get_sample_value(COUNTED, {"outcome": outcome})
        for outcome in ("delivered", "retried", "failed", "gone")
    }
    assert counts == {"delivered": 0, "retried": 2, "failed": 0, "gone": 0}
    disabled = "msgsvc_webhooks_disabled_total"
    assert registry.get_sample_value(disabled, {"reason": "gone"}) == 1
    assert registry.get_sample_value(disabled, {"reason": "failing"}) == 0


# ---- how a webhook is ---------------------------------------------------------------------------


def called(status: int, verdict: Verdict, **webhook: Any) -> Called:
    attempt = Attempt(NOW_MS, 5, status)
    return Called(replace(WEBHOOK, **webhook), DELIVERY, attempt, verdict)


async def test_a_webhook_that_works_and_did_before_costs_no_statement() -> None:
    tx = FakeTx()
    await Plugin().health().record(tx, [called(200, Verdict.DELIVERED)] * 3)

    assert tx.statements == []


async def test_one_success_ends_a_time_of_failures() -> None:
    failing = {"failing_since_ms": NOW_MS - DAY_MS}
    tx = FakeTx(answers=[1])
    several = [called(500, Verdict.RETRY, **failing), called(200, Verdict.DELIVERED, **failing)]
    await Plugin().health().record(tx, several)

    assert "failing_since_ms = NULL" in tx.statements[0][0]


async def test_a_gone_receiver_is_disabled_at_once_and_its_project_told() -> None:
    shop, tx = Plugin(disable_failing=True), FakeTx(answers=[1])
    await shop.health().record(tx, [called(410, Verdict.GONE)])
    tx.commit()

    [told] = shop.core.events.emitted
    assert (told.name, told.data["reason"]) == ("webhook.disabled", "gone")
    reason = {"reason": "gone"}
    assert shop.registry.get_sample_value("msgsvc_webhooks_disabled_total", reason) == 1


@pytest.mark.parametrize("disables", [True, False])
async def test_days_of_failures_disable_a_webhook_where_the_operator_says_so(
    disables: bool,
) -> None:
    shop = Plugin(disable_failing=disables, disable_after_days=5)
    since_ms = NOW_MS - 5 * DAY_MS
    failed = called(404, Verdict.FAILED, failing_since_ms=since_ms, failed_delivery_at_ms=NOW_MS)
    tx = FakeTx(answers=[1] if disables else [])
    await shop.health().record(tx, [failed])

    assert shop.core.events.names == ["webhook.disabled"] * disables


async def test_failures_of_one_day_are_counted_once() -> None:
    shop = Plugin(disable_failing=True, disable_after_days=5)
    failing = {"failing_since_ms": NOW_MS - 2 * DAY_MS}
    counted, again = FakeTx(answers=[1]), FakeTx()
    yesterday = called(404, Verdict.FAILED, **failing, failed_delivery_at_ms=NOW_MS - DAY_MS)
    today = called(404, Verdict.FAILED, **failing, failed_delivery_at_ms=NOW_MS - DAY_MS + 1)
    await shop.health().record(counted, [yesterday])
    await shop.health().record(again, [today])

    assert "failed_deliveries + 1" in counted.statements[0][0]
    assert again.statements == []


async def test_what_is_our_fault_or_a_test_says_nothing_of_the_receiver() -> None:
    ours = Called(WEBHOOK, DELIVERY, Attempt(NOW_MS, 0, error="x", is_ours=True), Verdict.RETRY)
    trial = Called(WEBHOOK, replace(DELIVERY, event=TEST), Attempt(NOW_MS, 5, 500), Verdict.RETRY)
    tx = FakeTx()
    await Plugin().health().record(tx, [ours, trial])

    assert tx.statements == []
