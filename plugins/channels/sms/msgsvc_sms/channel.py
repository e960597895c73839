"""What both ways of sending SMS share: texts, limits, words that stop messages, people by their number."""

import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import structlog

from msgsvc_core.channels import (
    Blocked,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelIdentity,
    ChannelNotReady,
    ChannelUser,
    DeliveryError,
    MessageReceived,
    OutgoingMessage,
    Pace,
    Reason,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.failures import LocalFailure
from msgsvc_core.channels.updates import NOBODY
from msgsvc_core.content.markup import Span, to_spans, with_addresses
from msgsvc_core.db import Tx
from msgsvc_core.kernel import phone
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.storable_text import storable
from msgsvc_sms.gsm import longest, plain, split
from msgsvc_sms.limits import Limits
from msgsvc_sms.operators import Operators
from msgsvc_sms.settings import SmsSettings, folded

#: UTF-16 code units of each part of a long text, with the larger reference.
UNITS_PER_PART = 66

#: Characters of a text that every channel takes (decision 0075).
MOST_TEXT = 4000

#: What the raw bytes of an item are that can't be read: the sender and the text, as JSON.
TEXT = "text"

_START = re.compile(r"/?start(?:\s+(\S+))?\s*", re.IGNORECASE)

log = structlog.get_logger(__name__)


class SmsChannel(Channel):
    """One sender. The id of a user, and of their chat, is their number: `+` and digits. Decisions are in
    docs/decisions/0148."""

    capabilities = Capabilities(
        text_unit="utf16",
        media_types=frozenset(),
        buttons="words",
        identity="phone",
        addresses=True,
        start_links=False,
        notices=False,
        edit=False,
        delete=False,
    )

    def __init__(
        self,
        context: ChannelContext,
        identity: ChannelIdentity,
        settings: SmsSettings,
        *,
        receives: bool,
    ) -> None:
        super().__init__(identity)
        self.capabilities = replace(
            self.capabilities,
            max_text_length=min(MOST_TEXT, UNITS_PER_PART * settings.max_segments),
            # Where nobody can answer, buttons would only be numbers below the text.
            buttons="words" if receives else "links",
            proves_answers=settings.trusts_senders and receives,
            # So that the core takes no text for a start: that is decided here.
            start_links=receives,
            hook_methods=frozenset({"GET", "POST"}),
            reports=frozenset({"delivered"}) if receives else frozenset(),
        )
        self.pace = Pace(per_bot_s=settings.per_second)
        self._context = context
        self._common = settings
        self._country = settings.default_country or context.default_country
        self._receives = receives
        self._limits = Limits(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            identity=identity,
            settings=settings,
        )

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        number = self._recipient(chat_id)
        if problem := self.problem(message):
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        text = self._text(message)
        debit = await self._limits.debit(
            number, len(split(text).parts), message.project_id, self._context.provided(Operators)
        )
        try:
            ref = await self.deliver(number, text, message.key)
        except DeliveryError as error:
            await self._limits.settle(debit, error)
            raise
        await self._limits.settle(debit, None)
        return ref

    @abstractmethod
    async def deliver(self, number: str, text: str, key: str) -> str:
        """Makes the call; returns the id of the message. Raises `DeliveryError`."""

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an SMS that was sent can't be changed")

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an SMS that was sent can't be deleted")

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Buttons are numbered replies: nobody waits."""

    def deep_link(self, payload: str) -> str:
        number = self._common.own_number
        if not self._receives or number is None:
            raise ChannelNotReady(f"the channel {self.name!r} receives no texts")
        if not self._common.trusts_senders:
            raise ChannelNotReady(
                f"nobody signs in by a text to {self.name!r}: see its setting trusts_senders"
            )
        # RFC 5724.
        return f"sms:{number}?body=start%20{payload}"

    def problem(self, message: OutgoingMessage) -> str | None:
        if problem := super().problem(message):
            return problem
        limit = self.text_limit(message)
        # With the addresses of its links, which are shown behind their labels.
        if len(self._text(message).encode("utf-16-le", "surrogatepass")) // 2 > limit:
            return f"text: must be at most {limit} UTF-16 code units on this channel"
        return None

    def text_limit(self, message: OutgoingMessage) -> int:
        any_text = self.capabilities.max_text_length
        if message.buttons:
            # They become lines of the text, in the language of the person.
            return any_text
        gsm = longest(self._text(message), self._common.max_segments)
        return any_text if gsm is None else max(any_text, min(MOST_TEXT, gsm))

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return [Span(self._text(message))]

    def parse_address(self, text: str) -> str:
        number = phone.normalized(text, self._country)
        if not self._common.allows(number):
            raise InvalidValue("must be a number of a country that this channel may write to")
        return number

    async def limitation(self, tx: Tx) -> str | None:
        return await self._limits.limitation(tx)

    async def lift_limitation(self, tx: Tx) -> bool:
        return await self._limits.lift(tx) > 0

    # ---- in -------------------------------------------------------------------------------------

    def updates_of(self, sender: str, text: str, update_id: str) -> list[Update]:
        """The updates of a text from a number."""
        text, update_id = storable(text), storable(update_id)
        try:
            number = self._sender(sender)
        except InvalidValue:
            why, odd = "it is not from a phone number", UnreadableReason.NO_SENDER
            return _unreadable(sender, text, update_id, odd, why)
        verified = number if self._common.trusts_senders else None
        user = ChannelUser(number, "", number, phone=verified)
        word = folded(text)
        if word in self._common.stops:
            return [Blocked(update_id=update_id, chat_id=number, user=user)]
        if word in self._common.starts:
            # The second has people who never had anything subscribe, as a first `/start` does.
            return [
                Unblocked(update_id=update_id, chat_id=number, user=user),
                Started(update_id=f"{update_id}-start", chat_id=number, user=user),
            ]
        if not text.strip():
            return _unreadable(number, text, update_id, UnreadableReason.EMPTY, "it is empty", user)
        start = _START.fullmatch(text.strip())
        if start is None:
            return [MessageReceived(update_id=update_id, chat_id=number, user=user, text=text)]
        return self._started(user, text, start[1] or "", update_id)

    def _sender(self, sender: str) -> str:
        """The number of a sender; some centres name it as it is dialled in their country."""
        if sender.startswith("0") and not sender.startswith("00") and self._country is not None:
            return phone.normalized(sender, self._country)
        return phone.from_platform(sender)

    def _started(self, user: ChannelUser, text: str, payload: str, update_id: str) -> list[Update]:
        number, trusted = user.user_id, self._common.trusts_senders
        if payload and not (trusted and START_PAYLOAD.fullmatch(payload)):
            # The sender's number of a text can be forged, and a start may sign in.
            why, reason = "nothing proves the sender of a start", UnreadableReason.UNPROVEN_SENDER
            return _unreadable(number, text, update_id, reason, why, user)
        return [Started(update_id=update_id, chat_id=number, user=user, payload=payload)]

    async def take_anyway(self, item: Unreadable) -> Sequence[Update]:
        """As the present settings read it: a start needs a trusted sender, whoever looked at it."""
        found = json.loads(item.raw)
        return self.updates_of(found["from"], found["text"], item.update_id)

    def _text(self, message: OutgoingMessage) -> str:
        text = text_of(message)
        return plain(text) if self._common.plain_punctuation else text

    def _recipient(self, chat_id: str) -> str:
        try:
            number = phone.from_platform(chat_id)
        except InvalidValue:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: is no phone number") from None
        if not self._common.allows(number):
            raise LocalFailure(
                Reason.INVALID_MESSAGE, "the channel may not write to numbers of this country"
            )
        return number


def _unreadable(
    sender: str,
    text: str,
    update_id: str,
    reason: UnreadableReason,
    why: str,
    user: ChannelUser = NOBODY,
) -> list[Update]:
    """In place of the updates of a text that nothing is made of."""
    raw = json.dumps({"from": sender, "text": text}).encode()
    return [
        Unreadable(update_id=update_id, raw=raw, reason=reason, detail=why, user=user, origin=TEXT)
    ]


def text_of(message: OutgoingMessage) -> str:
    """The text as it is read: SMS have no markup, so links show their address after their label."""
    spans = with_addresses(to_spans(message.text, message.format))
    return "".join(span.text for span in spans)
