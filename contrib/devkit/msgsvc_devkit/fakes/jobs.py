"""Jobs that are recorded instead of run, and what bots would send."""

from dataclasses import dataclass, replace
from functools import partial

from msgsvc_core.channels.outbox import BotOutbox, OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.jobs.contract import URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import SecretBox
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.secrets import fake_secrets


class FakeJobQueue(JobQueue):
    """`enqueued` holds the jobs that are open, in order: take one out, and it was run."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock or FakeClock())
        self.enqueued: list[NewJob] = []

    async def enqueue(self, tx: Tx, *jobs: NewJob) -> None:
        for job in jobs:
            if job.key is None or not await self.has_open(tx, job.name, job.key):
                self.enqueued.append(job)
                tx.on_commit(partial(self._wake_for, job))

    async def bring_forward(self, tx: Tx, job: NewJob) -> bool:
        for place, found in enumerate(self.enqueued):
            alike = (found.name, found.lane, found.payload) == (job.name, job.lane, job.payload)
            if alike and (found.run_at_ms or 0) > self._clock.now_ms():
                now_ms = self._clock.now_ms()
                self.enqueued[place] = replace(found, run_at_ms=now_ms, priority=job.priority)
                tx.on_commit(partial(self.wake, job.lane, self._clock.now_ms()))
                return True
        return False

    async def has_open(self, tx: Tx, name: str, key: str) -> bool:
        return any((job.name, job.key) == (name, key) for job in self.enqueued)

    def add(self, unit: WriteBatch, job: NewJob) -> None:
        assert job.key is None, "whether a key is free takes a transaction to see"
        self.enqueued.append(job)
        unit.on_commit(partial(self._wake_for, job))

    def named(self, name: str) -> list[NewJob]:
        """The open jobs of that name."""
        return [job for job in self.enqueued if job.name == name]

    def _wake_for(self, job: NewJob) -> None:
        self.wake(job.lane, self._clock.now_ms() if job.run_at_ms is None else job.run_at_ms)


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """What a bot was told to send; `message_ref` is that of the message which it replaces."""

    channel: str
    chat_id: str
    message: OutgoingMessage
    message_ref: str | None = None
    expires_at_ms: int | None = None
    on_complete: OnComplete | None = None
    lang: str | None = None


class FakeOutbox(BotOutbox):
    """`sent`, `edited` and `answered` hold what bots were told to do, in order."""

    def __init__(self, secrets: SecretBox | None = None) -> None:
        super().__init__(jobs=FakeJobQueue(), secrets=secrets or fake_secrets())
        self.sent: list[QueuedMessage] = []
        self.edited: list[QueuedMessage] = []
        #: Channel, the button's reference, the notice.
        self.answered: list[tuple[str, str, str | None]] = []

    async def send(
        self,
        tx: Tx,
        channel: str,
        chat_id: str,
        message: OutgoingMessage,
        *,
        expires_at_ms: int | None = None,
        on_complete: OnComplete | None = None,
        priority: int = URGENT,
        lang: str | None = None,
    ) -> None:
        self.sent.append(
            QueuedMessage(channel, chat_id, message, None, expires_at_ms, on_complete, lang)
        )

    async def edit(
        self,
        tx: Tx,
        channel: str,
        chat_id: str,
        message_ref: str,
        message: OutgoingMessage,
        otherwise: OutgoingMessage | None = None,
        *,
        lang: str | None = None,
    ) -> None:
        self.edited.append(QueuedMessage(channel, chat_id, message, message_ref, lang=lang))

    async def answer(self, tx: Tx, channel: str, button_ref: str, text: str | None) -> None:
        self.answered.append((channel, button_ref, text))

    @property
    def texts(self) -> list[str]:
        """The texts sent, in order."""
        return [message.message.text for message in self.sent]
