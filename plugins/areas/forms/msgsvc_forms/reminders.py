"""Background jobs of conversations: reminders, and ending abandoned ones."""

from collections.abc import Sequence

from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_parts, in_steps
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_forms import dialogue_store as store
from msgsvc_forms.dialogue import Remark
from msgsvc_forms.dialogues import Dialogues, state_of
from msgsvc_forms.inbound import REMIND
from msgsvc_forms.settings import FormsSettings

#: Conversations that are ended in one transaction.
AT_ONCE = 100

#: Days for which a conversation's record is kept, without its answers, to reply to late edits.
KEPT_DAYS = 7


class Reminders:
    """The jobs that remind of conversations, and end them."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        outbox: BotOutbox,
        dialogues: Dialogues,
        settings: FormsSettings,
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers
        self._outbox = outbox
        self._dialogues = dialogues
        self._settings = settings

    @property
    def specs(self) -> Sequence[JobSpec]:
        return (
            JobSpec(REMIND, self.remind),
            JobSpec("forms.expire_conversations", self.expire, every_s=3600),
        )

    async def remind(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Asks again what was asked before the person did something else, once they have done with it."""
        for job in jobs:
            await self._remind(ctx, job)

    async def _remind(self, ctx: JobContext, job: Job) -> None:
        async with ctx.holding(job) as tx:
            dialogue = await store.lock(tx, job.payload["project_id"], job.payload["dialogue_id"])
        wait_ms = self._settings.ask_again_after_s * 1000
        left_ms = (dialogue.aside_at_ms or 0) + wait_ms - self._clock.now_ms() if dialogue else 0
        if left_ms > 0:
            async with ctx.rescheduling(job, after_s=left_ms / 1000, counts=False):
                return
        async with ctx.completing(job) as tx:
            dialogue = await store.lock(tx, job.payload["project_id"], job.payload["dialogue_id"])
            if dialogue is None or dialogue.status != "active":
                return
            went_on = dialogue.updated_at_ms > (dialogue.aside_at_ms or 0)
            if went_on or state_of(dialogue).phase == "paused":
                return
            subscriber = await self._subscribers.get(
                tx, dialogue.project_id, dialogue.subscriber_id
            )
            message = await self._dialogues.current_prompt(tx, dialogue, Remark("aside"))
            if message is not None and subscriber.status == "active":
                await self._outbox.send(tx, dialogue.channel, dialogue.chat_id, message)

    async def expire(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Ends conversations in which nothing happened for long, and removes what is left of older ones."""
        now_ms = self._clock.now_ms()
        left_before_ms = now_ms - self._settings.conversation_hours * HOUR_MS
        ended_before_ms = now_ms - KEPT_DAYS * 24 * HOUR_MS

        async def end_some(tx: Tx, most: int) -> int:
            abandoned = await store.lock_abandoned(tx, left_before_ms, most)
            for dialogue in abandoned:
                await self._dialogues.finish(tx, dialogue, "expired")
            return len(abandoned)

        await in_parts(
            lambda: in_steps(ctx, end_some, AT_ONCE),
            lambda: in_steps(ctx, lambda tx, most: store.purge(tx, ended_before_ms, most)),
        )
