"""System messages: what bots send by themselves, queued with its cause and encrypted until then."""

import json
from collections.abc import Mapping
from typing import Any

from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security import SecretBox

#: The job that makes one call.
JOB = "channel.call"

#: Outcomes of a call beside the reasons of a failure.
SENT, EXPIRED = "sent", "expired"


@value_object
class OnComplete:
    """A job of the lane `default` that is told how a call ended, in the transaction that ends it.

    Its payload is `payload` with `outcome` (`SENT`, `EXPIRED` for a call that came too late, or one of
    the reasons of `DeliveryError`), `error` (what the platform said, else empty) and `message_ref`
    (of what was sent, else null). It may run twice, as every job.
    """

    job: str
    payload: Mapping[str, Any]


class BotOutbox:
    """`service.outbox`: has a bot send, edit or answer, after the commit of what causes it.

    What it holds is encrypted at rest: the bot's own messages hold sign-in codes and tokens.
    """

    def __init__(self, *, jobs: JobQueue, secrets: SecretBox) -> None:
        self._jobs = jobs
        self._secrets = secrets

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
        """Has `message` sent after the commit, ahead of everything else.

        From `expires_at_ms` on it is not sent any more. With the priority of messages, `NORMAL`, it comes
        after those that were queued before it. `lang` is what the person reads, where that is not known
        of the chat. `channel` is the bot's key.
        """
        payload: dict[str, Any] = {"chat_id": chat_id, "sealed": self.seal(message)}
        if expires_at_ms is not None:
            payload["expires_at_ms"] = expires_at_ms
        if on_complete is not None:
            payload["then"] = {"job": on_complete.job, "payload": dict(on_complete.payload)}
        if lang is not None:
            payload["lang"] = lang
        await self._enqueue(tx, channel, "send", priority=priority, **payload)

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
        """Has a message of the bot replaced after the commit; with `otherwise` where the platform does not
        take `message`."""
        sealed: dict[str, Any] = {"sealed": self.seal(message)}
        if lang is not None:
            sealed["lang"] = lang
        if otherwise is not None:
            sealed["otherwise"] = self.seal(otherwise)
        await self._enqueue(tx, channel, "edit", chat_id=chat_id, message_ref=message_ref, **sealed)

    async def answer(self, tx: Tx, channel: str, button_ref: str, text: str | None) -> None:
        """Ends the waiting state of a pressed button after the commit, with an optional notice."""
        await self._enqueue(tx, channel, "answer_button", button_ref=button_ref, text=text)

    def seal(self, message: OutgoingMessage) -> str:
        """A message at rest."""
        return self._secrets.encrypt(to_json(message.to_payload()))

    def unseal(self, sealed: str) -> OutgoingMessage:
        """Raises `DecryptionError`."""
        return OutgoingMessage.from_payload(json.loads(self._secrets.decrypt(sealed)))

    async def _enqueue(
        self, tx: Tx, channel: str, call: str, *, priority: int = URGENT, **payload: Any
    ) -> None:
        job = NewJob(JOB, {"call": call, **payload}, lane=lane_of(channel), priority=priority)
        await self._jobs.enqueue(tx, job)
