"""What a bot says by itself: questions, edits, answers to buttons, as jobs of the channel's lane.

Handlers write them in their transaction; no platform is called from inside one.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from msgsvc_core.channels.contract import Capabilities, Channel
from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.channels.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import (
    URGENT,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    NewJob,
    exponential,
)
from msgsvc_core.json_text import to_json
from msgsvc_core.security import DecryptionError

if TYPE_CHECKING:
    from msgsvc_core.service import Service

JOB = "channel.call"

#: Jobs of a channel that are claimed together, and at most so many calls at once.
BATCH = 100

#: Two batches are under way at once: while the calls of one are made, the other's are read or written.
CHANNEL_LANES = LaneSpec("channel", concurrency=2, batch=BATCH, exclusive=True)

log = structlog.get_logger(__name__)


def lane_of(channel: str) -> str:
    """The lane of everything that goes out on a channel."""
    return f"channel:{channel}"


def channel_of(lane: str) -> str:
    """The key of the channel that a lane is of."""
    return lane.partition(":")[2]


async def enqueue_send(
    service: "Service", tx: Tx, channel: str, chat_id: str, message: OutgoingMessage
) -> None:
    sealed = _seal(service, message)
    await _enqueue(service, tx, channel, "send", chat_id=chat_id, sealed=sealed)


async def enqueue_edit(
    service: "Service",
    tx: Tx,
    channel: str,
    chat_id: str,
    message_ref: str,
    message: OutgoingMessage,
) -> None:
    await _enqueue(
        service,
        tx,
        channel,
        "edit",
        chat_id=chat_id,
        message_ref=message_ref,
        sealed=_seal(service, message),
    )


async def enqueue_answer(
    service: "Service", tx: Tx, channel: str, button_ref: str, text: str | None
) -> None:
    await _enqueue(service, tx, channel, "answer_button", button_ref=button_ref, text=text)


async def _enqueue(service: "Service", tx: Tx, channel: str, call: str, **payload: Any) -> None:
    job = NewJob(JOB, {"call": call, **payload}, lane=lane_of(channel), priority=URGENT)
    await service.jobs.enqueue(tx, job)


async def run_calls(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Makes the calls of a batch: chats side by side, the calls of one chat in their order."""
    key = channel_of(jobs[0].lane)
    channels = ctx.service.channels
    by_chat: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_chat[job.payload.get("chat_id", job.job_id)].append(job)
    async with channels.use(key) as channel:
        if channel is None:
            log.warning("channel_gone", channel=key, calls=len(jobs))
            return
        async with channels.turns.take((key, chat) for chat in by_chat):
            await _run_chats(ctx, channel, by_chat)


async def _run_chats(ctx: JobContext, channel: Channel, by_chat: Mapping[str, list[Job]]) -> None:
    # All chats are awaited even if one fails: a call that went on beside the retry of its own job
    # would be made twice.
    ended = await asyncio.gather(
        *(_run_in_order(ctx, channel, chat) for chat in by_chat.values()), return_exceptions=True
    )
    for failure in ended:
        if failure is not None:
            raise failure


async def _run_in_order(ctx: JobContext, channel: Channel, jobs: Sequence[Job]) -> None:
    for number, job in enumerate(jobs):
        try:
            await _call(ctx.service, channel, job.payload)
        except DecryptionError:
            log.error("channel_call_unreadable", channel=channel.key, job_id=job.job_id)
        except DeliveryError as error:
            if error.reason.retryable and job.attempts < SPEC.max_attempts:
                await _retry_later(ctx, jobs[number:], error)
                return
            log.warning("channel_call_failed", channel=channel.key, reason=str(error.reason))
        except Exception:
            log.exception("channel_broke_contract", channel=channel.key)
        async with ctx.completing(job):
            pass


async def _retry_later(ctx: JobContext, jobs: Sequence[Job], error: DeliveryError) -> None:
    """Puts back the call that failed and those of its chat that would have followed it."""
    after_s = SPEC.backoff(jobs[0].attempts) if error.retry_after_s is None else error.retry_after_s
    for job in jobs:
        async with ctx.rescheduling(job, after_s=after_s, counts=job is jobs[0]):
            pass


async def _call(service: "Service", channel: Channel, payload: dict[str, Any]) -> None:
    """One call, adapted to what the platform can: no edit is a new message, and buttons that it
    can't show are left out."""
    if payload["call"] == "answer_button":
        await channel.answer_button(payload["button_ref"], payload["text"])
        return
    message = _adapted(_unseal(service, payload["sealed"]), channel.capabilities)
    if payload["call"] == "edit" and channel.capabilities.edit:
        await channel.edit(payload["chat_id"], payload["message_ref"], message)
    else:
        await channel.send(payload["chat_id"], message)


def _adapted(message: OutgoingMessage, takes: Capabilities) -> OutgoingMessage:
    return message if takes.buttons else replace(message, buttons=())


def _seal(service: "Service", message: OutgoingMessage) -> str:
    """A message at rest: the bot's own hold sign-in codes and tokens."""
    return service.secrets.encrypt(to_json(message.to_payload()))


def _unseal(service: "Service", sealed: str) -> OutgoingMessage:
    return OutgoingMessage.from_payload(json.loads(service.secrets.decrypt(sealed)))


SPEC = JobSpec(JOB, run_calls, max_attempts=6, backoff=exponential(first_s=1, most_s=60))
