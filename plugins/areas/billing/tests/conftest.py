"""A service that bills, and an account with a project."""

from dataclasses import dataclass
from typing import Any

import pytest

from msgsvc_billing import ledger, plugin, store
from msgsvc_billing.models import State
from msgsvc_billing.service import Billing
from msgsvc_core.billing import Charge
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit.fixtures import ServiceFactory

#: For `make_service`.
WITH_BILLING: dict[str, Any] = {
    "extra_plugins": [("billing", plugin)],
    "plugins": ("dashboard",),
}

DAY = 24 * 3600


@dataclass
class Payer:
    """An account with one project, on a service that bills."""

    service: Service
    account_id: str
    project_id: str

    @property
    def billing(self) -> Billing:
        return self.service.get(Billing)

    async def charge(self, resource: str, operation: str = "auth.confirmed", **more: Any) -> None:
        """In a transaction of its own; by default as the Yes of a person."""
        more.setdefault("refusable", operation != "auth.confirmed")
        async with self.service.db.transaction() as tx:
            await self.service.billing.charge(
                tx, Charge(self.project_id, operation, resource, **more)
            )

    async def grant(self, count: int) -> None:
        async with self.service.db.transaction() as tx:
            await self.billing.grant(tx, self.account_id, count)

    async def change_plan(self, plan: str) -> None:
        async with self.service.db.transaction() as tx:
            await self.billing.change_plan(tx, self.account_id, plan)

    async def state(self) -> State:
        async with self.service.db.read() as tx:
            return await self.billing.state_of(tx, self.account_id)

    async def standing(self) -> str:
        return self.billing.standing(await self.state())

    async def amounts(self) -> dict[str, int]:
        """What each line of the ledger did to the balance, by operation and resource."""
        async with self.service.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT operation, resource_id, allowance + packs AS amount FROM billing_ledger"
                " WHERE account_id = :account_id ORDER BY entry_id",
                {"account_id": self.account_id},
            )
        return {f"{row['operation']} {row['resource_id']}": row["amount"] for row in rows}

    async def is_even(self) -> bool:
        """Whether the ledger comes to what the account has."""
        async with self.service.db.read() as tx:
            state = await store.find(tx, self.account_id)
            sums = await ledger.sums(tx, self.account_id)
        return state is None or (sums.allowance, sums.packs) == (state.allowance, state.packs)

    async def spend_all(self) -> None:
        """Leaves the account without a credit, from now on."""
        left = (await self.state()).balance
        await self.charge(f"all-{left}-{self.service.clock.now_ms()}", quantity=left)


async def payer_of(service: Service, email: str = "ann@shop.example") -> Payer:
    """A new account with a project of its own."""
    project = await service.projects.create("Shop")
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(tx, email=email, name="Ann")
        await service.get(Accounts).give_project(tx, project.project_id, account.account_id)
    return Payer(service, account.account_id, project.project_id)


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(**WITH_BILLING)


@pytest.fixture
async def payer(service: Service) -> Payer:
    return await payer_of(service)
