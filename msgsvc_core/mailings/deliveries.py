"""Delivers a mailing's message to one recipient: whether it is skipped, its content, and the call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.channels.outbound.send_attempt import SendAttempt
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.mailings import ledger
from msgsvc_core.mailings.content import MailingContent, read_column
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.models import Mailing, MailingShard
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.routing.progress import Obstacle, find_obstacle, hours_obstacle
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check


class RecipientDelivery(SendAttempt):
    """A recipient in flight. `job` identifies the call to the gate's rate limits."""

    __slots__ = ("began_ms", "content", "subscriber", "variant")

    def __init__(
        self,
        job: Job,
        subscriber: Subscriber,
        *,
        attempts: int = 1,
        rate_limited_since_ms: int | None = None,
        was_in_doubt: bool = False,
        variant: int | None = None,
        began_ms: int | None = None,
    ) -> None:
        super().__init__(
            job,
            attempts=attempts,
            rate_limited_since_ms=rate_limited_since_ms,
            was_in_doubt=was_in_doubt,
        )
        self.subscriber = subscriber
        #: The number of the variant that they get; None for what the others get.
        self.variant = variant
        #: When their step of a route began, in Unix milliseconds.
        self.began_ms = began_ms
        self.content: OutgoingMessage | None = None

    @property
    def subscriber_id(self) -> str:
        return self.subscriber.subscriber_id


@dataclass(frozen=True, slots=True)
class SendContext:
    """What all deliveries of a shard share. `failures` are the reasons why a content can't be sent to any of
    them."""

    mailing: Mailing
    channel: Channel | None
    gate: OutboundGate
    failures: Mapping[str, DeliveryError] = field(default_factory=dict)
    #: Whether shared contents can be sent with tracked links: by content, text, and length with links.
    _fits: dict[tuple[str, str, int], bool] = field(default_factory=dict)

    @property
    def repeatable(self) -> bool:
        """Whether a call with a lost response may be repeated: see `Capabilities.repeatable`."""
        return self.channel is not None and self.channel.capabilities.repeatable

    def content_of(self, delivery: RecipientDelivery) -> MailingContent:
        """What a recipient gets: their variant, or what the others get."""
        return read_column(self.mailing.content_of(delivery.variant))

    def fits(self, delivery: RecipientDelivery, tracked: OutgoingMessage) -> bool:
        """Whether the channel takes a recipient's content with `tracked` links."""
        assert self.channel is not None, "who is in flight has a channel"
        assert delivery.content is not None, "it was rendered"
        if not self.content_of(delivery).is_shared(delivery.content):
            return self.channel.problem(tracked) is None
        # With those of others it differs in letters and digits of the addresses alone: one of a length stands
        # for all.
        key = self.mailing.content_of(delivery.variant), delivery.content.text, len(tracked.text)
        known = self._fits.get(key)
        if known is None:
            known = self._fits[key] = self.channel.problem(tracked) is None
        return known

    def failure_of(self, delivery: RecipientDelivery) -> DeliveryError | None:
        """Why nobody can get what a recipient would get; None if they can."""
        return self.failures.get(self.mailing.content_of(delivery.variant))


class RecipientSender:
    """Loads recipients, renders the message of each, and sends it."""

    def __init__(
        self,
        *,
        subscribers: Subscribers,
        limits: MessageLimits,
        links: LinkTracking,
        default_lang: str,
        files: MessageFiles,
        sender: ChannelSender,
    ) -> None:
        self._subscribers = subscribers
        self._limits = limits
        self._links = links
        self._default_lang = default_lang
        self._files = files
        self._sender = sender

    async def find_many(
        self, tx: Tx, project_id: str, subscriber_ids: Sequence[str]
    ) -> dict[str, Subscriber]:
        """The recipients that still exist, by id."""
        if not subscriber_ids:
            return {}
        found = await self._subscribers.get_many(
            tx, [(project_id, each) for each in subscriber_ids]
        )
        return {subscriber_id: person for (_, subscriber_id), person in found.items()}

    async def find_next(
        self,
        tx: Tx,
        mailing: Mailing,
        shard: MailingShard,
        limit: int,
        in_flight: Collection[str] = (),
    ) -> list[Subscriber]:
        """A shard's next recipients, in the order of their ids, without those in flight."""
        if limit <= 0:
            return []
        # A second stage begins before the first has ended. In all other walks those in flight are behind.
        ahead = [each for each in in_flight if each > shard.walked_to]
        excluded: tuple[str, dict[str, Any]] = ("", {})
        if ahead:
            these, given = any_of("subscriber_id", "in_flight", ahead, tx.dialect)
            excluded = f" AND NOT ({these})", given
        ids, params = ledger.next_recipients(mailing, shard, limit, excluded)
        return await self._subscribers.find_selected(tx, mailing.project_id, ids, params)

    async def prepare(
        self, context: SendContext, deliveries: Sequence[RecipientDelivery]
    ) -> list[RecipientDelivery]:
        """Renders the contents of deliveries; returns those to be sent. The others have failed or must
        wait."""
        for delivery in deliveries:
            delivery.failure = context.failure_of(delivery)
            try:
                delivery.content = context.content_of(delivery).message_for(
                    delivery.subscriber,
                    self._default_lang,
                    self._limits.text_length,
                    self._subscribers.preferences,
                )
                self._limits.check_size(delivery.content)
            except (ValidationFailed, WrongVariable) as error:
                delivery.failure = DeliveryError(Reason.INVALID_MESSAGE, str(error))
                continue
            assert context.channel is not None, "who is in flight has a channel"
            if problem := context.channel.problem(delivery.content):
                delivery.failure = DeliveryError(Reason.INVALID_MESSAGE, problem)
                continue
            delivery.content = self._with_links(context, delivery, delivery.content)
        await self._check_files(context, [each for each in deliveries if each.failure is None])
        return [each for each in deliveries if each.failure is None and each.delay_ms is None]

    def _with_links(
        self, context: SendContext, delivery: RecipientDelivery, content: OutgoingMessage
    ) -> OutgoingMessage:
        """The content with its links tracked. Somebody whose own values make it too long for that gets it as
        it was written: a click that is not counted is better than a message that is not sent."""
        tracked = self._links.message_for(
            context.mailing.job_id, delivery.subscriber_id, context.content_of(delivery), content
        )
        if tracked is content or self._limits.is_too_long(tracked):
            return content
        return tracked if context.fits(delivery, tracked) else content

    async def check_shared(self, content: MailingContent) -> "Check | None":
        """The check of the file that all recipients get; None if it needs none."""
        return await self._files.check_of(content.shared_media)

    async def _check_files(
        self, context: SendContext, deliveries: Sequence[RecipientDelivery]
    ) -> None:
        """Checks files whose URL differs per recipient; a shared file is checked before any recipient is in
        flight.

        Waits for a moment: with so many URLs, the results would not be cached until the next attempt.
        """
        with_file = [
            (delivery, delivery.content.media)
            for delivery in deliveries
            if delivery.content is not None
            and delivery.content.media is not None
            and context.content_of(delivery).shared_media is None
        ]
        checks = await self._files.check_all([media for _, media in with_file])
        # No checks if no file needs one.
        for (delivery, _), check in zip(with_file, checks, strict=False):
            delivery.failure = check.failure
            if not check.done:
                delivery.delay_ms = ceil(check.retry_in_s * 1000)

    async def send(self, context: SendContext, delivery: RecipientDelivery) -> None:
        """Makes the call, when the rate limits of bot and chat allow it. Never raises the call's errors."""
        channel, chat_id = context.channel, delivery.subscriber.chat_id
        assert channel is not None, "who is in flight has a channel"
        assert delivery.content is not None, "what is sent was prepared"
        # From mailing and recipient: the same after a crash, when no message has an id yet.
        content = delivery.content.with_key(f"{context.mailing.job_id}-{delivery.subscriber_id}")
        content = content.of_project(context.mailing.project_id)
        if channel.capabilities.addresses:
            links = self._subscribers.preferences
            url = links.url(context.mailing.project_id, delivery.subscriber_id)
            content = content.with_unsubscribe_url(url)
        send = partial(self._sender.send, channel, chat_id, content)
        await delivery.make(context.gate, channel, chat_id, send, in_flight=True)


def obstacle(context: SendContext, subscriber: Subscriber | None, now_ms: int) -> Obstacle | None:
    """Why a recipient is skipped, or goes on along the route; None if not."""
    if subscriber is None:
        return find_obstacle(status=None)
    mailing, channel = context.mailing, context.channel
    return find_obstacle(
        status=subscriber.status,
        is_expired=has_expired(mailing, now_ms),
        has_channel=channel is not None,
        missing_permission=missing_permission(mailing, subscriber),
        has_same_bot=channel is None or subscriber.bot == channel.key,
    ) or step_obstacle(mailing, subscriber.channel, now_ms)


def has_expired(mailing: Mailing, now_ms: int) -> bool:
    return mailing.expires_at_ms is not None and mailing.expires_at_ms <= now_ms


def missing_permission(mailing: Mailing, subscriber: Subscriber) -> str | None:
    """The permission that a recipient would have to grant; None if they lack none."""
    for needed in (mailing.permission, mailing.audience.get("permission")):
        if needed is not None and needed not in subscriber.permissions:
            return str(needed)
    return None


def step_obstacle(mailing: Mailing, channel: str, now_ms: int) -> Obstacle | None:
    """Why the step of a route that uses a channel can't be used now; None if it can, and without a route."""
    step = mailing.step_of(channel)
    return None if step is None else hours_obstacle(mailing.steps[step], now_ms)
