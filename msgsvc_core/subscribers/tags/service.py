"""Tags: a limited set of names per project, assigned to subscribers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from pydantic import TypeAdapter, ValidationError

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobQueue, JobSpec, NewJob, in_steps
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.subscribers.models import TagName
from msgsvc_core.subscribers.tags import store
from msgsvc_core.subscribers.tags.models import Tag

#: Called with a project, a subscriber and their new tags, in the transaction that assigns them; an exception
#: rolls it back.
OnTagsGiven = Callable[[Tx, str, str, Sequence[str]], Awaitable[None]]

#: The job that removes a deleted tag from its subscribers.
PURGE = "core.purge_tag"

_NAME: TypeAdapter[str] = TypeAdapter(TagName)


class Tags:
    """Tags of subscribers. A project has at most `max_tags`. The caller checks that subscribers exist."""

    def __init__(
        self, *, clock: Clock, jobs: JobQueue, max_tags: int, on_added: OnTagsGiven
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._max_tags = max_tags
        self._on_added = on_added

    @property
    def spec(self) -> JobSpec:
        return JobSpec(PURGE, self._purge)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Tag]:
        """Newest first; one more than `query.limit` if there are more."""
        after = query.begin_position()
        return await store.list_page(tx, project_id, after, query.fetch_limit)

    async def list_all(self, tx: Tx, project_id: str, limit: int) -> list[Tag]:
        """All tags of the project by name, each with its subscribers counted up to `limit`."""
        return await store.list_all(tx, project_id, limit)

    async def get(self, tx: Tx, project_id: str, name: str) -> Tag:
        """Raises `NotFound`."""
        tag = await store.find(tx, project_id, name)
        if tag is None:
            raise _missing(name)
        return tag

    async def create(self, tx: Tx, project_id: str, name: str) -> Tag:
        """Raises `Conflict` for a name in use, and beyond the limit."""
        if not await self._insert_missing(tx, project_id, [name]):
            raise _taken(name)
        return await self.get(tx, project_id, name)

    async def ensure(self, tx: Tx, project_id: str, names: Sequence[str]) -> None:
        """Creates missing tags, and locks all of them until the transaction ends.

        Raises `Conflict` beyond the limit. Call this before changing a subscriber: the lock order is the
        project's tags, then a subscriber.
        """
        if names:
            await self._insert_missing(tx, project_id, names)

    async def rename(self, tx: Tx, project_id: str, name: str, new_name: str) -> Tag:
        """Renames a tag, also for its subscribers and unopened links, which refer to its id.

        Raises `NotFound`, and `Conflict` for a name in use.
        """
        await self._lock(tx, project_id)
        if new_name != name and not await store.rename(tx, project_id, name, new_name):
            if await store.exists(tx, project_id, name):
                raise _taken(new_name)
            raise _missing(name)
        return await self.get(tx, project_id, new_name)

    async def ids_of(self, tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
        """Permanent ids of the tags that `ensure` created, for storage."""
        return await store.ids_of(tx, project_id, names) if names else []

    async def lock_missing(self, tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
        """Those of `names` that are not tags of the project; the tags are locked until `tx` ends."""
        return await store.lock_missing(tx, project_id, names)

    async def names_of(self, tx: Tx, project_id: str, tag_ids: Sequence[str]) -> list[str]:
        """The current names of tags; deleted ones are omitted."""
        return await store.names_of(tx, project_id, tag_ids) if tag_ids else []

    async def labels(self, tx: Tx, project_id: str, tag_ids: Sequence[str]) -> dict[str, str]:
        """The current names of tags by their ids, without a lock; deleted ones are omitted."""
        return await store.labels(tx, project_id, tag_ids) if tag_ids else {}

    async def delete(self, tx: Tx, project_id: str, name: str) -> None:
        """Deletes a tag. It is removed from its subscribers immediately for all queries, and in the tables
        by a job. Raises `NotFound`."""
        await self._lock(tx, project_id)
        tag_id = await store.delete(tx, project_id, name)
        if tag_id is None:
            raise _missing(name)
        payload = {"project_id": project_id, "tag_id": tag_id}
        await self._jobs.enqueue(tx, NewJob(PURGE, payload, project_id=project_id))

    async def _purge(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Deletes the rows of deleted tags in steps, so that other writers don't wait."""
        for job in jobs:
            await in_steps(ctx, partial(_purge_some, job.payload))

    async def add(self, tx: Tx, project_id: str, subscriber_id: str, name: str) -> None:
        """Adds a tag, which is created if needed. Raises `Conflict` beyond the limit, and
        `ValidationFailed` for an invalid name. See `Subscribers.add_tag`."""
        _check_name(name)
        await self.ensure(tx, project_id, [name])
        await self.assign(tx, project_id, subscriber_id, [name])

    async def remove(self, tx: Tx, project_id: str, subscriber_id: str, name: str) -> None:
        """Removes a tag, if the subscriber has it. Raises `NotFound` for an unknown one. See
        `Subscribers.remove_tag`."""
        taken = await store.remove(tx, project_id, subscriber_id, name)
        if not taken and not await store.exists(tx, project_id, name):
            raise _missing(name)

    async def assign(
        self, tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]
    ) -> None:
        """Assigns those of the tags that exist: tags deleted since a link was created are ignored."""
        given = await store.assign(tx, project_id, subscriber_id, names) if names else []
        if given:
            await self._on_added(tx, project_id, subscriber_id, given)

    async def replace(
        self, tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]
    ) -> None:
        """Assigns these, created by `ensure`, and removes all others."""
        await store.remove_except(tx, project_id, subscriber_id, names)
        await self.assign(tx, project_id, subscriber_id, names)

    async def _insert_missing(self, tx: Tx, project_id: str, names: Sequence[str]) -> int:
        await self._lock(tx, project_id)
        wanted = list(dict.fromkeys(names))
        if await store.count(tx, project_id, wanted) > self._max_tags:
            raise Conflict("a project has at most {limit}", field="tags", limit=self._max_tags)
        return await store.insert_missing(tx, project_id, wanted, self._clock.now_ms())

    async def _lock(self, tx: Tx, project_id: str) -> None:
        await tx.lock(f"tags of {project_id}")


async def _purge_some(payload: Mapping[str, str], tx: Tx, limit: int) -> int:
    return await store.purge(tx, payload["project_id"], payload["tag_id"], limit)


def _check_name(name: str) -> None:
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise ValidationFailed(
            "must be 1-64 letters of any script, digits, `_` and `-`", field="tag"
        ) from None


def _missing(name: str) -> NotFound:
    return NotFound("there is no tag {name!r}", name=name)


def _taken(name: str) -> Conflict:
    return Conflict("you have a tag {name!r} already", field="name", name=name)
