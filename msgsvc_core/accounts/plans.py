"""Who owns a project, and what its owner's plan lets it have."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgsvc_core.accounts import store, team_store
from msgsvc_core.accounts.models import Account
from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict

#: What an account may do by what it pays for; None where nothing is billed.
DecidePlan = Callable[[Tx, str], Awaitable[Plan | None]]


class AccountPlans:
    """The plans of projects' owners; the `MemberQuota` of members."""

    def __init__(self, *, decide_plan: DecidePlan) -> None:
        self._decide_plan = decide_plan

    async def owner_of(self, tx: Tx, project_id: str) -> str | None:
        """The account that a project belongs to; None where it is the operator's alone."""
        return await store.find_owner(tx, project_id)

    async def plan_of(self, tx: Tx, account_id: str | None) -> Plan | None:
        """What the account may do by its plan; None where nothing is billed: then it may do all."""
        return None if account_id is None else await self._decide_plan(tx, account_id)

    async def of_project(self, tx: Tx, project_id: str) -> Plan | None:
        """The plan of a project's owner."""
        return await self.plan_of(tx, await self.owner_of(tx, project_id))

    async def check_room(self, tx: Tx, project_id: str, email: str) -> None:
        """Raises `Conflict` where the plan has no place for another member. Whom a project belongs to
        is one of its people, member or not. Waits for who adds another at the same time."""
        limited = await self._limited(tx, project_id)
        if limited is None:
            return
        owner, plan, most = limited
        if email == owner.email:
            return
        others = await team_store.count_others(tx, project_id, owner)
        if 1 + others >= most:
            raise _full(plan)

    @asynccontextmanager
    async def keeping_room(self, tx: Tx, project_id: str) -> AsyncIterator[None]:
        """Raises `Conflict`, after it, for a change by which more people are members than the plan has:
        whoever took the owner's place may be somebody else from then on."""
        limited = await self._limited(tx, project_id)
        if limited is None:
            yield
            return
        owner, plan, most = limited
        before = await team_store.count_others(tx, project_id, owner)
        yield
        after = await team_store.count_others(tx, project_id, owner)
        if after > before and 1 + after > most:
            raise _full(plan)

    async def _limited(self, tx: Tx, project_id: str) -> tuple[Account, Plan, int] | None:
        """The owner of a project whose plan limits its members, under the lock of its members."""
        owner_id = await store.find_owner(tx, project_id)
        plan = await self.plan_of(tx, owner_id)
        if owner_id is None or plan is None or plan.max_members is None:
            return None
        await tx.lock(f"members of {project_id}")
        owner = await store.find(tx, owner_id)
        assert owner is not None, "a project's owner is an account"
        return owner, plan, plan.max_members


def _full(plan: Plan) -> Conflict:
    return Conflict(
        "the plan {name!r} has {limit} member(s) for each project, its owner among them;"
        " another plan has more, and the operator of the service changes it",
        name=plan.name,
        limit=plan.max_members,
    )
