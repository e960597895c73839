"""System messages, sent by bots on their own: queued in the transaction of their cause, and encrypted at
rest."""

import json
from collections.abc import Mapping
from typing import Any

from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.system_messages.automatic_answers import AutomaticAnswers
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security import SecretBox

#: The job that makes one call of a bot.
JOB = "channel.call"

#: The job that opens a thread. Its name is its own: a worker from before threads, which may share the lane
#: during an upgrade, sends whatever call of `JOB` it does not know.
OPEN_THREAD = "channel.open_thread"

#: Outcomes of a call besides the reasons of a failure.
SENT, EXPIRED = "sent", "expired"


@value_object
class OnComplete:
    """A job of the lane `default` that gets the result of a call, enqueued in the transaction that records
    it.

    Its payload is `payload` with `outcome` (`SENT`, `EXPIRED` for a call that was too late, or a reason of
    `DeliveryError`), `error` (the platform's message, or empty) and `message_ref` (of what was sent or
    opened, or null). Like every job, it may run twice.
    """

    job: str
    payload: Mapping[str, Any]


class BotOutbox:
    """`service.outbox`: makes a bot send, edit or answer, after the commit of the caller's transaction.

    The queued calls are encrypted at rest, since system messages contain sign-in codes and tokens.
    """

    def __init__(self, *, jobs: JobQueue, secrets: SecretBox, automatic: AutomaticAnswers) -> None:
        self._jobs = jobs
        self._secrets = secrets
        self._automatic = automatic

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
        """Sends `message` after the commit, before all other messages.

        It is dropped if not sent by `expires_at_ms`. With the priority `NORMAL`, that of messages, it is sent
        after those queued before it. `lang` is the user's language if none is stored for the chat. `channel`
        is the bot's key.
        """
        payload: dict[str, Any] = {"chat_id": chat_id, "sealed": self.seal(message)}
        if expires_at_ms is not None:
            payload["expires_at_ms"] = expires_at_ms
        if on_complete is not None:
            payload["then"] = {"job": on_complete.job, "payload": dict(on_complete.payload)}
        if lang is not None:
            payload["lang"] = lang
        await self._enqueue(tx, channel, "send", priority=priority, **payload)

    async def may_answer(
        self, tx: Tx, channel: str, chat_id: str, kind: str, share: int = 1
    ) -> bool:
        """Whether a chat may get one more automatic answer of a kind; it is counted. See
        `AutomaticAnswers.take`."""
        return await self._automatic.take(tx, channel, chat_id, kind, share)

    async def withheld_answers(self, tx: Tx, channel: str, chat_id: str) -> int:
        """How many automatic answers a chat did not get during the last day: a program may be at its other
        end."""
        return await self._automatic.withheld(tx, channel, chat_id)

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
        """Edits a message of the bot after the commit; with `otherwise` if the platform can't show
        `message`."""
        sealed: dict[str, Any] = {"sealed": self.seal(message)}
        if lang is not None:
            sealed["lang"] = lang
        if otherwise is not None:
            sealed["otherwise"] = self.seal(otherwise)
        await self._enqueue(tx, channel, "edit", chat_id=chat_id, message_ref=message_ref, **sealed)

    async def open_thread(
        self, tx: Tx, channel: str, chat_id: str, title: str, on_complete: OnComplete
    ) -> None:
        """Opens a thread in a chat after the commit. `on_complete` gets its id as `message_ref`: null where
        there are none, or it could not be opened."""
        payload = {
            "chat_id": chat_id,
            "sealed": self.seal(OutgoingMessage(title)),
            "then": {"job": on_complete.job, "payload": dict(on_complete.payload)},
        }
        job = NewJob(OPEN_THREAD, payload, lane=lane_of(channel), priority=URGENT)
        await self._jobs.enqueue(tx, job)

    async def answer(self, tx: Tx, channel: str, button_ref: str, text: str | None) -> None:
        """Ends the waiting state of a pressed button after the commit, with an optional notice."""
        await self._enqueue(tx, channel, "answer_button", button_ref=button_ref, text=text)

    def seal(self, message: OutgoingMessage) -> str:
        """A message, encrypted for storage."""
        return self._secrets.encrypt(to_json(message.to_payload()))

    def unseal(self, sealed: str) -> OutgoingMessage:
        """Raises `DecryptionError`."""
        return OutgoingMessage.from_payload(json.loads(self._secrets.decrypt(sealed)))

    async def _enqueue(
        self, tx: Tx, channel: str, call: str, *, priority: int = URGENT, **payload: Any
    ) -> None:
        job = NewJob(JOB, {"call": call, **payload}, lane=lane_of(channel), priority=priority)
        await self._jobs.enqueue(tx, job)
