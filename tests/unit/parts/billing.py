"""A billing plugin as several tests need it."""

from msgsvc_core.billing import Charge, Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl


class Billing:
    """Records what is charged, and refuses the operations in `refused`. All accounts have `plan`."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan("free")
        self.charges: list[Charge] = []
        self.refused: set[str] = set()

    @hookimpl
    async def charge(self, tx: Tx, charge: Charge) -> None:
        if charge.operation in self.refused:
            raise BillingBlocked("the account has no credit")
        self.charges.append(charge)

    @hookimpl
    async def decide_plan(self, tx: Tx, account_id: str) -> Plan:
        return self.plan
