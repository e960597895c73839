"""The limit of members in the plan of a project's owner."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.members import store


class MemberQuota:
    """The owner of a project always counts as one of its members.

    `owner_of` and `plan_of` return None if a project has no owner, and without billing; then members are not
    limited. `email_of` is the email of an account, None for one that no plugin stores.
    """

    def __init__(
        self,
        *,
        owner_of: Callable[[Tx, str], Awaitable[str | None]],
        plan_of: Callable[[Tx, str | None], Awaitable[Plan | None]],
        email_of: Callable[[Tx, str], Awaitable[str | None]],
    ) -> None:
        self._owner_of = owner_of
        self._plan_of = plan_of
        self._email_of = email_of

    async def check_room(self, tx: Tx, project_id: str, email: str) -> None:
        """Raises `Conflict` if the plan allows no other member with that email. Waits for concurrent
        additions."""
        limited = await self._limited(tx, project_id)
        if limited is None:
            return
        owner_id, owner_email, plan, limit = limited
        if email == owner_email:
            return
        others = await store.count_others(tx, project_id, owner_id, owner_email)
        if 1 + others >= limit:
            raise _full(plan)

    @asynccontextmanager
    async def keeping_room(self, tx: Tx, project_id: str) -> AsyncIterator[None]:
        """Raises `Conflict` after a change that leaves more members than the plan allows: the owner's
        place among them may be another member's from then on."""
        limited = await self._limited(tx, project_id)
        if limited is None:
            yield
            return
        owner_id, owner_email, plan, limit = limited
        before = await store.count_others(tx, project_id, owner_id, owner_email)
        yield
        after = await store.count_others(tx, project_id, owner_id, owner_email)
        if after > before and 1 + after > limit:
            raise _full(plan)

    async def _limited(self, tx: Tx, project_id: str) -> tuple[str, str, Plan, int] | None:
        """Locks the project's members, and returns the owner's id and email, and their plan, if it limits
        members."""
        owner_id = await self._owner_of(tx, project_id)
        plan = await self._plan_of(tx, owner_id)
        if owner_id is None or plan is None or plan.max_members is None:
            return None
        await tx.lock(f"members of {project_id}")
        email = await self._email_of(tx, owner_id)
        return None if email is None else (owner_id, email, plan, plan.max_members)


def _full(plan: Plan) -> Conflict:
    return Conflict(
        "the plan {name!r} has {limit} member(s) for each project, its owner among them;"
        " another plan has more, and the operator of the service changes it",
        name=plan.name,
        limit=plan.max_members,
    )
