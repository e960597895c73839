"""Charges paid operations to accounts, each once, and rejects them when blocked."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgsvc_billing import ledger, store
from msgsvc_billing.models import Debit, Entry, State
from msgsvc_billing.payers import Payers
from msgsvc_billing.service import Billing
from msgsvc_core.billing import MESSAGE, Charge
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import DAY_MS, Clock, to_rfc3339
from msgsvc_core.kernel.errors import BillingBlocked

#: Operations that correct what another was charged, of the same resource.
SETTLES = {"broadcast.settlement": "broadcast.message"}


class Charges:
    """`service.get(Charges)`."""

    def __init__(self, *, clock: Clock, billing: Billing, payers: Payers) -> None:
        self._clock = clock
        self._billing = billing
        self._payers = payers

    async def charge(self, tx: Tx, charge: Charge) -> None:
        """Takes what an operation costs, once. Raises `BillingBlocked` if it may be refused."""
        if charge.operation in SETTLES:
            await self._adjust(tx, charge, SETTLES[charge.operation])
            return
        payer = await self._payers.find(tx, charge.project_id)
        if payer is None:
            return
        state = self._billing.state_now(payer)
        if charge.refusable:
            self.check(state)
        price = self._billing.settings.price(charge.operation)
        if price and charge.quantity > 0:
            if state != payer.state:
                state = await self._billing.opened(tx, payer.account_id)
            await self._debit(tx, state, charge.operation, price, [charge])

    def check(self, state: State) -> None:
        """Raises `BillingBlocked` for a state as of now."""
        if self._billing.standing(state) == "blocked":
            assert state.exhausted_at_ms is not None, "else it would not be blocked"
            raise BillingBlocked(
                "the credits were used up on {moment} and the days of grace are over; paid"
                " operations go on with a credit pack, a larger plan or the next month",
                moment=to_rfc3339(state.exhausted_at_ms),
            )

    async def quote(self, tx: Tx, project_id: str, operation: str) -> int:
        """Credits for one of an operation; 0 for a project that nobody pays for, or whose plan has no end."""
        payer = await self._payers.find(tx, project_id)
        if payer is None or self._billing.is_unlimited(self._billing.state_now(payer).plan):
            return 0
        return self._billing.settings.price(operation)

    async def delivered(self, tx: Tx, events: Sequence[Event]) -> None:
        """Charges messages that messengers accepted, if they have a price. Broadcasts are charged
        separately."""
        price = self._billing.settings.price(MESSAGE)
        if not price:
            return
        told = [
            event
            for event in events
            if event.name == "delivery.success" and not event.data.get("job_id")
        ]
        payers = await self._payers.find_many(tx, sorted({event.project_id for event in told}))
        by_account: dict[str, list[Charge]] = defaultdict(list)
        for event in told:
            if (payer := payers.get(event.project_id)) is not None:
                charge = Charge(event.project_id, MESSAGE, event.data["message_id"], False)
                by_account[payer.account_id].append(charge)
        # In one order, or two batches could wait for each other.
        for account_id, charges in sorted(by_account.items()):
            state = await self._billing.opened(tx, account_id)
            await self._debit(tx, state, MESSAGE, price, charges)

    async def _debit(
        self, tx: Tx, state: State, operation: str, price: int, charges: Sequence[Charge]
    ) -> None:
        account_id, now_ms = state.account_id, self._clock.now_ms()
        keys = [(one.project_id, one.resource_id, one.quantity) for one in charges]
        claimed = await ledger.claim(tx, account_id, operation, keys, now_ms)
        new = [one for one in charges if one.resource_id in claimed]
        if not new:
            return
        spent: Mapping[str, Debit] = {}
        if not self._billing.is_unlimited(state.plan):
            cost = price * sum(one.quantity for one in new)
            taken = await self._debit_cost(tx, account_id, cost, now_ms)
            spent = await self._record(tx, account_id, price, new, taken)
        by_project: dict[str, tuple[int, int]] = {}
        for one in new:
            of_it = spent.get(one.resource_id, Debit(0, 0))
            quantity, paid = by_project.get(one.project_id, (0, 0))
            paid += of_it.allowance + of_it.packs
            by_project[one.project_id] = (quantity + one.quantity, paid)
        await ledger.count_usage(tx, account_id, operation, now_ms // DAY_MS, by_project)

    async def _debit_cost(self, tx: Tx, account_id: str, cost: int, now_ms: int) -> Debit:
        while (took := await store.debit(tx, account_id, cost, now_ms)) is None:
            await self._billing.opened(tx, account_id)
        taken, state = took
        if state.exhausted_at_ms == now_ms and taken.allowance + taken.packs:
            self._billing.log_exhausted(tx, state)
        return taken

    async def _record(
        self, tx: Tx, account_id: str, price: int, charges: Sequence[Charge], debit: Debit
    ) -> Mapping[str, Debit]:
        """Says in the ledger what each took: the first of the allowance, the last of nothing."""
        shares = shared_out(debit, [price * one.quantity for one in charges])
        alike: dict[tuple[int, int, int], list[str]] = defaultdict(list)
        spent: dict[str, Debit] = {}
        for one, (share, unpaid) in zip(charges, shares, strict=True):
            alike[share.allowance, share.packs, unpaid].append(one.resource_id)
            spent[one.resource_id] = share
        operation = charges[0].operation
        for (allowance, packs, unpaid), resources in alike.items():
            share = Debit(allowance, packs)
            await ledger.adjust(tx, account_id, operation, resources, share, unpaid)
        return spent

    async def _adjust(self, tx: Tx, charge: Charge, operation: str) -> None:
        """Corrects what was charged to what has taken place, at the price of then."""
        payer = await self._payers.find(tx, charge.project_id)
        if payer is None:
            return
        account_id = payer.account_id
        before = await ledger.find(tx, account_id, operation, charge.resource_id)
        if before is None or before.quantity == 0:
            return
        now_ms = self._clock.now_ms()
        key = (charge.project_id, charge.resource_id, charge.quantity)
        if not await ledger.claim(tx, account_id, charge.operation, [key], now_ms):
            return
        price = (before.unpaid - before.amount) // before.quantity
        taken = Debit(0, 0)
        if charge.quantity > 0 and price:
            await self._billing.opened(tx, account_id)
            taken = await self._debit_cost(tx, account_id, price * charge.quantity, now_ms)
        elif price:
            taken = await self._refund(tx, before, price * -charge.quantity)
        unpaid = max(0, price * charge.quantity - taken.allowance - taken.packs)
        await ledger.adjust(tx, account_id, charge.operation, [charge.resource_id], taken, unpaid)
        change = {charge.project_id: (charge.quantity, taken.allowance + taken.packs)}
        # On the day of the operation: a day with negative usage would make no sense.
        await ledger.count_usage(tx, account_id, operation, before.at_ms // DAY_MS, change)

    async def _refund(self, tx: Tx, before: Entry, credits_back: int) -> Debit:
        """First what was never paid is forgiven, then packs get theirs, which were spent last."""
        left = max(0, credits_back - before.unpaid)
        packs = min(left, -before.packs)
        allowance = min(left - packs, -before.allowance)
        if packs + allowance == 0:
            return Debit(0, 0)
        await self._billing.opened(tx, before.account_id)
        changed = await store.refund(tx, before.account_id, allowance, packs, before.at_ms)
        assert changed is not None, "it was opened"
        return changed[0]


def shared_out(taken: Debit, costs: Sequence[int]) -> list[tuple[Debit, int]]:
    """How much of a joint debit each of several costs took, in order, and how much it lacks."""
    allowance, packs = taken.allowance, taken.packs
    shares = []
    for cost in costs:
        of_allowance = min(cost, allowance)
        of_packs = min(cost - of_allowance, packs)
        allowance, packs = allowance - of_allowance, packs - of_packs
        shares.append((Debit(of_allowance, of_packs), cost - of_allowance - of_packs))
    return shares
