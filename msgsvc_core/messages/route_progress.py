"""What ends a step of a route after its message was sent, or takes it on: reports, answers and deadlines."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.updates import DeliveryReported, ReportedState
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.messages import route_store, store
from msgsvc_core.messages.counting import OutcomeCounter
from msgsvc_core.messages.fields import NOT_IN_TIME
from msgsvc_core.messages.models import FinalStatus, Message
from msgsvc_core.messages.route_moves import DEADLINE, RouteMoves
from msgsvc_core.routing.progress import goes_on, is_done

#: Seconds after which a step is looked at again whose call was in progress at its deadline.
CALL_S = 5.0


class RouteProgress:
    """Takes reports, answers and deadlines of messages with a route."""

    def __init__(self, *, moves: RouteMoves, batches: OutcomeCounter) -> None:
        self._moves = moves
        self._batches = batches

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            DEADLINE,
            self.look,
            inline=True,
            sends="next steps of messages by a route",
            on_withdrawn=self.withdraw,
        )

    async def report(
        self, tx: Tx, message: Message, step: int, report: DeliveryReported, at_ms: int
    ) -> None:
        """What was sent at a step arrived or was read; that of the message as a whole is recorded before."""
        await route_store.mark_copy(tx, message, step, "delivered_at_ms", at_ms)
        if report.state == "read":
            await route_store.mark_copy(tx, message, step, "read_at_ms", at_ms)
        if report.state != "failed" and is_done(message.steps[step], report.state):
            await self._end(tx, message, step)

    async def fail(
        self, tx: Tx, message: Message, step: int, report: DeliveryReported
    ) -> Literal["known", "went_on", "recorded"]:
        """What was sent at a step has failed after all: a message that waits there goes on.

        `known` if nothing is new, `recorded` if the message is elsewhere, or has ended.
        """
        error = report.detail or "the platform says no more"
        if not await route_store.fail_copy(tx, message, step, str(report.reason), error):
            return "known"
        now = await store.lock(tx, *message.key)
        if now is None or now.waits_for is None or now.route_step != step:
            return "recorded"
        await self._count(tx, await self._moves.go_on(tx, now, "waiting", None))
        return "went_on"

    async def answered(self, tx: Tx, bot: str, user_id: str) -> None:
        """The user of a bot has written, or pressed a button."""
        for project_id, message_id, step in await route_store.find_by_answerer(tx, bot, user_id):
            message = await store.find(tx, project_id, message_id)
            if message is not None:
                await self._end(tx, message, step)

    async def find_copies(
        self, tx: Tx, bot: str, message_ref: str
    ) -> list[tuple[Message, int, Message]]:
        """Messages that were sent at an earlier step under this id, with the step, and as they were then."""
        return await self._then(tx, await route_store.find_by_ref(tx, bot, message_ref))

    async def find_earlier(
        self, tx: Tx, sent: store.SentEarlier, state: ReportedState
    ) -> list[tuple[Message, int, Message]]:
        """Messages that were sent at a step by this time, of which that state is not recorded; as
        `find_copies`."""
        column: Literal["delivered_at_ms", "read_at_ms"] = (
            "read_at_ms" if state == "read" else "delivered_at_ms"
        )
        return await self._then(tx, await route_store.find_earlier(tx, sent, column))

    async def _then(
        self, tx: Tx, steps: Sequence[tuple[str, str, int]]
    ) -> list[tuple[Message, int, Message]]:
        found = []
        for project_id, message_id, step in steps:
            message = await store.find(tx, project_id, message_id)
            if message is None:
                continue
            copies = {copy.step: copy for copy in await route_store.find_copies(tx, message)}
            copy = copies.get(step)
            then = message
            if copy is not None and copy.subscriber_id is not None and copy.bot is not None:
                then = replace(
                    message, subscriber_id=copy.subscriber_id, channel=copy.channel, bot=copy.bot
                )
            found.append((message, step, then))
        return found

    async def look(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """The time of a step is over: the message goes on, unless it has ended or moved on before."""
        for job in jobs:
            async with ctx.completing(job) as tx:
                # Under its lock: a delivery that begins now would make this deadline the last look.
                message = await store.lock(tx, job.project_id or "", job.payload["message_id"])
                if message is None or not _is_at(message, job):
                    continue
                again_s = self._waits_s(message)
                if again_s is None:
                    await self._count(tx, await self._leave(tx, message))
                else:
                    await self._moves.look_again(tx, job, again_s)

    async def withdraw(self, tx: Tx, job: Job) -> None:
        """The original of a restored copy may have gone on: the message ends as what was accepted."""
        message = await store.lock(tx, job.project_id or "", job.payload["message_id"])
        if message is not None and _is_at(message, job) and message.waits_for is not None:
            await self._count(tx, await self._moves.stop(tx, message, None))

    def _waits_s(self, message: Message) -> float | None:
        """After how many seconds to look again; None if it may go on."""
        step = message.steps[message.route_step or 0]
        if message.status == "sending" and message.waits_for is None:
            return CALL_S
        if message.status == "queued" and not goes_on(step, _left_as(message)):
            return float(step.within_seconds or CALL_S)
        return None

    async def _leave(self, tx: Tx, message: Message) -> FinalStatus | None:
        if message.waits_for is not None:
            return await self._moves.go_on(tx, message, "waiting", None)
        status = _left_as(message)
        copy = self._moves.copy_of(
            message,
            status,
            reason=str(Reason.UNKNOWN) if status == "unknown" else NOT_IN_TIME,
            error=message.error or "it was not sent in the time of its step",
        )
        return await self._moves.go_on(tx, message, "queued", copy)

    async def _end(self, tx: Tx, message: Message, step: int) -> None:
        # As it is now: it may have gone on since it was read.
        now = await store.lock(tx, *message.key)
        if now is None or now.route_step is None:
            return
        copies = {copy.step: copy for copy in await route_store.find_copies(tx, now)}
        copy = copies.get(step)
        if copy is not None and copy.status == "sent":
            # A call that is in progress at a later step can't be taken back, and becomes another copy.
            await self._count(tx, await self._moves.end_by(tx, now, copy))

    async def _count(self, tx: Tx, end: FinalStatus | None) -> None:
        if end is not None:
            await self._batches.count(tx, [end])


def _left_as(message: Message) -> Literal["unknown", "failed"]:
    """What becomes of a step that was not sent in its time."""
    return "unknown" if message.reason == Reason.UNKNOWN else "failed"


def _is_at(message: Message, job: Job) -> bool:
    """Whether a message has not ended, and is at the step of the job."""
    is_open = message.status in {"queued", "sending"}
    return is_open and bool(message.route_step == job.payload["step"])
