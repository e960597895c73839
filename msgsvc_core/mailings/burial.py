"""What becomes of a mailing when a job of it can't be done: it must not end as if all had got it."""

from dataclasses import replace
from typing import TYPE_CHECKING

from msgsvc_core.channels.outbox import channel_of
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job
from msgsvc_core.mailings import outcomes, store
from msgsvc_core.mailings.content import read_column
from msgsvc_core.mailings.letters import Letter, Post
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.mailings.service import SEND_JOB

if TYPE_CHECKING:
    from msgsvc_core.service import Service


async def bury(service: "Service", tx: Tx, job: Job, error: str) -> None:
    """Pauses the mailing, and who reads why may have it go on; one that was cancelled comes to its end."""
    key = job.project_id or "", job.payload["job_id"]
    # What went wrong is the operator's to know: it may name hosts and files of theirs.
    why = "the service could not go on; its operator can see why"
    now_ms = service.clock.now_ms()
    if await store.set_status(
        tx, *key, "paused", ("scheduled", "running"), now_ms=now_ms, error=why
    ):
        return
    mailing = await store.lock(tx, *key)
    if mailing is not None and mailing.status == "cancelled":
        if job.name == SEND_JOB:
            await _let_go(service, tx, mailing, job)
        await service.mailings.end(tx, *key, "cancelled")


async def _let_go(service: "Service", tx: Tx, mailing: Mailing, job: Job) -> None:
    """Settles those whom the way had in hand."""
    bot = channel_of(job.lane)
    await give_up(
        Post(service, mailing, read_column(mailing.content), None, service.lines[bot]), tx, job
    )


async def give_up(post: Post, tx: Tx, job: Job) -> None:
    """Settles those whom a process that died had in hand: nobody knows whether they got it. On a platform
    that drops repeats they are sent to again."""
    mailing = post.mailing
    way = await store.find_way(tx, *mailing.key, post.line.key)
    if way is None or not way.in_hand:
        return
    found = await post.service.subscribers.find_many(
        tx, [(mailing.project_id, subscriber_id) for subscriber_id in way.in_hand]
    )
    letters = [Letter(subscriber, 0, job) for subscriber in found.values()]
    if post.repeats and mailing.status == "running":
        await outcomes.repeat(post, tx, letters)
    else:
        await outcomes.give_up(post, tx, letters)
    await store.set_way(tx, *mailing.key, replace(way, in_hand=[]))
