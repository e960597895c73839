"""Has items of a shelf read and processed once more."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.shelf.failed_updates import update_of
from msgsvc_core.channels.shelf.models import ShelvedItem
from msgsvc_core.channels.shelf.service import Shelf, stored_as
from msgsvc_core.channels.updates import Unreadable, UnreadableReason, Update
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.kernel.errors import Conflict, PlatformBusy

#: Processes an update of the channel with that key once, and raises what a handler raises.
Process = Callable[[str, Update, int | None], Awaitable[None]]

#: Seconds for `retry_after` when the channel's platform did not respond.
BUSY_S = 5

log = structlog.get_logger(__name__)


class ItemTaker:
    """What an operator decided to take anyway goes the way of every update."""

    def __init__(self, *, db: Database, channels: Channels, shelf: Shelf, process: Process) -> None:
        self._db = db
        self._channels = channels
        self._shelf = shelf
        self._process = process

    async def take(self, channel: str, item_id: str) -> ShelvedItem | None:
        """Has an item read again and processed; None if it is off the shelf now, otherwise the item with its
        new reason.

        In several transactions: after a crash it can be called again, since no update is processed twice.
        Raises `NotFound`, `PlatformBusy` if the channel needs its platform, which does not respond, and
        `Conflict` for an item that is not whole, and for a channel that takes nothing anyway.
        """
        async with self._db.read() as tx:
            item, raw = await self._shelf.read(tx, channel, item_id)
        if not item.is_whole:
            raise Conflict(
                "only the first {kept} of its {size} bytes are kept, so it can't be taken",
                kept=item.kept,
                size=item.size,
            )
        async with self._channels.borrow(channel) as bot:
            if bot is None or not item.can_be_taken(bot):
                raise Conflict("this channel takes nothing anyway")
            updates = await self._read(bot, item, raw)
        still = await self._processed(channel, item, updates)
        async with self._db.transaction() as tx:
            if still is None:
                await self._shelf.delete(tx, channel, item_id)
                return None
            await self._shelf.keep_for(tx, item, still)
            return await self._shelf.get(tx, channel, item_id)

    async def _read(self, bot: Channel, item: ShelvedItem, raw: bytes) -> Sequence[Update]:
        if item.update_kind is not None:
            return [_read_again(item, item.update_kind, raw)]
        found = stored_as(item, raw)
        try:
            return await bot.take_anyway(found)
        except DeliveryError as error:
            raise PlatformBusy(
                "the messenger's platform gave no answer: {detail}",
                detail=error.text,
                retry_after_s=BUSY_S,
            ) from None
        except Exception as error:
            # The edge of a plugin: the item stays.
            log.exception("channel_broke_contract", channel=bot.key)
            return [_fault(found, type(error).__name__)]

    async def _processed(
        self, channel: str, item: ShelvedItem, updates: Sequence[Update]
    ) -> Unreadable | None:
        """Processes the updates; what keeps the item on the shelf, or None."""
        still: Unreadable | None = None
        if not updates:
            still = Unreadable(
                update_id=item.update_id,
                raw=b"",
                reason=UnreadableReason.NOTHING_IN_IT,
                detail="the channel reads it, and makes nothing of it",
            )
        for update in updates:
            if isinstance(update, Unreadable):
                still = update
                continue
            try:
                await self._process(channel, update, item.received_at_ms)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                # The edge of handlers, as for every update; this one can be tried again.
                log.exception("update_failed", channel=channel, update_id=update.update_id)
                still = _fault(update, type(error).__name__)
        return still


def _read_again(item: ShelvedItem, kind: str, raw: bytes) -> Update:
    """An update whose handler failed, which the channel has read already."""
    try:
        return update_of(kind, raw)
    except (ValueError, TypeError, KeyError) as error:
        log.warning("update_of_other_release", channel=item.channel, item_id=item.item_id)
        why = f"another release kept it, in a form that this one does not know ({error!r})"
        return replace(stored_as(item, b""), reason=UnreadableReason.MALFORMED, detail=why)


def _fault(update: Update, name: str) -> Unreadable:
    return Unreadable(
        update_id=update.update_id,
        raw=b"",
        reason=UnreadableReason.FAULT,
        detail=f"the service failed on it ({name})",
    )
