"""Members in memory, as many as there shall be."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members.models import AddMemberBody, Member, MemberQuery, UpdateMemberBody
from msgsvc_core.members.service import Members
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.subscribers import FakeSubscribers


class FakeMembers(Members):
    """`by_id` holds the members, `changes` what became of them, before and after. `accounts` says who signs
    in as which: a test fills it. `list_by_person` looks among `subscribers`."""

    def __init__(
        self, *, clock: Clock | None = None, subscribers: FakeSubscribers | None = None
    ) -> None:
        self.by_id: dict[str, Member] = {}
        self.changes: list[tuple[Member, Member | None]] = []
        #: The member's id by that of the account.
        self.accounts: dict[str, str] = {}
        self._people = subscribers or FakeSubscribers(clock=clock)
        super().__init__(
            clock=clock or FakeClock(),
            subscribers=self._people,
            quota=_Room(),
            on_changed=self._note,
        )

    async def get(self, tx: Tx, project_id: str, member_id: str) -> Member:
        found = await self.get_many(tx, project_id, [member_id])
        if member_id not in found:
            raise NotFound("there is no member {member_id!r}", member_id=member_id)
        return found[member_id]

    async def get_many(
        self, tx: Tx, project_id: str, member_ids: Sequence[str]
    ) -> dict[str, Member]:
        found = {one: self.by_id[one] for one in member_ids if one in self.by_id}
        return {one: member for one, member in found.items() if member.project_id == project_id}

    async def find_by_subscriber(
        self, tx: Tx, project_id: str, subscriber_id: str
    ) -> Member | None:
        found = (each for each in self._of(project_id) if subscriber_id in each.subscriber_ids)
        return next(found, None)

    async def find_by_account(self, tx: Tx, project_id: str, account_id: str) -> Member | None:
        found = await self.get_many(tx, project_id, [self.accounts.get(account_id, "")])
        return next((each for each in found.values() if each.status == "active"), None)

    async def list_by_person(self, tx: Tx, bot: str, user_id: str) -> list[tuple[str, Member]]:
        found = []
        for person in self._people.everybody:
            member = await self.find_by_subscriber(tx, person.project_id, person.subscriber_id)
            if member is not None and (person.bot, person.user_id) == (bot, user_id):
                found.append((person.subscriber_id, member))
        return found

    async def list_agents(self, tx: Tx, project_id: str) -> list[Member]:
        return [each for each in self._of(project_id) if each.is_agent]

    async def page(self, tx: Tx, project_id: str, query: MemberQuery) -> list[Member]:
        after = query.after
        found = [
            each
            for each in reversed(self.by_id.values())
            if each.project_id == project_id
            and each.status == query.status
            and query.role in {None, each.role}
        ]
        ids = [each.member_id for each in found]
        begin = ids.index(after) + 1 if after in ids else 0
        return found[begin : begin + query.fetch_limit]

    async def add(self, tx: Tx, project_id: str, body: AddMemberBody) -> Member:
        self._check_free(project_id, body.email)
        member = Member(
            project_id=project_id,
            member_id=new_id("mem"),
            name=body.name,
            email=body.email,
            role=body.role,
            status="active",
            created_at_ms=self._clock.now_ms(),
        )
        self.by_id[member.member_id] = member
        return member

    async def change(
        self, tx: Tx, project_id: str, member_id: str, body: UpdateMemberBody
    ) -> Member:
        before = await self._found(tx, project_id, member_id)
        if body.email not in {None, before.email}:
            self._check_free(project_id, str(body.email))
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        return await self._put(tx, before, replace(before, **changes))

    async def remove(self, tx: Tx, project_id: str, member_id: str) -> None:
        before = await self.get(tx, project_id, member_id)
        if before.status == "active":
            removed_at_ms = self._clock.now_ms()
            after = replace(
                before, status="removed", removed_at_ms=removed_at_ms, subscriber_ids=()
            )
            await self._put(tx, before, after)

    async def erase(self, tx: Tx, project_id: str, member_id: str) -> None:
        before = await self.get(tx, project_id, member_id)
        del self.by_id[member_id]
        await self._note(tx, before, None)

    async def unlink(self, tx: Tx, project_id: str, member_id: str, subscriber_id: str) -> None:
        before = await self.get(tx, project_id, member_id)
        if subscriber_id not in before.subscriber_ids:
            raise NotFound(
                "the member has no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )
        await self._put(tx, before, _without(before, subscriber_id))

    async def bind(self, tx: Tx, project_id: str, member_id: str, subscriber_id: str) -> Member:
        before = await self._found(tx, project_id, member_id)
        other = await self.find_by_subscriber(tx, project_id, subscriber_id)
        if other is not None:
            await self._put(tx, other, _without(other, subscriber_id))
        bound = (*before.subscriber_ids, subscriber_id)
        after = replace(before, subscriber_ids=tuple(dict.fromkeys(bound)))
        return await self._put(tx, before, after)

    def _of(self, project_id: str) -> list[Member]:
        return [
            each
            for each in self.by_id.values()
            if (each.project_id, each.status) == (project_id, "active")
        ]

    def _check_free(self, project_id: str, email: str) -> None:
        if any(each.email == email for each in self._of(project_id)):
            raise Conflict("you have a member {email!r} already", field="email", email=email)

    async def _found(self, tx: Tx, project_id: str, member_id: str) -> Member:
        member = await self.get(tx, project_id, member_id)
        if member.status != "active":
            raise Conflict("{member_id} was removed; add them anew", member_id=member_id)
        return member

    async def _put(self, tx: Tx, before: Member, after: Member) -> Member:
        self.by_id[after.member_id] = after
        if after != before:
            await self._note(tx, before, after)
        return after

    async def _note(self, _tx: Tx, before: Member, after: Member | None) -> None:
        self.changes.append((before, after))


class _Room:
    """There is always room for one more."""

    async def check_room(self, tx: Tx, project_id: str, email: str) -> None:
        pass

    @asynccontextmanager
    async def keeping_room(self, tx: Tx, project_id: str) -> AsyncIterator[None]:
        yield


def _without(member: Member, subscriber_id: str) -> Member:
    left = tuple(one for one in member.subscriber_ids if one != subscriber_id)
    return replace(member, subscriber_ids=left)
