"""Jobs of system messages: sends, edits, answers to buttons and new threads, in the channel's lane.

Handlers enqueue them in their transaction; no platform is called inside a transaction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from msgsvc_core.channels.buttons.fallbacks import ChannelSender, without_blocks
from msgsvc_core.channels.contract import Capabilities, Channel
from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.channels.health.overdue import GROUP, GROUPS, ClosedChannel
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy, SendAttempt, run_by_chat
from msgsvc_core.channels.system_messages.outbox import EXPIRED, JOB, OPEN_THREAD, SENT, BotOutbox
from msgsvc_core.content.markup import to_spans
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import (
    Job,
    JobContext,
    JobSpec,
    NewJob,
    Reschedule,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import DecryptionError

#: Wait after the n-th failed attempt, in seconds, and the number of attempts.
BACKOFF = exponential(first_s=1, max_s=60)
MAX_ATTEMPTS = 6


#: Seconds after which a system message is dropped, e.g. because the bot was stopped: by then a sign-in has
#: expired, and platforms drop unanswered button presses sooner.
MAX_AGE_S = 3600

RETRIES = RetryPolicy(BACKOFF, MAX_ATTEMPTS)

#: What the job of an `OnComplete` gets in addition to its payload.
Result = Mapping[str, str | None]


def _failed(outcome: str, error: str) -> Result:
    return {"outcome": str(outcome), "error": error, "message_ref": None}


EXPIRED_RESULT = _failed(EXPIRED, "")
GONE = _failed(Reason.UNKNOWN, "the channel is not there any more")

#: The reason is not given to the project: it may name hosts and files of the operator.
UNDELIVERABLE = _failed(Reason.UNKNOWN, "the service could not deliver it")

log = structlog.get_logger(__name__)


class BotCalls:
    """Handler of the jobs of system messages: see `BotOutbox`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        outbox: BotOutbox,
        gates: OutboundGates,
        sender: ChannelSender,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._outbox = outbox
        self._gates = gates
        self._sender = sender

    @property
    def specs(self) -> list[JobSpec]:
        kinds = {
            JOB: "replies of bots; dropped an hour after they were written",
            OPEN_THREAD: "topics of chats; dropped an hour after they were asked for",
        }
        return [
            JobSpec(
                name,
                self.run,
                max_attempts=MAX_ATTEMPTS,
                backoff=BACKOFF,
                on_dead=self.on_dead,
                sends=sends,
            )
            for name, sends in kinds.items()
        ]

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the calls of a batch: chats concurrently, the calls of one chat in order."""
        async with self._gates.batch(ctx, jobs) as batch:
            if batch.channel is None:
                log.warning("channel_gone", channel=batch.gate.key, calls=len(batch.jobs))
                async with ctx.completing(*batch.jobs) as tx:
                    for job in batch.jobs:
                        await self._notify(tx, job, GONE)
                return
            chats: dict[str, list[Job]] = defaultdict(list)
            for job in batch.jobs:
                chats[job.payload.get("chat_id", job.job_id)].append(job)
            run = partial(self._run, ctx, batch.gate, batch.channel)
            await run_by_chat(ctx, chats.values(), run)

    async def _run(
        self, ctx: JobContext, gate: OutboundGate, channel: Channel, jobs: Sequence[Job]
    ) -> list[Reschedule]:
        """Makes the first call of a chat. Returns a reschedule of it and those after it if it must be
        retried."""
        job, result = jobs[0], EXPIRED_RESULT
        if self._has_expired(job):
            log.warning("channel_call_too_late", channel=channel.key, job_id=job.job_id)
        else:
            attempt = SendAttempt.of_job(job)
            make = partial(self._call, channel, job)
            await attempt.make(gate, channel, job.payload.get("chat_id"), make)
            # A call that may have succeeded is repeated: docs/decisions/0007-crash-during-delivery.md.
            outcome = attempt.outcome(gate, RETRIES, self._clock.now_ms(), repeatable=True)
            if not outcome.is_final:
                return outcome.reschedule(gate, jobs)
            result = _result(channel, attempt)
        async with ctx.completing(job) as tx:
            await self._notify(tx, job, result)
        return []

    def _has_expired(self, job: Job) -> bool:
        too_late_ms = job.created_at_ms + MAX_AGE_S * 1000
        expires_at_ms: int = job.payload.get("expires_at_ms", too_late_ms)
        return self._clock.now_ms() >= min(too_late_ms, expires_at_ms)

    async def _notify(self, tx: Tx, job: Job, result: Result) -> None:
        then = job.payload.get("then")
        if then is not None:
            await self._jobs.enqueue(tx, NewJob(then["job"], {**then["payload"], **result}))

    async def end_overdue(self, ctx: JobContext, closed: ClosedChannel) -> bool:
        """Drops what has waited for a closed channel for `MAX_AGE_S`. See
        `channels.health.overdue.WaitingWork`."""
        until_ms = self._clock.now_ms() - MAX_AGE_S * 1000
        return all([await self._drop(ctx, closed, name, until_ms) for name in (JOB, OPEN_THREAD)])

    async def _drop(self, ctx: JobContext, closed: ClosedChannel, name: str, until_ms: int) -> bool:
        for _ in range(GROUPS):
            if ctx.stopping:
                return False
            async with ctx.transaction() as tx:
                jobs = await self._jobs.take_overdue(
                    tx, lane_of(closed.key), name, until_ms=until_ms, limit=GROUP
                )
                for job in jobs:
                    await self._notify(tx, job, EXPIRED_RESULT)
            if len(jobs) < GROUP:
                return True
        return False

    async def on_dead(self, tx: Tx, job: Job, _error: str) -> None:
        await self._notify(tx, job, UNDELIVERABLE)

    async def _call(self, channel: Channel, job: Job) -> str | None:
        """Makes one call, adapted to the platform's capabilities. Without edits, and for numbered replies,
        an edit is sent as a new message, since users look for news at the end of the chat. What the
        platform can't show is logged and not sent. Returns the reference of a sent message."""
        payload = job.payload
        if job.name == OPEN_THREAD:
            return await self._open_thread(channel, payload, job.job_id)
        if payload["call"] == "answer_button":
            await channel.answer_button(payload["button_ref"], payload["text"])
            return None
        try:
            return await self._show(channel, payload, payload["sealed"], job.job_id)
        except DeliveryError as error:
            otherwise = payload.get("otherwise")
            if otherwise is None or error.reason is not Reason.INVALID_MESSAGE:
                raise
            log.warning("channel_call_otherwise", channel=channel.key, error=error.text)
            return await self._show(channel, payload, otherwise, f"{job.job_id}-otherwise")

    async def _open_thread(self, channel: Channel, payload: dict[str, Any], key: str) -> str | None:
        if not channel.capabilities.threads:
            return None
        title = self._unsealed(channel, payload["sealed"], key).text
        return await channel.open_thread(payload["chat_id"], title)

    def _unsealed(self, channel: Channel, sealed: str, key: str) -> OutgoingMessage:
        try:
            return self._outbox.unseal(sealed)
        except DecryptionError:
            log.error("channel_call_unreadable", channel=channel.key, job_id=key)
            raise LocalFailure(
                Reason.UNKNOWN, "no secret key decrypts the message any more"
            ) from None

    async def _show(
        self, channel: Channel, payload: dict[str, Any], sealed: str, key: str
    ) -> str | None:
        message = _adapted(self._unsealed(channel, sealed, key), channel.capabilities)
        if problem := channel.problem(message):
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        takes = channel.capabilities
        if payload["call"] == "edit" and takes.edit and takes.buttons == "native":
            shown = without_blocks(channel, message)
            await channel.edit(payload["chat_id"], payload["message_ref"], shown)
            return None
        chat_id, lang = payload["chat_id"], payload.get("lang")
        return await self._sender.send(channel, chat_id, message.with_key(key), lang=lang)


def _result(channel: Channel, attempt: SendAttempt) -> Result:
    """The result for the caller's job: see `OnComplete`."""
    error = attempt.failure
    if error is None:
        return {"outcome": SENT, "error": "", "message_ref": attempt.message_ref}
    log.warning(
        "channel_call_failed", channel=channel.key, reason=str(error.reason), error=error.text
    )
    return _failed(error.reason, error.text)


def _adapted(message: OutgoingMessage, takes: Capabilities) -> OutgoingMessage:
    if not takes.takes_format(message.format) and "plain" in takes.formats:
        spans = to_spans(message.text, message.format)
        message = replace(message, text="".join(span.text for span in spans), format="plain")
    if message.media and message.media.type not in takes.media_types:
        message = replace(message, media=None)
    if takes.buttons_of(message) == "links":
        rows = (tuple(b for b in row if b.url is not None) for row in message.buttons)
        message = replace(message, buttons=tuple(row for row in rows if row))
    return message
