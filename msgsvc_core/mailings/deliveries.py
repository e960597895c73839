"""One recipient's message on its way: what stands against it, the call, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound import PATIENCE_S, ChannelPaused, OutboundGate
from msgsvc_core.channels.words import ChannelSender
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.mailings.content import MailingContent
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class RecipientDelivery:
    """A recipient who is in hand. `job` stands for the call in the line's reckoning of a paced bot."""

    subscriber: Subscriber
    attempts: int
    job: Job
    #: Since when the platform asks to wait with them, in Unix milliseconds; None unless it does.
    refused_from_ms: int | None = None
    content: OutgoingMessage | None = None
    message_ref: str | None = None
    failure: DeliveryError | None = None
    #: Whether an earlier try may have shown it to them.
    in_doubt: bool = False
    #: In how many milliseconds to try again, no call having been made; None if one was.
    again_in_ms: int | None = None

    @property
    def subscriber_id(self) -> str:
        return self.subscriber.subscriber_id


@dataclass(frozen=True, slots=True)
class SendContext:
    """What all letters of a way have in common. `failure` is why none of them can be sent."""

    mailing: Mailing
    content: MailingContent
    channel: Channel | None
    line: OutboundGate
    failure: DeliveryError | None = None

    @property
    def repeats(self) -> bool:
        """Whether what is in doubt may be sent again: see `Capabilities.repeatable`."""
        return self.channel is not None and self.channel.capabilities.repeatable


class Letters:
    """Writes and sends letters."""

    def __init__(
        self,
        *,
        limits: MessageLimits,
        default_lang: str,
        files: MessageFiles,
        sender: ChannelSender,
    ) -> None:
        self._limits = limits
        self._default_lang = default_lang
        self._files = files
        self._sender = sender

    async def write(
        self, post: SendContext, letters: Sequence[RecipientDelivery]
    ) -> list[RecipientDelivery]:
        """Gives letters their contents; returns those to be sent, the others have failed or must wait."""
        for letter in letters:
            letter.failure = post.failure
            try:
                letter.content = post.content.message_for(
                    letter.subscriber, self._default_lang, self._limits.text_length
                )
                self._limits.check_size(letter.content)
            except (ValidationFailed, WrongVariable) as error:
                letter.failure = DeliveryError(Reason.INVALID_MESSAGE, str(error))
                continue
            assert post.channel is not None, "who is in hand has a channel"
            if problem := post.channel.problem(letter.content):
                letter.failure = DeliveryError(Reason.INVALID_MESSAGE, problem)
        await self._look_at_files(post, [letter for letter in letters if letter.failure is None])
        return [each for each in letters if each.failure is None and each.again_in_ms is None]

    async def check_shared(self, content: MailingContent) -> "Check | None":
        """What is known of the file that all get; None where nothing has to be known."""
        return await self._files.check_of(content.shared_media)

    async def _look_at_files(self, post: SendContext, letters: Sequence[RecipientDelivery]) -> None:
        """Of files whose address is personal: one that all get is looked at before anybody is in hand.

        Waits for a moment: what is known of so many is not remembered until they would be here again.
        """
        if post.content.shared_media is not None:
            return
        with_file = [
            (letter, letter.content.media)
            for letter in letters
            if letter.content is not None and letter.content.media is not None
        ]
        checks = await self._files.check_all([media for _, media in with_file])
        # No checks where nothing has to be known.
        for (letter, _), check in zip(with_file, checks, strict=False):
            letter.failure = check.failure
            if not check.done:
                letter.again_in_ms = ceil(check.retry_in_s * 1000)

    async def send(self, post: SendContext, letter: RecipientDelivery) -> None:
        """Makes the call, when the bot's and the chat's turn has come. Never raises what the call does."""
        channel, line, chat_id = post.channel, post.line, letter.subscriber.chat_id
        assert channel is not None, "who is in hand has a channel"
        assert letter.content is not None, "what is sent was written"
        try:
            wait_s = line.too_early_s(chat_id, PATIENCE_S)
            if wait_s is not None:
                letter.again_in_ms = ceil(wait_s * 1000)
                return
            # Of the mailing and the recipient: the same after a crash, when no message has an id yet.
            content = letter.content.with_key(f"{post.mailing.job_id}-{letter.subscriber_id}")
            made = partial(self._sender.send, channel, chat_id, content)
            letter.message_ref = await line.call_in_flight(channel, letter.job, chat_id, made)
        except ChannelPaused:
            letter.again_in_ms = 0
        except DeliveryError as error:
            letter.failure = error
        except Exception as error:
            log.exception("channel_broke_contract", channel=channel.key)
            letter.failure = DeliveryError(Reason.UNKNOWN, type(error).__name__)


def obstacle(post: SendContext, subscriber: Subscriber | None, now_ms: int) -> str | None:
    """Why a recipient is skipped; None if they are not."""
    if subscriber is None or subscriber.status != "active":
        return "not subscribed"
    mailing = post.mailing
    if mailing.expires_at_ms is not None and mailing.expires_at_ms <= now_ms:
        return "expired"
    if post.channel is None:
        return "its channel is gone"
    for permission in (mailing.permission, mailing.audience.get("permission")):
        if permission not in {None, *subscriber.permissions}:
            return f"the permission {permission!r} is not granted"
    if subscriber.bot != post.channel.key:
        return "the person has gone over to another bot"
    return None
