"""Sends the message that carries a code, by the subscriber's bot."""

from msgsvc_core.channels import Identity
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox, OnComplete
from msgsvc_core.db import Tx
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_otp.models import OneTimeCode
from msgsvc_otp.wording import Wording

#: The job that gets the outcome of a message with a code.
TOLD = "otp.told"


class CodeSender:
    """Sends a code to its subscriber; the job `TOLD` gets the outcome."""

    def __init__(
        self,
        *,
        wording: Wording,
        channels: Channels,
        messages: Messages,
        outbox: BotOutbox,
        default_lang: str,
    ) -> None:
        self._wording = wording
        self._channels = channels
        self._messages = messages
        self._outbox = outbox
        self._default_lang = default_lang

    async def check(self, tx: Tx, request: OneTimeCode, code: str) -> None:
        """Raises `ValidationFailed` for a template of the project that can't carry the code."""
        await self._wording.message(tx, request, request.lang or self._default_lang, code)

    def proves(self, subscriber: Subscriber) -> Identity | None:
        """What a code that was sent to the subscriber proves; None if their bot is gone."""
        channel = self._channels.get(subscriber.bot)
        return None if channel is None else channel.capabilities.identity

    async def send(self, tx: Tx, issued: OneTimeCode, subscriber: Subscriber, code: str) -> None:
        """After the commit. Raises `ValidationFailed` as `check`, or if the channel can't carry it."""
        lang = self._wording.language(issued, subscriber)
        message = await self._wording.message(tx, issued, lang, code)
        channel = await self._channels.get_bot(
            issued.project_id, subscriber.bot, subscriber.channel
        )
        self._messages.check_content(channel, message)
        await self._outbox.send(
            tx,
            channel.key,
            subscriber.chat_id,
            message.of_project(issued.project_id),
            expires_at_ms=issued.expires_at_ms,
            on_complete=OnComplete(
                TOLD,
                {
                    "project_id": issued.project_id,
                    "otp_id": issued.otp_id,
                    "channel": channel.key,
                    "subscriber_id": subscriber.subscriber_id,
                    # Of its route, or null.
                    "step": issued.step,
                },
            ),
        )
