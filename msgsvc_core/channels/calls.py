"""System messages of bots: questions, edits, answers to buttons, as jobs of the channel's lane.

Handlers enqueue them in their transaction; no platform is called from inside one.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import structlog

from msgsvc_core.channels.contract import Capabilities, Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.ordering import receiver_of
from msgsvc_core.channels.outbound import (
    BATCH,
    BATCHES,
    PATIENCE_S,
    ChannelPaused,
    OutboundGate,
    OutboundGates,
)
from msgsvc_core.channels.outbox import EXPIRED, JOB, LANE, SENT, BotOutbox, channel_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.words import ChannelSender
from msgsvc_core.content.markup import to_spans
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import (
    Gate,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    NewJob,
    Reschedule,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import DecryptionError

#: Seconds to wait after the n-th failed try, and how many tries there are.
BACKOFF = exponential(first_s=1, max_s=60)
MAX_ATTEMPTS = 6


#: A bot with a pace, and one whose platform is slow, have more batches, of few jobs each: see `lines`.
def channel_lanes(gate: Callable[[str], Gate]) -> LaneSpec:
    """The lanes of all channels."""
    return LaneSpec(LANE, concurrency=BATCHES, batch=BATCH, exclusive=True, gate=gate)


#: Seconds after which what a bot had to say is of no use any more, e.g. while it was stopped: the
#: question of a sign-in is over by then, and platforms drop buttons that wait for an answer sooner.
MOST_AGE_S = 3600

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a call ended that is not made again."""

    outcome: str = SENT
    error: str = ""
    message_ref: str | None = None


class BotCalls:
    """The job that makes a bot's own calls: see `BotOutbox`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        outbox: BotOutbox,
        channels: Channels,
        lines: OutboundGates,
        sender: ChannelSender,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._outbox = outbox
        self._channels = channels
        self._lines = lines
        self._sender = sender

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            JOB, self.run, max_attempts=MAX_ATTEMPTS, backoff=BACKOFF, on_dead=self.on_dead
        )

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the calls of a batch: chats side by side, the calls of one chat in their order."""
        key = channel_of(jobs[0].lane)
        channels, line = self._channels, self._lines[key]
        async with channels.borrow(key) as channel:
            if channel is None:
                log.warning("channel_gone", channel=key, calls=len(jobs))
                gone = _Ended(str(Reason.UNKNOWN), "the channel is not there any more")
                async with ctx.completing(*jobs) as tx:
                    for job in jobs:
                        await self._tell(tx, job, gone)
                return
            async with channels.turns.take(map(receiver_of, jobs)):
                by_chat: dict[str, list[Job]] = defaultdict(list)
                for job in await line.in_order(ctx, jobs):
                    by_chat[job.payload.get("chat_id", job.job_id)].append(job)
                await self._run_chats(ctx, line, channel, by_chat)

    async def _run_chats(
        self,
        ctx: JobContext,
        line: OutboundGate,
        channel: Channel,
        by_chat: Mapping[str, list[Job]],
    ) -> None:
        # All chats are awaited even if one fails: a call that went on beside the retry of its own job
        # would be made twice.
        ended = await asyncio.gather(
            *(self._run_in_order(ctx, line, channel, chat) for chat in by_chat.values()),
            return_exceptions=True,
        )
        for failure in ended:
            if failure is not None:
                raise failure

    async def _run_in_order(
        self, ctx: JobContext, line: OutboundGate, channel: Channel, jobs: Sequence[Job]
    ) -> None:
        for number, job in enumerate(jobs):
            end = await self._run(ctx, line, channel, jobs[number:])
            if not isinstance(end, _Ended):
                async with ctx.putting_back(end):
                    return
            async with ctx.completing(job) as tx:
                await self._tell(tx, job, end)

    async def _run(
        self, ctx: JobContext, line: OutboundGate, channel: Channel, jobs: Sequence[Job]
    ) -> _Ended | list[Reschedule]:
        """Makes the first of a chat's calls; returns how it ended, or what puts it and those after it
        back, if it must be made later."""
        job, now_ms = jobs[0], self._clock.now_ms()
        chat_id = job.payload.get("chat_id")
        if now_ms >= min(
            job.created_at_ms + MOST_AGE_S * 1000, job.payload.get("expires_at_ms", sys.maxsize)
        ):
            log.warning("channel_call_too_late", channel=channel.key, job_id=job.job_id)
            return _Ended(EXPIRED)
        wait_s = None if chat_id is None else line.too_early_s(chat_id, PATIENCE_S)
        if wait_s is not None:
            return line.later(jobs, now_ms + ceil(wait_s * 1000))
        try:
            made = partial(self._call, channel, job)
            return _Ended(message_ref=await line.call(channel, job, chat_id, made))
        except ChannelPaused:
            return line.again(jobs)
        except DeliveryError as error:
            return _after_failure(line, channel, jobs, error)
        except Exception as error:  # noqa: BLE001 - `_after_fault` logs it; no channel may stop its lane
            return _after_fault(channel, job, error)

    async def _tell(self, tx: Tx, job: Job, end: _Ended) -> None:
        then = job.payload.get("then")
        if then is None:
            return
        told = {"outcome": end.outcome, "error": end.error, "message_ref": end.message_ref}
        await self._jobs.enqueue(tx, NewJob(then["job"], {**then["payload"], **told}))

    async def on_dead(self, tx: Tx, job: Job, _error: str) -> None:
        # What went wrong is the operator's to know: it may name hosts and files of theirs.
        await self._tell(tx, job, _Ended(str(Reason.UNKNOWN), "the service could not deliver it"))

    async def _call(self, channel: Channel, job: Job) -> str | None:
        """One call, adapted to what the platform can: no edit is a new message, also where people answer in
        words, as they look for what is new at the end of the chat. What it can't take at all is logged, and
        not sent. Returns the reference of a message that was sent."""
        payload = job.payload
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

    async def _show(
        self, channel: Channel, payload: dict[str, Any], sealed: str, key: str
    ) -> str | None:
        message = _adapted(self._outbox.unseal(sealed), channel.capabilities)
        if problem := channel.problem(message):
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        takes = channel.capabilities
        if payload["call"] == "edit" and takes.edit and takes.buttons == "native":
            await channel.edit(payload["chat_id"], payload["message_ref"], message)
            return None
        chat_id, lang = payload["chat_id"], payload.get("lang")
        return await self._sender.send(channel, chat_id, message.with_key(key), lang=lang)


def _after_fault(channel: Channel, job: Job, error: Exception) -> _Ended:
    if isinstance(error, DecryptionError):
        log.error("channel_call_unreadable", channel=channel.key, job_id=job.job_id)
        return _Ended(str(Reason.UNKNOWN), "no secret key decrypts the message any more")
    log.error("channel_broke_contract", channel=channel.key, exc_info=error)
    return _Ended(str(Reason.UNKNOWN), type(error).__name__)


def _after_failure(
    line: OutboundGate, channel: Channel, jobs: Sequence[Job], error: DeliveryError
) -> _Ended | list[Reschedule]:
    """A platform that asks to wait takes up no attempt. What is in doubt is made again: see
    docs/decisions/0007-crash-during-delivery.md."""
    is_refused = error.only_waits
    if is_refused and line.closed:
        return line.again(jobs)
    if is_refused or (error.reason.retryable and jobs[0].attempts < MAX_ATTEMPTS):
        at_ms = line.retry_at_ms(error, BACKOFF, jobs[0].attempts)
        return line.later(jobs, at_ms, counts=not is_refused)
    log.warning(
        "channel_call_failed", channel=channel.key, reason=str(error.reason), error=error.text
    )
    return _Ended(str(error.reason), error.text)


def _adapted(message: OutgoingMessage, takes: Capabilities) -> OutgoingMessage:
    if message.format not in takes.formats and "plain" in takes.formats:
        spans = to_spans(message.text, message.format)
        message = replace(message, text="".join(span.text for span in spans), format="plain")
    if message.media and message.media.type not in takes.media_types:
        message = replace(message, media=None)
    if not takes.answers:
        rows = (tuple(b for b in row if b.url is not None) for row in message.buttons)
        message = replace(message, buttons=tuple(row for row in rows if row))
    return message
