"""Erasing a person: at once what they are known by, then by a job every copy of it.

See docs/decisions/0020-leaving-and-erasing.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgsvc_core.channels.calls import lane_of
from msgsvc_core.db import Tx
from msgsvc_core.events.forgetting import forget_events
from msgsvc_core.files.purging import forget_files
from msgsvc_core.http.idempotency import forget_answers
from msgsvc_core.jobs.contract import BULK, Job, JobContext, JobSpec, NewJob, Stopping
from msgsvc_core.kernel.hooks import in_turn
from msgsvc_core.subscribers import traces
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.service import Service

JOB = "subscriber.erase"

#: Messages that are removed in one transaction.
CHUNK = 500

#: Seconds after which the job looks again: what was under way when it ran, a call to a messenger or to
#: a receiver of webhooks, may have written the person down once more.
AGAIN_AFTER_S = 600

#: Seconds between further looks, while messages wait that can't end yet, e.g. for a bot that is stopped.
WAITING_S = 3600


async def begin(service: "Service", tx: Tx, subscriber: Subscriber) -> bool:
    """Removes a person, and has their traces removed by a job; False if somebody else just did.

    `subscription.deleted` tells of it without what the person was known by.
    """
    project_id, subscriber_id = subscriber.project_id, subscriber.subscriber_id
    # Chats first, as an update from the messenger does it: else the two may wait for each other.
    chat_is_gone = await traces.delete_chats(tx, subscriber)
    if not await traces.delete_subscriber(tx, project_id, subscriber_id):
        return False
    payload = {"subscriber_id": subscriber_id, "round": 1}
    if chat_is_gone:
        payload |= {"lane": lane_of(subscriber.bot), "chat_id": subscriber.chat_id}
    nobody = replace(subscriber, first_name="", username=None, tags=(), external_id=None)
    await service.events.emit(
        tx,
        project_id,
        "subscription.deleted",
        {"source": subscriber.source, "reason": "erased"},
        subscriber=nobody,
    )
    await service.jobs.enqueue(tx, _job(project_id, payload))
    return True


async def erase(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Removes what is left of people, and looks once more when what was under way has ended.

    In small transactions, each of which leaves less; so it goes on from anywhere.
    """
    for job in jobs:
        await _erase(ctx, job)


async def _erase(ctx: JobContext, job: Job) -> None:
    service, project_id = ctx.service, job.project_id or ""
    subscriber_id = job.payload["subscriber_id"]
    await _remove_calls(ctx, job)
    left = await _remove_messages(ctx, project_id, subscriber_id)
    await forget_events(ctx, project_id, subscriber_id)
    await forget_answers(ctx, project_id, subscriber_id)
    await forget_files(ctx, project_id, subscriber_id)
    await in_turn(
        service.plugins.hook.erase_subscriber(
            service=service, project_id=project_id, subscriber_id=subscriber_id
        )
    )
    this_round = job.payload["round"]
    async with ctx.completing(job) as tx:
        if this_round == 1 or left:
            after_s = AGAIN_AFTER_S if this_round == 1 else WAITING_S
            payload = {"subscriber_id": subscriber_id, "round": this_round + 1}
            run_at_ms = service.clock.now_ms() + after_s * 1000
            await service.jobs.enqueue(tx, _job(project_id, payload, run_at_ms))


async def _remove_calls(ctx: JobContext, job: Job) -> None:
    """Removes what the bot has yet to say in a chat that is gone."""
    if "chat_id" not in job.payload:
        return
    db = ctx.service.db
    async with db.read() as tx:
        calls = await traces.find_calls(
            tx, job.payload["lane"], job.payload["chat_id"], job.created_at_ms
        )
    if calls:
        async with db.transaction() as tx:
            await traces.delete_jobs(tx, calls)


async def _remove_messages(ctx: JobContext, project_id: str, subscriber_id: str) -> int:
    """Returns how many are left, emptied, because their delivery has yet to end."""
    db, after, left = ctx.service.db, "", 0
    while True:
        if ctx.stopping:
            raise Stopping
        # Apart from the transaction: without an index, as on SQLite, the search may take a while.
        async with db.read() as tx:
            found = await traces.find_messages(tx, project_id, subscriber_id, after, CHUNK)
        if not found:
            return left
        async with db.transaction() as tx:
            left += await traces.delete_messages(tx, project_id, found)
        after = found[-1]


def _job(project_id: str, payload: dict[str, object], run_at_ms: int | None = None) -> NewJob:
    return NewJob(JOB, payload, project_id=project_id, priority=BULK, run_at_ms=run_at_ms)


SPEC = JobSpec(JOB, erase, max_attempts=20)
