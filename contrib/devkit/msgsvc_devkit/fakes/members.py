"""Members in memory, unlimited in number."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.members.models import (
    AddMemberBody,
    Member,
    MemberQuery,
    Membership,
    Role,
    UpdateMemberBody,
)
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.members.service import Members
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.projects import FakeProjects
from msgsvc_devkit.fakes.subscribers import FakeSubscribers


class FakeMembers(Members):
    """`by_id` contains the members, `changes` each change with the states before and after. `accounts` maps
    members to their accounts. `list_by_person` uses `subscribers`, roles use `projects`."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        subscribers: FakeSubscribers | None = None,
        projects: FakeProjects | None = None,
    ) -> None:
        self.by_id: dict[str, Member] = {}
        self.changes: list[tuple[Member, Member | None]] = []
        #: Account ids by member id.
        self.accounts: dict[str, str] = {}
        self._people = subscribers or FakeSubscribers(clock=clock)
        self._projects = projects or FakeProjects(clock=clock)
        super().__init__(
            clock=clock or FakeClock(),
            subscribers=self._people,
            quota=MemberQuota(owner_of=_nobody, plan_of=_no_plan, email_of=_nobody),
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
        found = await self.accounts_of(tx, project_id)
        return next((self.by_id[one] for one, of in found.items() if of == account_id), None)

    async def link_account(self, tx: Tx, project_id: str, member_id: str, account_id: str) -> None:
        member = self.by_id.get(member_id)
        if member is None or (member.project_id, member.status) != (project_id, "active"):
            raise NotFound("there is no active member {member_id!r}", member_id=member_id)
        self.accounts[member_id] = account_id

    async def accounts_of(
        self, tx: Tx, project_id: str, member_id: str | None = None
    ) -> dict[str, str]:
        return {
            each.member_id: self.accounts[each.member_id]
            for each in self._of(project_id)
            if each.member_id in self.accounts and member_id in {None, each.member_id}
        }

    async def role_of(self, tx: Tx, account_id: str, project_id: str) -> Role | None:
        if await self._projects.owner_of(tx, project_id) == account_id:
            return "owner"
        member = await self.find_by_account(tx, project_id, account_id)
        return None if member is None else member.role

    async def projects_of(self, tx: Tx, account_id: str) -> Sequence[Membership]:
        found = []
        for project_id, project in sorted(self._projects.by_id.items()):
            role = await self.role_of(tx, account_id, project_id)
            if role is not None:
                found.append(Membership(project_id, project.name, role))
        return found

    async def has_other_owner(self, tx: Tx, project_id: str, member_id: str) -> bool:
        others = await self.accounts_of(tx, project_id)
        others.pop(member_id, None)
        owned = await self._projects.owner_of(tx, project_id) is not None
        return owned or any(self.by_id[each].role == "owner" for each in others)

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


async def _nobody(_tx: Tx, _id: str) -> str | None:
    return None


async def _no_plan(_tx: Tx, _account_id: str | None) -> Plan | None:
    """There is no limit."""
    return None


def _without(member: Member, subscriber_id: str) -> Member:
    left = tuple(one for one in member.subscriber_ids if one != subscriber_id)
    return replace(member, subscriber_ids=left)
