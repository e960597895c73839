"""Events of the past are delivered once more."""

from dataclasses import replace

import pytest

from msgsvc_core.events import Event
from msgsvc_core.events.contract import NewEvent
from msgsvc_core.jobs import BULK, Job, NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_devkit.fakes import PROJECT, FakeTx, claimed
from msgsvc_webhooks.models import ReplayBody
from msgsvc_webhooks.replays import CHUNK, REPLAY
from msgsvc_webhooks.service import DELIVER
from plugins.areas.webhooks.tests.unit.parts import NOW_MS, WEBHOOK, Plugin, row_of


async def happened(shop: Plugin, count: int = 1) -> list[Event]:
    person = shop.core.subscribers.person()
    new = NewEvent(PROJECT, "event.tracked", {"name": "x", "properties": {}}, person)
    return await shop.core.events.emit_many(FakeTx(), [new] * count)


@pytest.mark.parametrize(
    ("since_ms", "why"),
    [(NOW_MS + 1, "future"), (NOW_MS - 3 * DAY_MS - 1, "last 3 days"), (NOW_MS, "more than 2")],
)
async def test_a_replay_is_of_a_time_that_the_journal_knows_and_not_too_long(
    since_ms: int, why: str
) -> None:
    shop = Plugin(journal_days=3, replay_events=2)
    await happened(shop, 3)
    body = ReplayBody.model_construct(since=since_ms, include_delivered=False)

    with pytest.raises(ValidationFailed, match=why):
        await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)


async def test_one_replay_of_a_webhook_runs_at_a_time() -> None:
    shop = Plugin()
    await happened(shop)
    body = ReplayBody.model_construct(since=NOW_MS, include_delivered=False)
    answer = await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)

    assert answer.events == 1
    with pytest.raises(Conflict, match="under way"):
        await shop.replays().start(FakeTx(answers=[[row_of(WEBHOOK)]]), PROJECT, "whe_1", body)


def replay_job(again: bool) -> Job:
    payload = {
        "webhook_id": "whe_1",
        "since_ms": 0,
        "until_ms": NOW_MS,
        "after": None,
        "again": again,
    }
    return claimed(NewJob(REPLAY, payload, project_id=PROJECT))


@pytest.mark.parametrize(
    ("known", "again", "restarted"),
    [
        (["pending"], True, None),
        (["delivered"], False, None),
        (["delivered"], True, "whd_0"),
        (["failed", "cancelled"], False, "whd_1"),
        (["failed", "delivered", "failed"], True, "whd_1"),
    ],
)
async def test_at_most_one_delivery_of_an_event_is_repeated(
    known: list[str], again: bool, restarted: str | None
) -> None:
    shop = Plugin()
    [event] = await happened(shop)
    rows = [
        {"event_id": event.event_id, "delivery_id": f"whd_{number}", "status": status}
        for number, status in enumerate(known)
    ]
    begun = [] if restarted is None else [[{"delivery_id": restarted}]]
    shop.core.db.answers += [[row_of(WEBHOOK)], rows, *begun]
    await shop.replays().replay(shop.ctx, [replay_job(again)])

    jobs = shop.core.jobs.named(DELIVER)
    assert [job.payload["delivery_id"] for job in jobs] == ([restarted] if restarted else [])
    assert shop.core.db.rows["webhooks_deliveries"] == []


async def test_a_replay_goes_on_after_a_chunk_behind_what_happens_meanwhile() -> None:
    shop = Plugin()
    events = await happened(shop, CHUNK)
    shop.core.db.answers += [[row_of(WEBHOOK)], []]
    await shop.replays().replay(shop.ctx, [replay_job(again=False)])

    assert len(shop.core.db.rows["webhooks_deliveries"]) == CHUNK
    assert {job.priority for job in shop.core.jobs.enqueued} == {BULK}
    [rest] = shop.core.jobs.named(REPLAY)
    assert rest.payload["after"] == events[-1].event_id


async def test_a_replay_of_a_webhook_that_was_disabled_meanwhile_ends() -> None:
    shop, job = Plugin(), replay_job(again=True)
    await happened(shop)
    shop.core.db.answers += [[row_of(replace(WEBHOOK, status="disabled"))]]
    await shop.replays().replay(shop.ctx, [job])

    assert shop.ctx.completed == [job]
    assert shop.core.jobs.enqueued == []
