"""Jobs that are recorded instead of run, and the outbox of bots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgsvc_core.channels.outbox import BotOutbox, OnComplete
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Row, Tx, WriteBatch
from msgsvc_core.jobs.contract import URGENT, Job, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import SecretBox
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.secrets import fake_secrets


class FakeJobQueue(JobQueue):
    """`enqueued` contains the pending jobs, in order; remove one to mark it as run. None is running or
    dead."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock or FakeClock())
        self.enqueued: list[NewJob] = []
        #: The jobs as a runner would claim them, with the enqueued form.
        self._rows: list[tuple[NewJob, Job]] = []

    async def enqueue(self, tx: Tx, *jobs: NewJob) -> None:
        for job in jobs:
            if job.key is None or not await self.has_open(tx, job.name, job.key):
                self._insert(job)
            run_at_ms = self._clock.now_ms() if job.run_at_ms is None else job.run_at_ms
            tx.on_commit(partial(self.wake, job.lane, run_at_ms))

    async def bring_forward(self, tx: Tx, job: NewJob) -> bool:
        now_ms = self._clock.now_ms()
        for place, found in enumerate(self.enqueued):
            alike = (found.name, found.lane, found.payload) == (job.name, job.lane, job.payload)
            if alike and (found.run_at_ms or 0) > now_ms:
                del self.enqueued[place]
                self._insert(replace(found, run_at_ms=now_ms, priority=job.priority), place)
                tx.on_commit(partial(self.wake, job.lane, now_ms))
                return True
        return False

    async def has_open(self, tx: Tx, name: str, key: str) -> bool:
        return any((job.name, job.key) == (name, key) for job in self.enqueued)

    async def running(self, tx: Tx, lane: str, name: str) -> list[Job]:
        return []

    async def list_postponed(self, tx: Tx, lane: str) -> list[Job]:
        return [job for job in self._open(lane) if job.run_at_ms > job.created_at_ms]

    async def list_interrupted(self, tx: Tx, lane: str) -> list[Job]:
        return []

    async def has_due_by(self, tx: Tx, lane: str, until_ms: int) -> bool:
        return any(job.run_at_ms <= until_ms for job in self._open(lane))

    async def has_waiting(self, tx: Tx, lane: str, due_by: Mapping[int, int]) -> bool:
        waiting = [job for job in self._open(lane) if job.priority in due_by]
        return any(job.run_at_ms <= due_by[job.priority] for job in waiting)

    async def count_by_state(self, tx: Tx) -> dict[str, int]:
        now_ms = self._clock.now_ms()
        delayed = sum(job.run_at_ms > now_ms for job in self._open())
        counts = {"ready": len(self._open()) - delayed, "delayed": delayed}
        return {state: count for state, count in counts.items() if count}

    async def count_by_lane(self, tx: Tx, now_ms: int) -> list[Row]:
        due: dict[tuple[str, str], list[int]] = {}
        for job in self._open():
            state = "delayed" if job.run_at_ms > now_ms else "ready"
            due.setdefault((job.lane, state), []).append(job.run_at_ms)
        return [
            {"lane": lane, "state": state, "count": len(times), "oldest_ms": min(times)}
            for (lane, state), times in due.items()
        ]

    async def count_runners(self, tx: Tx, now_ms: int) -> int:
        return 0

    async def find_unclaimed(
        self, tx: Tx, lane: str, name: str, *, until_ms: int, containing: str
    ) -> list[tuple[str, Any]]:
        return [
            (job.job_id, job.payload)
            for job in self._open(lane)
            if job.name == name
            and job.created_at_ms <= until_ms
            and containing in to_json(job.payload)
        ]

    async def discard_unclaimed(self, tx: Tx, job_ids: Sequence[str]) -> None:
        for new, job in self._rows:
            if job.job_id in job_ids:
                self.enqueued = [each for each in self.enqueued if each is not new]

    def add(self, unit: WriteBatch, job: NewJob) -> None:
        assert job.key is None, "whether a key is free takes a transaction to see"
        self._insert(job)
        run_at_ms = self._clock.now_ms() if job.run_at_ms is None else job.run_at_ms
        unit.on_commit(partial(self.wake, job.lane, run_at_ms))

    def named(self, name: str) -> list[NewJob]:
        """The pending jobs of that name."""
        return [job for job in self.enqueued if job.name == name]

    def _insert(self, new: NewJob, place: int | None = None) -> None:
        now_ms = self._clock.now_ms()
        job = Job(
            job_id=new_id("job"),
            name=new.name,
            lane=new.lane,
            payload=new.payload,
            attempts=0,
            deliveries=0,
            created_at_ms=now_ms,
            project_id=new.project_id,
            priority=new.priority,
            run_at_ms=now_ms if new.run_at_ms is None else new.run_at_ms,
        )
        self.enqueued.insert(len(self.enqueued) if place is None else place, new)
        self._rows.append((new, job))

    def _open(self, lane: str | None = None) -> list[Job]:
        return [
            job
            for new, job in self._rows
            if lane in {None, job.lane} and any(each is new for each in self.enqueued)
        ]


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message to be sent by a bot; `message_ref` is that of the message it replaces."""

    channel: str
    chat_id: str
    message: OutgoingMessage
    message_ref: str | None = None
    expires_at_ms: int | None = None
    on_complete: OnComplete | None = None
    lang: str | None = None


class FakeOutbox(BotOutbox):
    """`sent`, `edited`, `opened` and `answered` contain the queued calls of bots, in order."""

    def __init__(self, secrets: SecretBox | None = None) -> None:
        super().__init__(jobs=FakeJobQueue(), secrets=secrets or fake_secrets())
        self.sent: list[QueuedMessage] = []
        self.edited: list[QueuedMessage] = []
        #: Channel, chat, title of the thread, and what gets its id.
        self.opened: list[tuple[str, str, str, OnComplete]] = []
        #: Channel, the press's reference, the notice.
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

    async def open_thread(
        self, tx: Tx, channel: str, chat_id: str, title: str, on_complete: OnComplete
    ) -> None:
        self.opened.append((channel, chat_id, title, on_complete))

    async def answer(self, tx: Tx, channel: str, button_ref: str, text: str | None) -> None:
        self.answered.append((channel, button_ref, text))

    @property
    def texts(self) -> list[str]:
        """The texts sent, in order."""
        return [message.message.text for message in self.sent]
