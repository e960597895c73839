"""What the centre has delivered, kept until it is read: a session may belong to another process than the one
that reads, and the parts of a text come one by one."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from msgsvc_core.channels import Unreadable, UnreadableReason
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import DecryptionError, SecretBox
from msgsvc_sms import store
from msgsvc_sms.gsm import Concatenation
from msgsvc_sms.receipts import Receipt

#: Items that are read at once.
AT_ONCE = 50

#: What the raw bytes of an item are that can't be read: the body of a unit, or an item of the inbox.
UNIT, SEALED = "unit", "sealed"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text, or a part of one, as it came: `coding` is the protocol's number of its alphabet."""

    coding: int
    data: bytes = field(repr=False)


#: The text of bytes in a coding.
Decode = Callable[[int, bytes], str]


@dataclass(frozen=True, slots=True)
class Received:
    """A text, a receipt, or what is neither. `item_id` is ours: centres have none."""

    item_id: str
    sender: str
    text: str = ""
    receipt: Receipt | None = None
    unreadable: Unreadable | None = None


class SmsInbox:
    """The inbox of one channel."""

    def __init__(self, *, clock: Clock, db: Database, secrets: SecretBox, channel: str) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._channel = channel
        #: Set when something came into this process.
        self.news = asyncio.Event()

    async def keep_text(
        self, sender: str, content: Encoded, part: Concatenation | None, decode: Decode
    ) -> None:
        """Keeps a text, or one part of it: when the last has come, the whole."""
        async with self._db.transaction() as tx:
            whole: Sequence[Encoded] | None = [content]
            if part is not None and part.total > 1:
                whole = await self._joined(tx, sender, content, part)
            if whole is not None:
                await self._keep(tx, {"sender": sender, "text": _decoded(whole, decode)})
        self.news.set()

    async def keep_receipt(self, sender: str, receipt: Receipt) -> None:
        async with self._db.transaction() as tx:
            said = [receipt.message_id, receipt.state, receipt.detail, receipt.error]
            await self._keep(tx, {"sender": sender, "receipt": said})
        self.news.set()

    async def keep_unreadable(self, raw: bytes, reason: UnreadableReason, why: str) -> None:
        """Keeps a unit that can't be read, as it came."""
        async with self._db.transaction() as tx:
            await self._keep(tx, {"sender": "", "unreadable": [raw.hex(), str(reason), why]})
        self.news.set()

    async def read(self, acknowledged: Sequence[str]) -> list[Received]:
        """The oldest that is there, after those acknowledged are deleted."""
        self.news.clear()
        if acknowledged:
            async with self._db.transaction() as tx:
                await store.delete_items(tx, self._channel, acknowledged)
        async with self._db.read() as tx:
            items = await store.list_items(tx, self._channel, AT_ONCE)
        return [self.opened(item_id, sealed) for item_id, sealed in items]

    async def _keep(self, tx: Tx, content: object) -> None:
        sealed = self._secrets.encrypt(to_json(content))
        await store.insert_item(tx, self._channel, new_id("sms"), sealed, self._clock.now_ms())

    async def _joined(
        self, tx: Tx, sender: str, content: Encoded, part: Concatenation
    ) -> Sequence[Encoded] | None:
        """All parts in their order; None while some are missing."""
        sender_hash = self._secrets.keyed_hash("sms number", f"{self._channel} {sender}")
        key = (self._channel, sender_hash, part.reference, part.total)
        kept = await store.lock_parts(tx, *key, self._clock.now_ms())
        try:
            parts: dict[str, list[Any]] = json.loads(self._secrets.decrypt(kept)) if kept else {}
        except DecryptionError:
            lost = [str(kept).encode().hex(), str(UnreadableReason.UNDECRYPTABLE)]
            why = "no key reads the parts of a text that had come"
            await self._keep(tx, {"sender": "", "unreadable": [*lost, why]})
            parts = {}
        parts[str(part.number)] = [content.coding, content.data.hex()]
        if len(parts) < part.total:
            await store.update_parts(tx, *key, self._secrets.encrypt(to_json(parts)))
            return None
        await store.update_parts(tx, *key, None)
        ordered = (parts[str(number)] for number in range(1, part.total + 1))
        return [Encoded(coding, bytes.fromhex(data)) for coding, data in ordered]

    def opened(self, item_id: str, sealed: str) -> Received:
        """An item, as it is stored."""
        try:
            content = json.loads(self._secrets.decrypt(sealed))
        except DecryptionError:
            why, reason = "no key reads it", UnreadableReason.UNDECRYPTABLE
            lost = Unreadable.of(sealed.encode(), reason, why, origin=SEALED)
            return Received(item_id, "", unreadable=lost)
        if "unreadable" in content:
            raw, reason, why = content["unreadable"]
            found = Unreadable.of(bytes.fromhex(raw), UnreadableReason(reason), why, origin=UNIT)
            return Received(item_id, "", unreadable=found)
        receipt = content.get("receipt")
        return Received(
            item_id,
            content["sender"],
            content.get("text", ""),
            None if receipt is None else Receipt(*receipt),
        )


def _decoded(parts: Sequence[Encoded], decode: Decode) -> str:
    """The text of parts. Those of one coding are decoded together: some telephones divide a character."""
    runs = groupby(parts, lambda each: each.coding)
    return "".join(decode(coding, b"".join(each.data for each in run)) for coding, run in runs)
