"""An account at a message centre: SMS by SMPP 3.4."""

import asyncio
import codecs
import json
import random
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

import structlog

from msgsvc_core.channels import (
    BotProfile,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    DeliveryReported,
    OutgoingMessage,
    Polled,
    Reason,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.failures import LocalFailure
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.kernel.storable_text import REPLACEMENT
from msgsvc_sms.channel import SmsChannel
from msgsvc_sms.failures import Refused
from msgsvc_sms.gsm import (
    Concatenation,
    ReferenceBits,
    decode_gsm,
    header,
    read_header,
    split,
    unpacked,
)
from msgsvc_sms.inbox import SEALED, UNIT, Encoded, Received, SmsInbox
from msgsvc_sms.link import Link
from msgsvc_sms.pdu import (
    DEFAULT_CODING,
    ESM_HEADER,
    UCS2_CODING,
    Address,
    Malformed,
    ShortMessage,
    Tlv,
    alphabet_of,
    read_short_message,
)
from msgsvc_sms.receipts import Receipt, id_of_answer, id_of_receipt, read_receipt
from msgsvc_sms.session import Account
from msgsvc_sms.settings import SmppSettings

#: Seconds of a long poll; the contract allows 30. Looks for what another process's session has got are this
#: far apart.
WAIT_S, LOOK_S = 25.0, 2.0

#: Tries of a part after the first, while the centre asks to wait, and the seconds between them: the person
#: may have the first part already, so that the message can't go back to its queue.
PART_TRIES, PART_WAIT_S = 5, 1.0

#: Codings of texts that are read.
log = structlog.get_logger(__name__)


class SmppChannel(SmsChannel):
    """The id of a message is the centre's id of its last part, whose receipt is asked for."""

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: SmppSettings
    ) -> None:
        super().__init__(context, identity, settings, receives=settings.receives)
        if settings.receives:
            self.receiving = "poll"
        self._settings = settings
        self._inbox = SmsInbox(
            clock=context.clock, db=context.db, secrets=context.secrets, channel=identity.key
        )
        self._link = Link(
            Account(
                host=settings.host,
                port=settings.port,
                system_id=settings.system_id,
                password=settings.password.get_secret_value(),
                system_type=settings.system_type,
                tls=settings.tls_context,
            ),
            window=settings.window,
            timeout_s=settings.timeout_s,
            enquire_s=settings.enquire_s,
            on_delivered=self._on_delivered,
            channel=identity.key,
        )
        self._references = count(random.randrange(2**16))  # noqa: S311 - no secret

    # ---- out ------------------------------------------------------------------------------------

    def text_limit(self, message: OutgoingMessage) -> int:
        if self._settings.default_alphabet == "latin1":
            # Such a centre has not all of the GSM alphabet.
            return self.capabilities.max_text_length
        return super().text_limit(message)

    async def deliver(self, number: str, text: str, key: str) -> str:
        messages = self._messages(number, text)
        message_id = ""
        for index, message in enumerate(messages):
            try:
                message_id = await self._submit(message, patient=index > 0)
            except DeliveryError as error:
                if index == 0:
                    raise
                raise DeliveryError(
                    Reason.PLATFORM_UNAVAILABLE,
                    f"the centre took {index} of {len(messages)} parts: {error.text}",
                    in_doubt=True,
                ) from None
        return id_of_answer(message_id, self._settings.receipt_ids)

    async def check(self) -> ChannelHealth:
        try:
            await self._link.check()
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        return ChannelHealth(
            ok=True,
            detail=self._settings.sender,
            profile=BotProfile(self._settings.sender),
            account=self._settings.system_id,
        )

    async def _submit(self, message: ShortMessage, *, patient: bool) -> str:
        for left in range(PART_TRIES if patient else 0, -1, -1):
            try:
                return await self._link.submit(message)
            except Refused as error:
                if error.status in self._settings.blocked:
                    raise DeliveryError(Reason.USER_BLOCKED_BOT, error.text) from None
                if error.reason is not Reason.RATE_LIMITED or not left:
                    raise
                await asyncio.sleep(PART_WAIT_S)
        raise AssertionError("the last try returns or raises")

    def _messages(self, number: str, text: str) -> list[ShortMessage]:
        """A message for each part of the text; of the last the receipt is asked for."""
        settings = self._settings
        bits: ReferenceBits = 16 if settings.reference_bits == "16" else 8
        latin1 = settings.default_alphabet == "latin1"
        found = split(text, bits, latin1=latin1)
        contents = found.parts
        if found.alphabet == "gsm" and latin1:
            contents = tuple(decode_gsm(each).encode("latin-1") for each in contents)
        total, reference = len(contents), next(self._references)
        made = []
        for position, content in enumerate(contents, 1):
            part = Concatenation(reference, total, position)
            made.append(
                ShortMessage(
                    _source(settings.sender),
                    Address(number.removeprefix("+")),
                    content if total == 1 else header(part, bits) + content,
                    coding=UCS2_CODING if found.alphabet == "ucs2" else DEFAULT_CODING,
                    esm_class=0 if total == 1 else ESM_HEADER,
                    service_type=settings.service_type,
                    registered_delivery=int(position == total and settings.receives),
                )
            )
        return made

    # ---- in -------------------------------------------------------------------------------------

    async def poll_updates(self, cursor: str | None) -> Polled:
        acknowledged = json.loads(cursor) if cursor else []
        # Binds if nothing is bound, and finds a connection that is dead.
        await self._link.enquire()
        try:
            items = await self._inbox.read(acknowledged)
            deadline = asyncio.get_running_loop().time() + WAIT_S
            while not items and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
                try:
                    async with asyncio.timeout(min(LOOK_S, left_s)):
                        await self._inbox.news.wait()
                except TimeoutError:
                    pass
                items = await self._inbox.read(())
        except DatabaseUnavailable as error:
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        updates = [update for item in items for update in self._updates(item)]
        return Polled(tuple(updates), json.dumps([item.item_id for item in items]))

    def _updates(self, item: Received) -> list[Update]:
        if item.unreadable is not None:
            return [item.unreadable]
        if item.receipt is not None:
            return self._reported(item.receipt)
        return self.updates_of(item.sender, item.text, item.item_id)

    async def take_anyway(self, item: Unreadable) -> Sequence[Update]:
        """As this version reads it, with the present keys. A part of a long text comes alone."""
        if item.origin == SEALED:
            return self._updates(self._inbox.opened(item.update_id, item.raw.decode()))
        if item.origin != UNIT:
            return await super().take_anyway(item)
        try:
            message = read_short_message(item.raw)
            if message.is_receipt:
                receipt = read_receipt(message)
                if receipt is None:
                    return [item]
                return [] if receipt.state == "waiting" else self._reported(receipt)
            _, content = self._part_of(message)
        except (Malformed, ValueError):
            return [item]
        text = self._decoded(message.coding, content)
        return self.updates_of(_number(message.source), text, item.update_id)

    def _reported(self, receipt: Receipt) -> list[Update]:
        ref = id_of_receipt(receipt.message_id, self._settings.receipt_ids)
        if receipt.state == "failed":
            log.warning("message_not_delivered", channel=self.key, error=receipt.detail)
        gone = receipt.error in self._settings.gone
        return [
            DeliveryReported(
                update_id=f"receipt:{ref}:{receipt.state}",
                message_ref=ref,
                state="failed" if receipt.state == "failed" else "delivered",
                reason=Reason.CHAT_NOT_FOUND if gone else Reason.UNKNOWN,
                detail=receipt.detail if receipt.state == "failed" else "",
            )
        ]

    async def _on_delivered(self, body: bytes) -> None:
        """Keeps what the centre delivers, which is acknowledged then. So is what can't be read, which the
        centre would deliver repeatedly."""
        try:
            message = read_short_message(body)
        except Malformed as error:
            await self._inbox.keep_unreadable(body, UnreadableReason.MALFORMED, str(error))
            return
        if message.is_receipt:
            receipt = read_receipt(message)
            if receipt is None:
                why = "it is a receipt that names no message, or no state"
                await self._inbox.keep_unreadable(body, UnreadableReason.MALFORMED, why)
            elif receipt.state != "waiting":
                await self._inbox.keep_receipt(message.source.text, receipt)
            return
        try:
            part, content = self._part_of(message)
        except ValueError as error:
            await self._inbox.keep_unreadable(body, UnreadableReason.MALFORMED, str(error))
            return
        sender, encoded = _number(message.source), Encoded(message.coding, content)
        await self._inbox.keep_text(sender, encoded, part, self._decoded)

    def _part_of(self, message: ShortMessage) -> tuple[Concatenation | None, bytes]:
        if message.esm_class & ESM_HEADER:
            return read_header(message.text_bytes)
        tags = (Tlv.SAR_REFERENCE, Tlv.SAR_TOTAL, Tlv.SAR_NUMBER)
        values = [int.from_bytes(message.tlvs.get(tag, b"")) for tag in tags]
        part = Concatenation(*values) if all(tag in message.tlvs for tag in tags) else None
        if part is not None and not 1 <= part.number <= part.total:
            part = None
        return part, message.text_bytes

    def _decoded(self, coding: int, content: bytes) -> str:
        alphabet = alphabet_of(coding)
        if alphabet == "default":
            gsm = self._settings.default_alphabet == "gsm"
            return _of_default(content) if gsm else content.decode("latin-1")
        if alphabet == "utf-16-be":
            # Some telephones begin with a byte order mark, and some mean the other order by it.
            little = content.startswith(codecs.BOM_UTF16_LE)
            text = content.decode("utf-16-le" if little else alphabet, "replace")
            return text.removeprefix("\ufeff")
        if alphabet == "octets" or (alphabet == "ascii" and not content.isascii()):
            return _of_octets(content)
        return content.decode(alphabet, "replace")

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._link.close()


def _of_default(content: bytes) -> str:
    """A text of the network's alphabet, a byte per character: none is above 127. With such bytes it is
    another alphabet that the centre has passed on, or characters that it has not unpacked."""
    if content.isascii():
        return decode_gsm(content)
    text = _readable(content) or decode_gsm(unpacked(content))
    return text if _is_text(text) else decode_gsm(content)


def _of_octets(content: bytes) -> str:
    """Somebody wrote it, so a person sees what came: the text, or the bytes of what is none."""
    return _readable(content) or f"{REPLACEMENT} {content.hex(' ')}"


def _readable(content: bytes) -> str:
    """The text of bytes that have only letters, signs and spaces in UTF-8 or ISO 8859-1; else empty."""
    for alphabet in ("utf-8", "latin-1"):
        with suppress(UnicodeDecodeError):
            text = content.decode(alphabet)
            if _is_text(text):
                return text
    return ""


def _is_text(text: str) -> bool:
    return REPLACEMENT not in text and all(char.isprintable() or char.isspace() for char in text)


def _source(sender: str) -> Address:
    if not re.fullmatch(r"\+?[0-9]+", sender):
        return Address(sender, ton=5, npi=0)  # alphanumeric
    digits = sender.removeprefix("+")
    # A short number is the network's own.
    return Address(digits) if len(digits) > 6 else Address(digits, ton=3, npi=0)


def _number(source: Address) -> str:
    """The sender's number; empty for one that is only known within a country or a network."""
    if source.ton in {2, 3, 4, 6}:
        return ""
    return f"+{source.text}" if source.ton == 1 and source.text.isdigit() else source.text
