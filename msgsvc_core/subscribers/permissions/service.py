"""Permissions: defined by a project, granted and revoked by subscribers; each change emits an event."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.events.contract import NewEvent
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, PermissionHasSubscribers, ValidationFailed
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.permissions import store
from msgsvc_core.subscribers.permissions.models import (
    CreatePermissionBody,
    Permission,
    UpdatePermissionBody,
)


class Permissions:
    """The permissions of projects and subscribers. A project has at most `max_permissions`."""

    def __init__(self, *, clock: Clock, events: Events, max_permissions: int) -> None:
        self._clock = clock
        self._events = events
        self._max_permissions = max_permissions

    async def list_all(self, tx: Tx, project_id: str) -> list[Permission]:
        """All permissions of the project, oldest first: the order in which subscribers see them."""
        return await store.list_all(tx, project_id)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Permission]:
        """Newest first; one more than `query.limit` if there are more."""
        after = query.begin_position()
        return await store.list_page(tx, project_id, after, query.fetch_limit)

    async def get(self, tx: Tx, project_id: str, key: str) -> Permission:
        """Raises `NotFound`."""
        permission = await store.find(tx, project_id, key)
        if permission is None:
            raise _missing(key)
        return permission

    async def exists(self, tx: Tx, project_id: str, key: str) -> bool:
        """Whether the project has such a permission."""
        return bool(await self.find_existing(tx, [(project_id, key)]))

    async def find_existing(
        self, tx: Tx, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], bool]:
        """True for those of (project_id, key) that exist, of several projects at once."""
        return await store.find_existing(tx, keys)

    async def find_granted(
        self, tx: Tx, keys: Sequence[tuple[str, str, str]]
    ) -> dict[tuple[str, str, str], bool]:
        """True for those of (project_id, subscriber_id, key) that were granted, of several projects."""
        return await store.find_granted(tx, keys)

    async def count_active(
        self, tx: Tx, project_id: str, permissions: Sequence[Permission]
    ) -> dict[str, int]:
        """The number of active subscribers that granted each, by key."""
        keys = [permission.key for permission in permissions]
        return await store.count_active(tx, project_id, keys)

    async def count_active_roughly(
        self, tx: Tx, project_id: str, permissions: Sequence[Permission], limit: int
    ) -> dict[str, int]:
        """Like `count_active`, counted up to `limit`."""
        keys = [permission.key for permission in permissions]
        return await store.count_active_up_to(tx, project_id, keys, limit) if keys else {}

    async def create(self, tx: Tx, project_id: str, body: CreatePermissionBody) -> Permission:
        """Raises `Conflict` for a key in use, and at the limit."""
        await tx.lock(f"permissions of {project_id}")
        permission = Permission(
            project_id=project_id,
            key=body.key,
            title=body.title,
            description=body.description,
            default=body.default,
            created_at_ms=self._clock.now_ms(),
        )
        if not await store.insert(tx, permission):
            raise Conflict("you have a permission {key!r} already", field="key", key=body.key)
        if await store.count(tx, project_id) > self._max_permissions:
            raise Conflict(
                "a project has at most {limit}", field="permissions", limit=self._max_permissions
            )
        return permission

    async def update(
        self, tx: Tx, project_id: str, key: str, body: UpdatePermissionBody
    ) -> Permission:
        """Grants stay, even if `default` changes. Raises `NotFound`."""
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        if not await store.update(tx, project_id, key, changes):
            raise _missing(key)
        return await self.get(tx, project_id, key)

    async def delete(self, tx: Tx, project_id: str, key: str) -> None:
        """Deletes a permission that no active subscriber granted; emits no event.

        Raises `NotFound`, and `PermissionHasSubscribers` if active subscribers granted it.
        """
        if not await store.lock(tx, project_id, key):
            raise _missing(key)
        if await store.has_active(tx, project_id, key):
            raise PermissionHasSubscribers(
                "active subscribers granted {key!r}; only the dashboard may delete it", key=key
            )
        await store.delete(tx, project_id, key)

    async def delete_confirmed(self, tx: Tx, project_id: str, key: str, confirmed: int) -> int:
        """Deletes a permission with all its grants, after the user confirmed that `confirmed` active
        subscribers granted it; returns their number. For people who see the number, not for programs.

        Raises `NotFound`, and `PermissionHasSubscribers` if there are more by now: ask for confirmation
        again.
        """
        if not await store.lock(tx, project_id, key):
            raise _missing(key)
        active = (await store.count_active(tx, project_id, [key])).get(key, 0)
        if active > confirmed:
            raise PermissionHasSubscribers(
                "{count} active subscribers granted {key!r}; confirm that number to delete it",
                count=active,
                key=key,
            )
        await store.delete(tx, project_id, key)
        return active

    async def check(self, tx: Tx, project_id: str, keys: Sequence[str]) -> None:
        """Raises `ValidationFailed`, with the field `permissions`, for an unknown one."""
        known = await store.existing_keys(tx, project_id, keys) if keys else ()
        for number, key in enumerate(keys):
            if key not in known:
                raise ValidationFailed(
                    "there is no permission {key!r}", field=f"permissions[{number}]", key=key
                )

    async def grant(
        self, tx: Tx, subscriber: Subscriber, keys: Sequence[str], *, defaults: bool = False
    ) -> list[str]:
        """Grants the existing ones of `keys`, and with `defaults` the default permissions.

        Returns those that were not granted before, and emits events for them.
        """
        now_ms = self._clock.now_ms()
        granted: list[str] = []
        if defaults:
            granted += await store.grant_defaults(
                tx, subscriber.project_id, subscriber.subscriber_id, now_ms
            )
        if keys:
            granted += await store.grant(
                tx, subscriber.project_id, subscriber.subscriber_id, keys, now_ms
            )
        await self._emit_changed(tx, subscriber, granted, granted=True)
        return granted

    async def set(self, tx: Tx, subscriber: Subscriber, key: str, granted: bool) -> bool:
        """Grants or revokes a permission; True if that changed anything.

        Then, and only then, `subscription.permission_changed` is emitted. Raises `NotFound` for an
        unknown permission. See `Subscribers.set_permission`.
        """
        project_id, subscriber_id = subscriber.project_id, subscriber.subscriber_id
        if granted:
            now_ms = self._clock.now_ms()
            changed = await store.grant(tx, project_id, subscriber_id, [key], now_ms)
        elif await store.revoke(tx, project_id, subscriber_id, key):
            changed = [key]
        else:
            changed = []
        if not changed and await store.find(tx, project_id, key) is None:
            raise _missing(key)
        await self._emit_changed(tx, subscriber, changed, granted=granted)
        return bool(changed)

    async def _emit_changed(
        self, tx: Tx, subscriber: Subscriber, keys: Sequence[str], *, granted: bool
    ) -> None:
        await self._events.emit_many(
            tx,
            [
                NewEvent(
                    subscriber.project_id,
                    "subscription.permission_changed",
                    {"permission": key, "granted": granted},
                    subscriber,
                )
                for key in keys
            ],
        )


def _missing(key: str) -> NotFound:
    return NotFound("there is no permission {key!r}", key=key)
