"""What both ways of sending SMS share: texts, limits, words that stop messages, people by their number."""

import re
from abc import abstractmethod
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
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.failures import LocalFailure
from msgsvc_core.content.markup import Span, to_spans, with_addresses
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.subscribers.contacts.models import normalized_contact
from msgsvc_sms.gsm import split
from msgsvc_sms.limits import Limits
from msgsvc_sms.operators import Operators
from msgsvc_sms.settings import SmsSettings, folded

#: UTF-16 code units of each part of a long text, with the larger reference.
UNITS_PER_PART = 66

#: Characters of a text that every channel takes (decision 0075).
MOST_TEXT = 4000

_START = re.compile(r"/?start(?:\s+(\S+))?\s*", re.IGNORECASE)

log = structlog.get_logger(__name__)


def storable(text: str) -> str:
    """Without what no database keeps: null characters, and halves of a character from a text that was cut."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


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
        text = text_of(message)
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
        most = self.capabilities.max_text_length
        # With the addresses of its links, which are shown behind their labels.
        if len(text_of(message).encode("utf-16-le", "surrogatepass")) // 2 > most:
            return f"text: must be at most {most} UTF-16 code units on this channel"
        return None

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return [Span(text_of(message))]

    def parse_address(self, text: str) -> str:
        number = normalized_contact("phone", text)
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
            number = normalized_contact("phone", sender)
        except InvalidValue:
            return self._skipped("it is not from a phone number")
        phone = number if self._common.trusts_senders else None
        user = ChannelUser(number, "", number, phone=phone)
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
            return self._skipped("it is empty")
        start = _START.fullmatch(text.strip())
        if start is None:
            return [MessageReceived(update_id=update_id, chat_id=number, user=user, text=text)]
        return self._started(user, start[1] or "", update_id)

    def _started(self, user: ChannelUser, payload: str, update_id: str) -> list[Update]:
        trusted = self._common.trusts_senders
        if payload and not (trusted and START_PAYLOAD.fullmatch(payload)):
            # The sender's number of a text can be forged, and a start may sign in.
            return self._skipped("nothing proves the sender of a start")
        return [Started(update_id=update_id, chat_id=user.user_id, user=user, payload=payload)]

    def _skipped(self, why: str) -> list[Update]:
        log.warning("update_skipped", channel=self.key, error=why)
        return []

    def _recipient(self, chat_id: str) -> str:
        try:
            number = normalized_contact("phone", chat_id)
        except InvalidValue:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: is no phone number") from None
        if not self._common.allows(number):
            raise LocalFailure(
                Reason.INVALID_MESSAGE, "the channel may not write to numbers of this country"
            )
        return number


def text_of(message: OutgoingMessage) -> str:
    """The text as it is read: SMS have no markup, so links show their address after their label."""
    spans = with_addresses(to_spans(message.text, message.format))
    return "".join(span.text for span in spans)
