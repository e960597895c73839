"""Keeps what channels could not read, and updates whose handler failed, encrypted and within bounds."""

import base64
from collections.abc import Sequence
from functools import partial

import structlog

from msgsvc_core.channels.shelf import failed_updates, store
from msgsvc_core.channels.shelf.models import ShelvedItem
from msgsvc_core.channels.updates import NOBODY, Unreadable, UnreadableReason, Update
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import DecryptionError, SecretBox
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

SEALED = SealedColumn(
    table="core_shelf",
    column="sealed",
    key=("item_id",),
    bound_to=("item_id",),
    holds="{count} item(s) that could not be read or processed",
    if_lost="nothing: they can't be looked at or taken anyway any more; delete them",
    is_lasting=False,
)

#: The recurring job that drops what was processed, and the seconds between its runs: far less than the hours
#: for which ids of updates are kept.
PROCESSED_JOB, PROCESSED_EVERY_S = "channel.shelf", 3600

#: Prefix of the ids.
ID_PREFIX = "shf"

#: Maximum characters of the stored detail, of an update's id and of an origin. Longer ids are hashed.
DETAIL_LENGTH, ID_LENGTH = 300, 200

#: Characters that an id needs so that items of unknown people are searched for it: a shorter one stands in
#: many by chance.
SEARCHED_LENGTH = 6

#: Items that are searched for a person before the job looks whether it is to stop.
SEARCHED_AT_ONCE = 20

log = structlog.get_logger(__name__)


class Shelf:
    """A shelf for each channel, by its key."""

    def __init__(
        self, *, clock: Clock, secrets: SecretBox, metrics: ChannelMetrics, limits: LimitSettings
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._metrics = metrics
        self._limits = limits
        metrics.expect_shelved(list(UnreadableReason))

    @property
    def spec(self) -> JobSpec:
        return JobSpec(PROCESSED_JOB, self.drop_processed, every_s=PROCESSED_EVERY_S)

    async def drop_processed(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Deletes updates whose handler failed and that were processed when the platform sent them once more.
        Taken after the ids of updates are forgotten, they would be processed twice."""
        async with ctx.transaction() as tx:
            await store.delete_processed(tx)

    async def put_failed(self, tx: Tx, channel: str, update: Update, error: Exception) -> None:
        """Keeps an update whose handler failed; one that is there already is left as it is."""
        await self.put(
            tx, channel, failed_updates.item_of(update, error), failed_updates.kind_of(update)
        )

    async def put(
        self, tx: Tx, channel: str, found: Unreadable, update_kind: str | None = None
    ) -> None:
        """Keeps an item; one that is there already is left as it is."""
        kept = found.raw[: self._limits.shelf_item_bytes]
        item = ShelvedItem(
            item_id=new_id(ID_PREFIX),
            channel=channel,
            update_id=storable_id(found.update_id),
            kind=found.kind,
            reason=found.reason,
            detail=storable(found.detail),
            origin=storable(found.origin),
            user_id=storable(found.user.user_id) or None,
            size=max(found.size, len(found.raw)),
            kept=len(kept),
            received_at_ms=self._clock.now_ms(),
            update_kind=update_kind,
        )
        content = base64.b64encode(kept).decode()
        sealed = self._secrets.encrypt(content, _row_of(item.item_id))
        if not await store.insert(tx, item, sealed):
            return
        tx.on_commit(partial(self._metrics.shelved, channel, item.reason))
        tx.on_commit(
            partial(
                log.warning,
                "update_shelved",
                channel=channel,
                item_id=item.item_id,
                kind=item.kind,
                reason=str(item.reason),
                error=item.detail,
            )
        )
        await self._make_room(tx, channel, is_failed=update_kind is not None)

    async def page(self, tx: Tx, channel: str, after: str | None, limit: int) -> list[ShelvedItem]:
        """Up to `limit` items, newest first, from before `after`."""
        return await store.list_page(tx, channel, after, limit)

    async def count(self, tx: Tx, channels: Sequence[str]) -> dict[str, int]:
        """How many items each of these channels has, by its key; those without any are left out."""
        return await store.count(tx, channels)

    async def get(self, tx: Tx, channel: str, item_id: str) -> ShelvedItem:
        """Raises `NotFound`, also for another channel's item."""
        item, _ = await self._find(tx, channel, item_id)
        return item

    async def read(self, tx: Tx, channel: str, item_id: str) -> tuple[ShelvedItem, bytes]:
        """An item and its bytes. Raises `NotFound`, and `Conflict` if no key reads them."""
        item, sealed = await self._find(tx, channel, item_id)
        try:
            return item, self._open(item_id, sealed)
        except DecryptionError:
            raise Conflict("no secret key of the service reads this item any more") from None

    async def delete(self, tx: Tx, channel: str, item_id: str) -> None:
        """Raises `NotFound`."""
        if not await store.delete(tx, channel, [item_id]):
            raise _no_item(item_id)

    async def keep_for(self, tx: Tx, item: ShelvedItem, found: Unreadable) -> None:
        """Records why an item could not be taken anyway."""
        detail = storable(found.detail)
        await store.set_reason(tx, item.item_id, str(found.reason), detail, self._clock.now_ms())

    async def erase(self, ctx: JobContext, channel: str, user_id: str) -> None:
        """Deletes the items of a channel that name an erased person: what could not be read may not have
        told whose it is."""
        async with ctx.transaction() as tx:
            await store.delete_of_person(tx, [channel], user_id)
        sought = user_id.lstrip("+").lower().encode()
        if len(sought) < SEARCHED_LENGTH:
            return
        after: str | None = None
        while True:
            if ctx.stopping:
                raise Stopping
            async with ctx.reading() as tx:
                page = await store.list_page(tx, channel, after, SEARCHED_AT_ONCE)
                named = [item for item in page if await self._names(tx, item, sought)]
            if named:
                async with ctx.transaction() as tx:
                    await store.delete(tx, channel, [item.item_id for item in named])
            if len(page) < SEARCHED_AT_ONCE:
                return
            after = page[-1].item_id

    async def _names(self, tx: Tx, item: ShelvedItem, sought: bytes) -> bool:
        found = await store.find(tx, item.item_id)
        try:
            return found is not None and sought in self._open(item.item_id, found[1]).lower()
        except DecryptionError:
            return False

    async def _find(self, tx: Tx, channel: str, item_id: str) -> tuple[ShelvedItem, str]:
        found = await store.find(tx, item_id)
        if found is None or found[0].channel != channel:
            raise _no_item(item_id)
        return found

    def _open(self, item_id: str, sealed: str) -> bytes:
        return base64.b64decode(self._secrets.decrypt(sealed, _row_of(item_id)))

    async def _make_room(self, tx: Tx, channel: str, *, is_failed: bool) -> None:
        """Deletes the oldest items beyond what a shelf holds; the newest always stays. Updates whose handler
        failed are counted by themselves, so a bug pushes out nothing that could not be read."""
        total, gone = 0, []
        sizes = await store.sizes(tx, channel, is_failed=is_failed)
        for number, (item_id, size) in enumerate(sizes):
            total += size
            if number >= self._limits.shelf_items or (number and total > self._limits.shelf_bytes):
                gone.append(item_id)
        if gone:
            dropped = await store.delete(tx, channel, gone)
            tx.on_commit(partial(self._metrics.dropped_from_shelf, channel, dropped))
            tx.on_commit(partial(log.warning, "shelf_full", channel=channel, count=dropped))


async def delete_of_channel(tx: Tx, channel: str) -> None:
    """Deletes a channel's shelf."""
    await store.delete_of_channel(tx, channel)


def storable(text: str) -> str:
    """A text of any origin in the form that both databases store, in one line."""
    return "".join(c if c.isprintable() else " " for c in text[:DETAIL_LENGTH]).strip()


def storable_id(update_id: str) -> str:
    """An update's id in the form that both databases store."""
    if update_id.isprintable() and len(update_id) <= ID_LENGTH:
        return update_id
    return Unreadable.id_of(update_id.encode("utf-8", "replace"))


def stored_as(item: ShelvedItem, raw: bytes) -> Unreadable:
    """The item as the channel handed it over."""
    return Unreadable(
        update_id=item.update_id,
        user=NOBODY,
        raw=raw,
        reason=item.reason,
        detail=item.detail,
        kind=item.kind,
        origin=item.origin,
        size=item.size,
    )


def _row_of(item_id: str) -> tuple[str, str]:
    return SEALED.name, item_id


def _no_item(item_id: str) -> NotFound:
    return NotFound("there is no item {item_id!r} on this shelf", item_id=item_id)
