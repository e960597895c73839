"""Members of projects: one member per email; removal takes effect immediately."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members import store
from msgsvc_core.members.models import (
    AddMemberBody,
    Member,
    MemberQuery,
    Membership,
    Role,
    UpdateMemberBody,
)
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.subscribers.service import Subscribers

#: Called with a member before and after a change (None: erased), in its transaction.
OnMemberChanged = Callable[[Tx, Member, Member | None], Awaitable[None]]


class Members:
    """`service.members`."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        quota: MemberQuota,
        on_changed: OnMemberChanged,
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers
        self._quota = quota
        self._on_changed = on_changed

    async def get(self, tx: Tx, project_id: str, member_id: str) -> Member:
        """A member, including removed ones. Raises `NotFound`, also for another project's id."""
        member = (await store.get_many(tx, project_id, [member_id])).get(member_id)
        if member is None:
            raise _missing(member_id)
        return member

    async def get_many(
        self, tx: Tx, project_id: str, member_ids: Sequence[str]
    ) -> dict[str, Member]:
        """Existing members by id, including removed ones."""
        return await store.get_many(tx, project_id, member_ids)

    async def find_by_subscriber(
        self, tx: Tx, project_id: str, subscriber_id: str
    ) -> Member | None:
        """The active member with this messenger account, or None."""
        return await store.find_by_subscriber(tx, project_id, subscriber_id)

    async def find_by_account(self, tx: Tx, project_id: str, account_id: str) -> Member | None:
        """The active member with this account; None for an owner who is not a member."""
        return await store.find_by_account(tx, project_id, account_id)

    async def link_account(self, tx: Tx, project_id: str, member_id: str, account_id: str) -> None:
        """Links a member to an account. Raises `NotFound`, and `Conflict` if the account is another member
        of the project, or the plan allows no more members."""
        async with self._quota.keeping_room(tx, project_id):
            if not await store.set_account(tx, project_id, member_id, account_id):
                raise NotFound("there is no active member {member_id!r}", member_id=member_id)

    async def accounts_of(
        self, tx: Tx, project_id: str, member_id: str | None = None
    ) -> dict[str, str]:
        """The account of each active member that has one, or of `member_id`, by the member's id."""
        return await store.list_accounts(tx, project_id, member_id)

    async def role_of(self, tx: Tx, account_id: str, project_id: str) -> Role | None:
        """The role of an account in a project; None without one, or if the project does not exist."""
        return cast("Role | None", await store.find_role(tx, account_id, project_id))

    async def projects_of(self, tx: Tx, account_id: str) -> Sequence[Membership]:
        """The projects that an account owns or is a member of, oldest first."""
        found = await store.list_projects(tx, account_id)
        return [Membership(id_, name, cast("Role", role)) for id_, name, role in found]

    async def has_other_owner(self, tx: Tx, project_id: str, member_id: str) -> bool:
        """Whether the project would still have an owner without that member."""
        return await store.has_other_owner(tx, project_id, member_id)

    async def list_by_person(self, tx: Tx, bot: str, user_id: str) -> list[tuple[str, Member]]:
        """The active member behind a messenger account in each project, with the id of the linked
        subscriber."""
        theirs = await self._subscribers.list_by_user(tx, bot, user_id)
        found = []
        for project_id, subscriber_id in await store.bound_among(
            tx, [(one.project_id, one.subscriber_id) for one in theirs]
        ):
            member = await store.find_by_subscriber(tx, project_id, subscriber_id)
            if member is not None:
                found.append((subscriber_id, member))
        return found

    async def list_agents(self, tx: Tx, project_id: str) -> list[Member]:
        """Active members who reply to customers, oldest first."""
        return await store.list_agents(tx, project_id)

    async def page(self, tx: Tx, project_id: str, query: MemberQuery) -> list[Member]:
        """Newest first; one more than `query.limit` if there are more."""
        return await store.list_page(tx, project_id, query)

    async def add(self, tx: Tx, project_id: str, body: AddMemberBody) -> Member:
        """Raises `Conflict` for an email that an active member has, and if the plan allows no more
        members."""
        await self._quota.check_room(tx, project_id, body.email)
        member = Member(
            project_id=project_id,
            member_id=new_id("mem"),
            name=body.name,
            email=body.email,
            role=body.role,
            status="active",
            created_at_ms=self._clock.now_ms(),
        )
        if not await store.insert(tx, member):
            raise _taken(body.email)
        return member

    async def change(
        self, tx: Tx, project_id: str, member_id: str, body: UpdateMemberBody
    ) -> Member:
        """The member after the change. Raises `NotFound`, and `Conflict` for an email in use, for
        exceeding the plan, and for a removed member."""
        email = body.email
        if email is None:
            return await self._change(tx, project_id, member_id, body)
        # Two concurrent requests with the same email would both find it free.
        await tx.lock(f"member {email} of {project_id}")
        async with self._quota.keeping_room(tx, project_id):
            return await self._change(tx, project_id, member_id, body)

    async def _change(
        self, tx: Tx, project_id: str, member_id: str, body: UpdateMemberBody
    ) -> Member:
        email = body.email
        before = await self._active(tx, project_id, member_id)
        if email is not None and await store.email_is_taken(tx, project_id, member_id, email):
            raise _taken(email)
        if changes := {name: getattr(body, name) for name in body.model_fields_set}:
            await store.update(tx, project_id, member_id, changes)
        after = replace(before, **changes)
        if after != before:
            await self._notify_changed(tx, before, after)
        return after

    async def remove(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Removes a member; a repeated removal changes nothing.

        The name is still shown in past work, and the email can be used again. Raises `NotFound`.
        """
        before = await self._lock(tx, project_id, member_id)
        now_ms = self._clock.now_ms()
        if not await store.mark_removed(tx, project_id, member_id, now_ms):
            return
        await store.unbind(tx, project_id, member_id, None)
        await store.delete_links(tx, project_id, member_id, None)
        after = replace(before, status="removed", removed_at_ms=now_ms, subscriber_ids=())
        await self._notify_changed(tx, before, after)

    async def erase(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Erases a member's name and email. Raises `NotFound`.

        The id may remain in past work. Their messenger accounts are subscribers of the project, and are
        erased separately.
        """
        before = await self._lock(tx, project_id, member_id)
        await store.delete(tx, project_id, member_id)
        await self._notify_changed(tx, before, None)

    async def unlink(self, tx: Tx, project_id: str, member_id: str, subscriber_id: str) -> None:
        """Unlinks a messenger account, which stays a subscriber. Raises `NotFound`."""
        before = await self._lock(tx, project_id, member_id)
        if not await store.unbind(tx, project_id, member_id, subscriber_id):
            raise NotFound(
                "the member has no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )
        # A used link works again only for the member who used it, and not after unlinking.
        await store.delete_links(tx, project_id, member_id, subscriber_id)
        await self._notify_changed(tx, before, _without(before, subscriber_id))

    async def bind(self, tx: Tx, project_id: str, member_id: str, subscriber_id: str) -> Member:
        """Links a subscriber to this member, and to no other. Raises `NotFound`, and `Conflict` for a
        removed member."""
        before = await self._active(tx, project_id, member_id)
        if subscriber_id in before.subscriber_ids:
            return before
        other = await store.find_by_subscriber(tx, project_id, subscriber_id)
        now_ms = self._clock.now_ms()
        await store.bind(tx, project_id, member_id, subscriber_id, now_ms)
        if other is not None:
            await self._notify_changed(tx, other, _without(other, subscriber_id))
        after = replace(before, subscriber_ids=(*before.subscriber_ids, subscriber_id))
        await self._notify_changed(tx, before, after)
        return after

    async def _lock(self, tx: Tx, project_id: str, member_id: str) -> Member:
        member = await store.lock(tx, project_id, member_id)
        if member is None:
            raise _missing(member_id)
        return member

    async def _active(self, tx: Tx, project_id: str, member_id: str) -> Member:
        member = await self._lock(tx, project_id, member_id)
        if member.status != "active":
            raise Conflict("{member_id} was removed; add them anew", member_id=member_id)
        return member

    async def _notify_changed(self, tx: Tx, before: Member, after: Member | None) -> None:
        await self._on_changed(tx, before, after)


def _without(member: Member, subscriber_id: str) -> Member:
    left = tuple(one for one in member.subscriber_ids if one != subscriber_id)
    return replace(member, subscriber_ids=left)


def _missing(member_id: str) -> NotFound:
    return NotFound("there is no member {member_id!r}", member_id=member_id)


def _taken(email: str) -> Conflict:
    return Conflict("you have a member {email!r} already", field="email", email=email)
