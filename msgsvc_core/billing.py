"""Paid operations: the core reports them, and a billing plugin charges them.

Without such a plugin nothing is charged or refused.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_core.kernel.values import value_object

#: A message to one subscriber: of `POST /v1/send` and `/v1/send/batch`, a schedule or a drip campaign.
MESSAGE = "message.sent"


@dataclass(frozen=True, slots=True)
class Charge:
    """One paid operation: `operation` is its kind, e.g. `auth.confirmed`, `resource_id` its subject, e.g. a
    session. The same pair is charged once, however often it is reported.

    `quantity` is the number of units, e.g. a broadcast's recipients. A negative value refunds what was
    charged and did not take place.
    """

    project_id: str
    operation: str
    resource_id: str
    refusable: bool = True
    quantity: int = 1


@value_object
class Plan:
    """The limits of an account's plan. None means unlimited."""

    name: str
    max_projects: int | None = None
    #: Maximum active members of each project.
    max_members: int | None = None
    csv_export: bool = True


class CheckOperation(Protocol):
    """Raises `BillingBlocked` if a paid operation would be refused."""

    async def __call__(self, project_id: str, operation: str, tx: Tx | None) -> None: ...


class BillingGate:
    """`service.billing`: the core's calls to a billing plugin.

    `charge` is awaited with each paid operation, `check` before accepting one that is charged later.
    `quote` returns the current credits for one, `owner_of` the account that owns a project, and
    `decide_plan` the plan of an account, None without billing.
    """

    def __init__(
        self,
        *,
        db: Database,
        charge: Callable[[Tx, Charge], Awaitable[None]],
        check: CheckOperation,
        quote: Callable[[Tx, str, str], Awaitable[int]],
        owner_of: Callable[[Tx, str], Awaitable[str | None]],
        decide_plan: Callable[[Tx, str], Awaitable[Plan | None]],
    ) -> None:
        self._db = db
        self._charge = charge
        self._check = check
        self._quote = quote
        self._owner_of = owner_of
        self._decide_plan = decide_plan

    async def charge(self, tx: Tx, charge: Charge) -> None:
        """Charges a paid operation. Raises `BillingBlocked` if it is refused."""
        await self._charge(tx, charge)

    async def check(self, project_id: str, operation: str, tx: Tx | None = None) -> None:
        """Raises `BillingBlocked` if a paid operation that is charged later would be refused.

        `tx` is the caller's transaction, if there is one.
        """
        await self._check(project_id, operation, tx)

    async def quote(self, tx: Tx, project_id: str, operation: str) -> int:
        """The price of one paid operation for a project, in credits; 0 without billing."""
        return await self._quote(tx, project_id, operation)

    async def plan_of(self, tx: Tx, project_id: str) -> Plan | None:
        """The plan of a project's owner; None without billing, which means no limits."""
        return await self.plan_of_account(tx, await self._owner_of(tx, project_id))

    async def plan_of_account(self, tx: Tx, account_id: str | None) -> Plan | None:
        """The plan of an account; None without an account, or without billing."""
        return None if account_id is None else await self._decide_plan(tx, account_id)

    async def check_export(self, project_id: str) -> None:
        """Raises `Forbidden`, which names the plan, if the plan has no CSV export. For endpoints that hold
        no connection."""
        async with self._db.read() as tx:
            plan = await self.plan_of(tx, project_id)
        if plan is not None and not plan.csv_export:
            raise Forbidden(
                "the plan {name!r} has no CSV export; a higher plan has", name=plan.name
            )
