"""Events of the past are delivered once more."""

import pytest

from msgsvc_core.jobs import BULK, Job, NewJob
from msgsvc_devkit.contexts import claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_webhooks import replays
from msgsvc_webhooks.models import Webhook
from msgsvc_webhooks.replays import REPLAY
from msgsvc_webhooks.service import DELIVER
from plugins.areas.webhooks.tests.unit.parts import NOW_MS, add_delivery, add_webhook, happened


def replay_job(webhook: Webhook, *, again: bool = False) -> Job:
    payload = {
        "webhook_id": webhook.webhook_id,
        "since_ms": 0,
        "until_ms": NOW_MS,
        "after": None,
        "again": again,
    }
    return claimed(NewJob(REPLAY, payload, project_id=PROJECT))


async def deliveries(core: MemoryCore) -> int:
    async with core.db.read() as tx:
        count: int = await tx.fetch_val("SELECT COUNT(*) FROM webhooks_deliveries")
    return count


@pytest.mark.parametrize(
    ("known", "again", "restarted"),
    [
        (["pending"], True, []),
        (["delivered"], False, []),
        (["delivered"], True, ["whd_0"]),
        (["failed", "cancelled"], False, ["whd_1"]),
        (["failed", "delivered", "failed"], True, ["whd_1"]),
    ],
)
async def test_at_most_one_delivery_of_an_event_is_repeated(
    core: MemoryCore, known: list[str], again: bool, restarted: list[str]
) -> None:
    async with core.db.transaction() as tx:
        [event] = await happened(core, tx)
        webhook = await add_webhook(core, tx)
        for number, status in enumerate(known):
            fields = {"event_id": event.event_id, "status": status}
            await add_delivery(core, tx, webhook, delivery_id=f"whd_{number}", **fields)
    await core.run(replay_job(webhook, again=again))

    async with core.db.read() as tx:
        jobs = await core.jobs_named(tx, DELIVER)
    assert [job.payload["delivery_id"] for job in jobs] == restarted
    assert await deliveries(core) == len(known)


async def test_a_replay_goes_on_after_a_chunk_behind_what_happens_meanwhile(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "CHUNK", 3)
    async with core.db.transaction() as tx:
        events = await happened(core, tx, 4)
        webhook = await add_webhook(core, tx)
    await core.run(replay_job(webhook))

    async with core.db.read() as tx:
        jobs = await core.pending_jobs(tx)
    assert [job.name for job in jobs] == [DELIVER] * 3 + [REPLAY]
    assert {job.priority for job in jobs} == {BULK}
    assert jobs[-1].payload["after"] == events[2].event_id
    assert await deliveries(core) == 3


async def test_a_replay_of_a_webhook_that_was_disabled_meanwhile_ends(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await happened(core, tx)
        job = replay_job(await add_webhook(core, tx, status="disabled"), again=True)
    done = await core.run(job)

    assert done.completed == [job]
    assert await deliveries(core) == 0
