"""The rules of bulk actions on subscribers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.bulk_actions import BulkAction, BulkActionEngine, BulkActionFailed
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import JobQueue, JobSpec
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import SubscriberNotFound, ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.bulk_actions import store
from msgsvc_core.subscribers.bulk_actions.models import ERRORS, StartBulkActionBody
from msgsvc_core.subscribers.filters import by_id
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.tags.service import Tags

#: Subscribers who are changed per transaction: some 10 ms, for which SQLite's other writers wait. Erasing one
#: takes ten times as long as a tag.
CHANGED, ERASED = 100, 10


class SubscriberChanges:
    """What bulk actions do with subscribers; a `BulkWork`. The value of an action is the id of its tag."""

    kind = "subscribers"
    job = "subscriber.bulk_action"
    errors: Mapping[str, str] = ERRORS

    def __init__(self, *, subscribers: Subscribers, tags: Tags) -> None:
        self._subscribers = subscribers
        self._tags = tags

    def batch(self, bulk: BulkAction) -> int:
        return ERASED if bulk.action == "erase" else CHANGED

    def needs_confirmation(self, bulk: BulkAction) -> bool:
        """Tags can be taken off again."""
        return bulk.action == "erase"

    async def select(
        self, tx: Tx, bulk: BulkAction, limit: int
    ) -> tuple[Sequence[str], str | None]:
        filters = SubscriberFilters.model_construct(**from_json(bulk.filters or "{}"))
        return await store.select(tx, bulk.project_id, filters, bulk.collected_to, limit)

    async def change(self, tx: Tx, bulk: BulkAction, ids: Sequence[str]) -> int:
        tag: str | None = None
        if bulk.value is not None:
            # Locked before the subscribers, in the order of others.
            names = await self._tags.names_of(tx, bulk.project_id, [bulk.value])
            if not names:
                raise BulkActionFailed("tag_deleted")
            [tag] = names
        there = await store.existing(tx, bulk.project_id, ids)
        done = 0
        for subscriber_id in sorted(there):
            try:
                await self._change_one(tx, bulk, subscriber_id, tag)
                done += 1
            except SubscriberNotFound:
                # Erased concurrently.
                pass
        return done

    async def _change_one(
        self, tx: Tx, bulk: BulkAction, subscriber_id: str, tag: str | None
    ) -> None:
        if tag is None:
            await self._subscribers.erase(tx, bulk.project_id, subscriber_id)
        elif bulk.action == "add_tag":
            await self._tags.assign(tx, bulk.project_id, subscriber_id, [tag])
        else:
            await self._tags.remove(tx, bulk.project_id, subscriber_id, tag)


class BulkActions:
    """Bulk actions on subscribers. One is about `most` subscribers at most.

    Whom it is about is written down first, so an erasure deletes exactly those whose number was confirmed.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        subscribers: Subscribers,
        tags: Tags,
        most: int,
    ) -> None:
        work = SubscriberChanges(subscribers=subscribers, tags=tags)
        self._engine = BulkActionEngine(work, clock=clock, jobs=jobs, events=events, most=most)
        self._subscribers = subscribers
        self._tags = tags

    @property
    def spec(self) -> JobSpec:
        return self._engine.spec

    async def start(self, tx: Tx, project_id: str, body: StartBulkActionBody) -> BulkAction:
        """Raises `ValidationFailed` for what does not belong together, `NotFound` for a tag to be removed
        that there is not, and `Conflict` beyond the limit of tags."""
        _check(body)
        tag_id: str | None = None
        if body.value is not None:
            if body.action == "add_tag":
                await self._tags.ensure(tx, project_id, [body.value])
            else:
                await self._tags.get(tx, project_id, body.value)
            [tag_id] = await self._tags.ids_of(tx, project_id, [body.value])
        filters: SubscriberFilters | None = None
        if body.subscriber_ids is None:
            filters = body.filters or SubscriberFilters()
            if filters.channel is not None:
                await self._subscribers.check_channel(tx, project_id, filters.channel)
            # Renaming the tag meanwhile changes nothing.
            filters = await by_id(tx, project_id, filters)
        bulk = await self._engine.start(
            tx,
            project_id,
            body.action,
            tag_id,
            filters=None if filters is None else filters.model_dump_json(exclude_none=True),
            ids=body.subscriber_ids or (),
        )
        return await self._named(tx, bulk)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[BulkAction]:
        """Newest first; one more than `query.limit` if there are more."""
        found = await self._engine.page(tx, project_id, query)
        names = await self._tags.labels(
            tx, project_id, [bulk.value for bulk in found if bulk.value]
        )
        return [replace(bulk, label=names.get(bulk.value or "")) for bulk in found]

    async def get(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Raises `NotFound`, for another project's as well."""
        return await self._named(tx, await self._engine.get(tx, project_id, bulk_action_id))

    async def confirm(self, tx: Tx, project_id: str, bulk_action_id: str, total: int) -> BulkAction:
        """Lets an erasure begin. Raises `ValidationFailed` for another number than its total, and `Conflict`
        if it does not wait, or has waited for a day."""
        bulk = await self._engine.confirm(tx, project_id, bulk_action_id, total)
        return await self._named(tx, bulk)

    async def cancel(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Ends one after the step that it is at; what is done stays. Raises `Conflict` if it has ended."""
        return await self._named(tx, await self._engine.cancel(tx, project_id, bulk_action_id))

    async def _named(self, tx: Tx, bulk: BulkAction) -> BulkAction:
        """With the name of its tag."""
        if bulk.value is None:
            return bulk
        names = await self._tags.labels(tx, bulk.project_id, [bulk.value])
        return replace(bulk, label=names.get(bulk.value))


def _check(body: StartBulkActionBody) -> None:
    if body.action == "erase" and body.value is not None:
        raise ValidationFailed("is only for `add_tag` and `remove_tag`", field="value")
    if body.action != "erase" and body.value is None:
        raise ValidationFailed("give the tag", field="value")
    has_filters = body.filters is not None and body.filters != SubscriberFilters()
    if [body.all, has_filters, body.subscriber_ids is not None].count(True) != 1:
        raise ValidationFailed(
            "give one of them: true, at least one filter, or ids",
            field="all, filters, subscriber_ids",
        )
