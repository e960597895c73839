"""What platforms report of messages that they have accepted: that they arrived, were read, or failed."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.updates import DeliveryReported
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, NewJob, exponential
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import DAY_MS, Clock, to_rfc3339
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.messages import store
from msgsvc_core.messages.counting import SentCounter
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.outcomes import MessageOutcomes, report_event
from msgsvc_core.messages.route_progress import RouteProgress
from msgsvc_core.subscribers.service import Subscribers

JOB = "message.report"

#: How often a message is looked for whose id is not known yet: a platform may report before the answer to
#: the call is recorded. Over some six minutes, since a suspended process records late. Reports of system
#: messages never find theirs.
ATTEMPTS = 5
BACKOFF = exponential(first_s=1, factor=4, max_s=300)

#: How far back a report of everything up to a message goes: days, and messages of one person.
EARLIER_DAYS, EARLIER_MOST = 30, 1_000

#: Stops a bot, by its key, with the platform's words and the time of the report (`ChannelStates`).
StopBot = Callable[[Tx, str, str, int], Awaitable[bool]]

log = structlog.get_logger(__name__)


class DeliveryReports:
    """Records reports. `counters` are told of messages that failed after they were counted as sent;
    `stop_bot` is awaited if the platform takes no more messages of the bot."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        subscribers: Subscribers,
        outcomes: MessageOutcomes,
        counters: Sequence[SentCounter],
        routes: RouteProgress,
        stop_bot: StopBot,
    ) -> None:
        self._stop_bot = stop_bot
        self._routes = routes
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._subscribers = subscribers
        self._outcomes = outcomes
        self._counters = counters

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.retry, max_attempts=ATTEMPTS + 1, backoff=BACKOFF, inline=True)

    async def record(self, tx: Tx, channel: str, report: DeliveryReported) -> None:
        """Records a report; if its message is not known yet, a job tries again. `channel` is the bot's key.

        A report that comes twice, or after one that says more, changes nothing.
        """
        known = await self._record(tx, channel, report)
        if report.up_to_ms is not None and report.state in {"delivered", "read"}:
            await self._record_earlier(tx, channel, report)
        now_ms = self._clock.now_ms()
        if report.state == "failed" and report.reason is Reason.BOT_BANNED:
            # This message has failed; those that are queued wait.
            at_ms = now_ms if report.at_ms is None else report.at_ms
            await self._stop_bot(tx, channel, report.detail, at_ms)
        if not known and report.message_ref:
            await self._jobs.enqueue(
                tx, NewJob(JOB, _payload(channel, report, now_ms), run_at_ms=now_ms + _wait_ms(1))
            )

    async def retry(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Looks again for the messages of reports."""
        for job in jobs:
            channel, report = job.payload["channel"], _report(job)
            if job.attempts < ATTEMPTS:
                async with ctx.reading() as tx:
                    known = bool(
                        await self._messages(tx, channel, report)
                        or await self._routes.find_copies(tx, channel, report.message_ref)
                    )
                if not known:
                    wait_s = _wait_ms(job.attempts + 1) / 1000
                    async with ctx.rescheduling(job, after_s=wait_s):
                        continue
            async with ctx.completing(job) as tx:
                if not await self._record(tx, channel, report):
                    log.info("report_of_unknown_message", channel=channel, status=report.state)

    async def _record(self, tx: Tx, channel: str, report: DeliveryReported) -> bool:
        """False if no message is known by its id."""
        if not report.message_ref:
            return False
        messages = await self._messages(tx, channel, report)
        for message in messages:
            await self._apply(tx, message, message.route_step, report, message)
        if messages:
            return True
        # Of an earlier step of a route.
        copies = await self._routes.find_copies(tx, channel, report.message_ref)
        for message, step, then in copies:
            await self._apply(tx, message, step, report, then)
        return bool(copies)

    async def _record_earlier(self, tx: Tx, channel: str, report: DeliveryReported) -> None:
        """Records a report of what was sent in the chat before the message that it names.

        By our own time if that message is known, as the platform's clock may be another.
        """
        now_ms, until_ms = self._clock.now_ms(), report.up_to_ms
        for message in await self._messages(tx, channel, report) if report.message_ref else ():
            until_ms = message.finished_at_ms or until_ms
        assert until_ms is not None, "asked for reports with up_to_ms alone"
        found = await self._subscribers.list_by_user(tx, channel, report.user.user_id)
        people = await self._subscribers.get_many(
            tx, [(each.project_id, each.subscriber_id) for each in found]
        )
        for person in people.values():
            if person.chat_id != report.chat_id:
                continue
            sent = store.SentEarlier(
                project_id=person.project_id,
                subscriber_id=person.subscriber_id,
                bot=channel,
                after=earliest_id("msg", now_ms - EARLIER_DAYS * DAY_MS),
                until_ms=until_ms,
                most=EARLIER_MOST,
            )
            at_ms = min(report.at_ms or now_ms, now_ms)
            arrived = await store.mark_earlier(tx, sent, "delivered_at_ms", at_ms)
            told = [("delivery.delivered", "delivered_at", message) for message in arrived]
            if report.state == "read":
                read = await store.mark_earlier(tx, sent, "read_at_ms", at_ms)
                told += [("delivery.read", "read_at", message) for message in read]
            await self._tell(tx, told, at_ms)
            for message, step, then in await self._routes.find_earlier(tx, sent, report.state):
                await self._apply(tx, message, step, report, then)

    async def _tell(self, tx: Tx, told: Sequence[tuple[str, str, Message]], at_ms: int) -> None:
        """Emits what was recorded of messages of one person."""
        if not told:
            return
        _, _, first = told[0]
        recipient = (first.project_id, first.subscriber_id)
        subscriber = (await self._subscribers.get_many(tx, [recipient])).get(recipient)
        await self._events.emit_many(
            tx,
            [
                report_event(
                    message,
                    subscriber,
                    name,
                    {field: to_rfc3339(max(message.created_at_ms, at_ms))},
                )
                for name, field, message in told
            ],
        )

    async def _messages(self, tx: Tx, channel: str, report: DeliveryReported) -> Sequence[Message]:
        messages = await store.find_by_ref(tx, channel, report.message_ref)
        if not report.chat_id or not messages:
            return messages
        people = await self._subscribers.get_many(
            tx, [(message.project_id, message.subscriber_id) for message in messages]
        )
        return [
            message
            for message in messages
            if (person := people.get((message.project_id, message.subscriber_id)))
            and person.chat_id == report.chat_id
        ]

    async def _apply(
        self,
        tx: Tx,
        message: Message,
        step: int | None,
        report: DeliveryReported,
        then: Message,
    ) -> None:
        """`step` is that of the message's route at which it was sent, and `then` the message as it was there;
        None, and the message itself, without a route."""
        if report.state == "failed":
            await self._fail(tx, message, step, report, then)
            return
        now_ms = self._clock.now_ms()
        # The platform's clock may be another.
        at_ms = max(message.created_at_ms, min(report.at_ms or now_ms, now_ms))
        told: list[tuple[str, str]] = []
        # What was read has arrived, and some platforms report only the last of both.
        if await store.mark_delivered(tx, message, at_ms):
            told.append(("delivery.delivered", "delivered_at"))
        if report.state == "read" and await store.mark_read(tx, message, at_ms):
            told.append(("delivery.read", "read_at"))
        await self._tell(tx, [(name, field, then) for name, field in told], at_ms)
        if step is not None:
            await self._routes.report(tx, message, step, report, at_ms)

    async def _fail(
        self,
        tx: Tx,
        message: Message,
        step: int | None,
        report: DeliveryReported,
        then: Message,
    ) -> None:
        failure = DeliveryError(report.reason, report.detail or "the platform says no more")
        # Before the message, in the lock order of an erasure.
        person = await self._outcomes.lock_lost(tx, then, failure)
        if step is not None:
            result = await self._routes.fail(tx, message, step, report)
            if result == "known":
                return
            if result == "went_on" or message.route_step != step:
                await self._outcomes.block(tx, then, person, failure)
                return
        for status in await self._outcomes.fail_sent(tx, message, person, failure):
            for counter in self._counters:
                await counter.count_failed(tx, [status])


def _wait_ms(attempt: int) -> int:
    return round(BACKOFF(attempt) * 1000)


def _payload(channel: str, report: DeliveryReported, now_ms: int) -> dict[str, str | int]:
    return {
        "channel": channel,
        "message_ref": report.message_ref,
        "chat_id": report.chat_id,
        "state": report.state,
        "at_ms": now_ms if report.at_ms is None else report.at_ms,
        "reason": str(report.reason),
        "detail": report.detail,
    }


def _report(job: Job) -> DeliveryReported:
    payload = job.payload
    return DeliveryReported(
        update_id=job.job_id,
        chat_id=payload["chat_id"],
        message_ref=payload["message_ref"],
        state=payload["state"],
        at_ms=payload["at_ms"],
        reason=Reason(payload["reason"]),
        detail=payload["detail"],
    )
