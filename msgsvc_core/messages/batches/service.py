"""The rules of batches: each message is validated on its own, and the accepted ones are queued together."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from msgsvc_core.api.envelope import public_message
from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.db import Database, Tx, WriteBatch
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.messages.batches import counting, store
from msgsvc_core.messages.batches.models import Batch, BatchAnswer, Rejected
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import PreparedMessage
from msgsvc_core.messages.service import Messages

#: Messages that are prepared without a pause for others.
PREPARED_AT_ONCE = 25

#: Characters of their texts, likewise: a text of `<` takes 8 us for each.
PARSED_AT_ONCE = 4_000


class Batches:
    """Many messages sent by one request."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        billing: BillingGate,
        messages: Messages,
        most: int,
    ) -> None:
        self._clock = clock
        self._db = db
        self._jobs = jobs
        self._billing = billing
        self._messages = messages
        #: Messages of one batch.
        self._most = most

    async def send(self, project_id: str, messages: Sequence[Any]) -> BatchAnswer:
        """Queues messages in a transaction of its own; for callers in the same process.

        Each is a `SendBody` or a mapping of its fields. Raises `ValidationFailed` for too many,
        `BillingBlocked`.
        """
        unit = WriteBatch()
        await self._billing.check(project_id, MESSAGE)
        answer = await self.add(unit, project_id, messages)
        await self._db.write(unit)
        return answer

    async def add(self, unit: WriteBatch, project_id: str, messages: Sequence[Any]) -> BatchAnswer:
        """Adds the messages that can be sent to what is written together; the answer has the others.

        Raises `ValidationFailed` for too many, and what befalls all of them, e.g. `Unavailable`.
        """
        if len(messages) > self._most:
            raise ValidationFailed("at most {limit}", field="messages", limit=self._most)
        read = [await self._read(message, turn) for turn, message in enumerate(messages)]
        # All at once, so that their questions to the database are the same few.
        prepared = await asyncio.gather(
            *(
                self._prepare(project_id, body, pauses)
                for body, pauses in zip(read, _pauses(read), strict=True)
            )
        )
        taken = [one for one in prepared if not isinstance(one, ApiError)]
        rejected = [
            Rejected(index=index, error=public_message(one), code=one.code)
            for index, one in enumerate(prepared)
            if isinstance(one, ApiError)
        ]
        now_ms = self._clock.now_ms()
        batch = Batch(
            project_id=project_id,
            batch_id=new_id("bat"),
            total=len(taken),
            sent=0,
            failed=0,
            skipped=0,
            created_at_ms=now_ms,
            finished_at_ms=None if taken else now_ms,
        )
        store.add(unit, batch)
        # In the order of the call, which is that of their ids, and so of delivery to one chat.
        for body, one in taken:
            self._messages.put(unit, project_id, body, one, batch_id=batch.batch_id)
        if not taken:
            payload = {"batch_id": batch.batch_id}
            self._jobs.add(unit, NewJob(counting.JOB, payload, project_id=project_id))
        return BatchAnswer(batch_id=batch.batch_id, accepted=len(taken), rejected=rejected)

    async def find(self, tx: Tx, project_id: str, batch_id: str) -> Batch:
        """Raises `NotFound`, for another project's batch as well."""
        found = await store.find_many(tx, [(project_id, batch_id)])
        if not found:
            raise NotFound("there is no batch {batch_id!r}", batch_id=batch_id)
        return found[0]

    async def _read(self, message: Any, turn: int) -> SendBody | ApiError:
        if turn % PREPARED_AT_ONCE == PREPARED_AT_ONCE - 1:
            await asyncio.sleep(0)
        try:
            return validate(SendBody, message, whole="message")
        except ApiError as error:
            return error

    async def _prepare(
        self, project_id: str, body: SendBody | ApiError, pauses: int
    ) -> tuple[SendBody, PreparedMessage] | ApiError:
        if isinstance(body, ApiError):
            return body

        async def pause() -> None:
            for _ in range(pauses):
                await asyncio.sleep(0)

        try:
            return body, await self._messages.prepare(project_id, body, pause=pause)
        except ApiError as error:
            if error.status >= 500:
                raise
            return error


def _pauses(read: Sequence[SendBody | ApiError]) -> Iterator[int]:
    """For each message how often others have a turn before it is prepared."""
    characters = 0
    for number, body in enumerate(read):
        yield number // PREPARED_AT_ONCE + characters // PARSED_AT_ONCE
        if isinstance(body, SendBody) and body.text is not None:
            texts = [body.text] if isinstance(body.text, str) else body.text.values()
            characters += sum(map(len, texts))
