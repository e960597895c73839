"""The calls of one run of a shard."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.kernel.aio import BATCH, yield_every
from msgsvc_core.mailings.deliveries import RecipientDelivery, RecipientSender, SendContext

#: Calls that start per turn of the event loop if the database's responses arrive through it too. Of a hundred
#: calls that start together, all responses arrive together, a database response waits behind them, and during
#: the next statement there are no calls left to make. Lanes, whose batches make fewer statements, lose
#: nothing with `BATCH`.
SHARED_LOOP_BATCH = 5


class ShardCalls:
    """Recipients in flight: their call is in progress, or its outcome not written yet."""

    def __init__(self, *, recipients: RecipientSender, gate: OutboundGate) -> None:
        self._recipients = recipients
        self._gate = gate
        #: By the recipient's id.
        self.in_flight: dict[str, RecipientDelivery] = {}
        #: Those whose call has ended.
        self.ended: list[RecipientDelivery] = []
        #: How many outcomes are recorded together.
        self.group_size = 1
        #: Whether the database's responses arrive through the event loop, as those of the calls.
        self.shares_loop = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress = asyncio.Event()

    @property
    def are_running(self) -> bool:
        return bool(self._tasks)

    @property
    def has_group(self) -> bool:
        """Whether a group of outcomes can be recorded, or all there are."""
        return not self._tasks or len(self.ended) >= self.group_size

    def take_ended(self) -> list[RecipientDelivery]:
        """Those that have ended, which are not in flight any more."""
        ended, self.ended = self.ended, []
        for delivery in ended:
            del self.in_flight[delivery.subscriber_id]
        return ended

    def add(self, claimed: Sequence[RecipientDelivery]) -> None:
        """These are in flight now."""
        self.in_flight.update((delivery.subscriber_id, delivery) for delivery in claimed)

    def start(
        self, context: SendContext, deliveries: Sequence[RecipientDelivery], step_s: float
    ) -> None:
        """Starts calls, the next `step_s` seconds after the one before."""
        self._spawn(self._send_all(context, deliveries, step_s))

    async def wait_for_progress(self) -> None:
        self._progress.clear()
        await self._progress.wait()

    async def wait_for_all(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send_all(
        self, context: SendContext, deliveries: Sequence[RecipientDelivery], step_s: float
    ) -> None:
        batch = SHARED_LOOP_BATCH if self.shares_loop else BATCH
        async for number, delivery in yield_every(enumerate(deliveries), batch):
            self._spawn(self._send(context, delivery, number * step_s))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._call_ended)

    async def _send(
        self, context: SendContext, delivery: RecipientDelivery, after_s: float
    ) -> None:
        try:
            if after_s > 0:
                await asyncio.sleep(after_s)
            await self._recipients.send(context, delivery)
        finally:
            self._gate.ended([delivery.job])
            self.ended.append(delivery)

    def _call_ended(self, call: asyncio.Task[None]) -> None:
        self._tasks.discard(call)
        if self.has_group:
            self._progress.set()
