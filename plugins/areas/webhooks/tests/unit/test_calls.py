"""How many calls are made at once, and what a batch of them does."""

import asyncio
from dataclasses import replace

import pytest

from msgsvc_core.jobs import Job, Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_devkit import until
from msgsvc_devkit.fakes import FakeTx
from msgsvc_webhooks.calls import CALLS, MOST_AHEAD
from msgsvc_webhooks.delivering import UNREADABLE
from msgsvc_webhooks.models import Delivery, Webhook
from msgsvc_webhooks.replays import REPLAY
from msgsvc_webhooks.service import DELIVER
from plugins.areas.webhooks.tests.unit.parts import (
    DELIVERY,
    NOW_MS,
    URL,
    WEBHOOK,
    Plugin,
    job_of,
    row_of,
)


async def test_eight_calls_are_made_at_once_and_the_rest_in_their_order() -> None:
    calls, at_work, began = Plugin().calls["webhook:whe_1"], set[str](), list[str]()
    free = asyncio.Event()

    async def attempt(job: Job) -> None:
        began.append(job.job_id)
        at_work.add(job.job_id)
        await free.wait()
        at_work.discard(job.job_id)

    jobs = [job_of() for _ in range(CALLS + 3)]
    calls.claimed(jobs)
    calls.make(jobs, attempt)

    async def all_places_taken() -> bool:
        return len(began) == CALLS

    await until(all_places_taken)
    assert len(at_work) == CALLS
    assert calls.capacity().jobs == 0
    free.set()

    async def all_done() -> bool:
        return len(began) == len(jobs) and not at_work

    await until(all_done)

    assert began == [job.job_id for job in jobs]


def test_a_quick_receiver_has_work_claimed_ahead_and_a_slow_one_none() -> None:
    by_lane = Plugin().calls
    quick, slow, new = by_lane["webhook:q"], by_lane["webhook:s"], by_lane["webhook:n"]
    for _ in range(50):
        quick.over(job_of(), 0.001)
        slow.over(job_of(), 10.0)

    assert [each.capacity().jobs for each in (quick, slow, new)] == [
        CALLS + MOST_AHEAD,
        CALLS + 1,
        CALLS,
    ]
    assert (quick.is_slow, slow.is_slow) == (False, True)


def test_a_full_lane_is_woken_when_there_is_room_and_forgotten_at_the_end() -> None:
    shop, woken = Plugin(), list[str]()
    shop.core.jobs.woken_by(lambda lane, _run_at_ms: woken.append(lane))
    calls, jobs = shop.calls["webhook:whe_1"], [job_of() for _ in range(CALLS)]
    calls.claimed(jobs)
    assert calls.capacity().jobs == 0
    calls.over(jobs[0], 5.0)

    assert woken == ["webhook:whe_1"]
    assert len(shop.calls) == 1
    del calls
    assert len(shop.calls) == 0


async def test_a_batch_loads_once_and_writes_what_came_of_each() -> None:
    shop = Plugin(200, 500)
    second = replace(DELIVERY, delivery_id="whd_2")
    # One delivered, one pending: two groups that are alike.
    shop.core.db.answers += [*shop.loaded(DELIVERY, second), 1, 1, 1]
    jobs = [job_of(), job_of(second)]
    await shop.deliveries().deliver(shop.ctx, jobs)

    assert shop.sending.sent == [(URL, "whd_1"), (URL, "whd_2")]
    assert jobs[0] in shop.ctx.completed
    assert [job for job, _ in shop.ctx.rescheduled] == [jobs[1]]


@pytest.mark.parametrize(
    ("delivery", "webhook"),
    [
        (DELIVERY, replace(WEBHOOK, status="disabled")),
        (replace(DELIVERY, status="delivered"), WEBHOOK),
    ],
)
async def test_what_needs_no_call_gets_none(delivery: Delivery, webhook: Webhook) -> None:
    shop, job = Plugin(), job_of()
    shop.core.db.answers += [*shop.loaded(delivery, webhook=webhook), 1]
    await shop.deliveries().deliver(shop.ctx, [job])

    assert shop.sending.sent == []
    assert job in shop.ctx.completed


async def test_a_secret_that_can_not_be_read_is_retried_and_shown_in_the_journal() -> None:
    shop, job = Plugin(), job_of()
    shop.core.db.answers += [*shop.loaded(DELIVERY, sealed="of another key"), 1]
    await shop.deliveries().deliver(shop.ctx, [job])

    assert [row["error"] for row in shop.core.db.rows["webhooks_attempts"]] == [UNREADABLE]
    assert [each for each, _ in shop.ctx.rescheduled] == [job]


async def test_what_was_not_tried_when_the_runner_stops_goes_back() -> None:
    shop = Plugin()
    shop.ctx.is_stopping = True

    with pytest.raises(Stopping):
        await shop.deliveries().deliver(shop.ctx, [job_of()])
    assert shop.core.db.statements == []


async def test_a_delivery_ends_with_its_dead_job_unless_it_has_ended() -> None:
    jobs = Plugin().jobs()
    pending = FakeTx(answers=[[row_of(DELIVERY)], 1])
    await jobs.finish_dead(pending, job_of(), "a fault")
    over = FakeTx(answers=[[row_of(replace(DELIVERY, status="delivered"))]])
    await jobs.finish_dead(over, job_of(), "a fault")

    assert pending.statements[-1][1]["status"] == "failed"
    assert len(over.statements) == 1


async def test_ended_secrets_are_forgotten_at_once_and_deliveries_after_their_days() -> None:
    shop = Plugin(journal_days=3)
    # Ended secrets, attempts, deliveries.
    shop.core.db.answers += [1, 0, 0]
    await shop.jobs().purge(shop.ctx, [])

    (_, ended), (_, attempts), (_, deliveries) = shop.core.db.statements
    assert ended == {"now_ms": NOW_MS}
    assert attempts["before_ms"] == deliveries["before_ms"] == NOW_MS - 3 * DAY_MS
    assert [spec.name for spec in shop.jobs().specs()] == [DELIVER, REPLAY, "webhooks.purge"]
