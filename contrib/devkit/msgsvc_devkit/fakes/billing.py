"""A fake of the plugin that bills."""

from msgsvc_core.billing import BillingGate, Charge, Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_devkit.fakes.database import FakeDatabase


class FakeBilling(BillingGate):
    """`charges` contains the charged operations. `prices` are credits by operation, `plans` those of projects
    or accounts; a project or an operation in `refused` raises `BillingBlocked`."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.prices: dict[str, int] = {}
        self.plans: dict[str, Plan] = {}
        self.refused: set[str] = set()
        super().__init__(
            db=FakeDatabase(),
            charge=self._take,
            check=self._refuse,
            quote=self._price,
            owner_of=self._owner,
            decide_plan=self._plan,
        )

    async def _take(self, tx: Tx, charge: Charge) -> None:
        if charge.refusable:
            await self._refuse(charge.project_id, charge.operation, tx)
        known = {(each.operation, each.resource_id) for each in self.charges}
        if (charge.operation, charge.resource_id) not in known:
            self.charges.append(charge)

    async def _refuse(self, project_id: str, operation: str, tx: Tx | None) -> None:
        if self.refused & {project_id, operation}:
            raise BillingBlocked("{operation} is not paid for", operation=operation)

    async def _price(self, tx: Tx, project_id: str, operation: str) -> int:
        return self.prices.get(operation, 0)

    async def _owner(self, tx: Tx, project_id: str) -> str | None:
        return project_id

    async def _plan(self, tx: Tx, account_id: str) -> Plan | None:
        return self.plans.get(account_id)
