"""Erases a subscriber: identifying data immediately, all copies by a job.

Each owner of tables deletes its part (`Eraser`). See docs/decisions/0020-unsubscribing-erasure-export.md.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from msgsvc_core.channels import chats
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.system_messages.erasure import erase_calls
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import JobQueue
from msgsvc_core.jobs.contract import BULK, Job, JobContext, JobSpec, NewJob
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.parts import Eraser
from msgsvc_core.subscribers.erasure import store
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.store import find_bots_of_others

JOB = "subscriber.erase"

#: Seconds after which the job runs again: calls to a messenger or webhook in progress during the first run
#: may have stored the subscriber's data once more.
AGAIN_AFTER_S = 600

#: Seconds between further runs, while there are messages that can't end yet, e.g. for a stopped bot.
WAITING_S = 3600


#: Deletes the items of a channel, by its key, that could not be read and name a user.
EraseUnreadable = Callable[[JobContext, str, str], Awaitable[None]]


class SubscriberErasure:
    """Erases subscribers. `erasers` run in order, the plugins' last."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        erasers: Sequence[Eraser],
        erase_unreadable: EraseUnreadable,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._erasers = erasers
        self._erase_unreadable = erase_unreadable

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.erase, max_attempts=20)

    async def start(self, tx: Tx, subscriber: Subscriber) -> bool:
        """Deletes a subscriber, and enqueues the job that deletes the copies; False if that was done
        concurrently.

        `subscription.deleted` is emitted without personal data.
        """
        project_id, subscriber_id = subscriber.project_id, subscriber.subscriber_id
        # Chats first, in the lock order of an update from the messenger, to avoid deadlocks.
        chat_is_gone = await _delete_chats(tx, subscriber)
        if not await store.delete_subscriber(tx, project_id, subscriber_id):
            return False
        payload = {"subscriber_id": subscriber_id, "round": 1}
        if chat_is_gone:
            payload |= {"lane": lane_of(subscriber.bot), "chat_id": subscriber.chat_id}
            payload |= {"bot": subscriber.bot, "user_id": subscriber.user_id}
        nobody = replace(subscriber, first_name="", username=None, tags=(), external_id=None)
        await self._events.emit(
            tx,
            project_id,
            "subscription.deleted",
            {"source": subscriber.source, "reason": "erased"},
            subscriber=nobody,
        )
        await self._jobs.enqueue(tx, _job(project_id, payload))
        return True

    async def erase(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Deletes remaining data, and again after everything in progress has ended.

        In small transactions, so it can continue after any of them.
        """
        for job in jobs:
            await self._erase(ctx, job)

    async def _erase(self, ctx: JobContext, job: Job) -> None:
        project_id, subscriber_id = job.project_id or "", job.payload["subscriber_id"]
        if "chat_id" in job.payload:
            lane, chat_id = job.payload["lane"], job.payload["chat_id"]
            await erase_calls(ctx, self._jobs, lane, chat_id, job.created_at_ms)
        if "user_id" in job.payload:
            await self._erase_unreadable(ctx, job.payload["bot"], job.payload["user_id"])
        left = 0
        for erase in self._erasers:
            left += await erase(ctx, project_id, subscriber_id) or 0
        this_round = job.payload["round"]
        async with ctx.completing(job) as tx:
            if this_round == 1 or left:
                after_s = AGAIN_AFTER_S if this_round == 1 else WAITING_S
                payload = {"subscriber_id": subscriber_id, "round": this_round + 1}
                run_at_ms = self._clock.now_ms() + after_s * 1000
                await self._jobs.enqueue(tx, _job(project_id, payload, run_at_ms))


async def _delete_chats(tx: Tx, erased: Subscriber) -> bool:
    """Deletes the user's chats that no other project's subscription uses, and removes this project from
    the others. True if the chat with the subscriber's bot was deleted."""
    # The bot that they started last, and earlier ones of the project's channel.
    theirs = await chats.lock_of_person(
        tx, erased.project_id, erased.channel, erased.bot, erased.user_id
    )
    bots = {bot for bot, _ in theirs}
    used = await find_bots_of_others(tx, erased.user_id, bots, erased.subscriber_id)
    await chats.forget_questions(tx, theirs)
    await chats.delete(tx, [key for key in theirs if key[0] not in used])
    await chats.leave(tx, erased.bot, erased.user_id, erased.project_id)
    return not await chats.is_there(tx, erased.bot, erased.chat_id)


def _job(project_id: str, payload: dict[str, object], run_at_ms: int | None = None) -> NewJob:
    return NewJob(JOB, payload, project_id=project_id, priority=BULK, run_at_ms=run_at_ms)
