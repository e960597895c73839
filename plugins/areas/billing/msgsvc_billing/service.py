"""Credits of accounts: plans, months, packs and balances."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import structlog

from msgsvc_billing import ledger, store
from msgsvc_billing.models import (
    EXPIRED,
    GRANTED,
    PACK_GRANTED,
    PACK_WITHDRAWN,
    PLAN_CHANGED,
    Customer,
    Debit,
    Entry,
    Payer,
    Standing,
    State,
)
from msgsvc_billing.months import period_at
from msgsvc_billing.payers import Payers
from msgsvc_billing.settings import BillingSettings
from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.accounts import AccountDirectory, AccountSummary

#: Credits of one pack: what a slip of the finger should not exceed.
MOST_CREDITS = 1_000_000_000

#: Characters of a note.
NOTE_LENGTH = 200

log = structlog.get_logger(__name__)


class Billing:
    """`service.get(Billing)`."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: BillingSettings,
        accounts: AccountDirectory,
        payers: Payers,
    ) -> None:
        self._clock = clock
        self.settings = settings
        self._accounts = accounts
        self._payers = payers
        #: Called after a commit that may have blocked or unblocked an account.
        self.on_change: list[Callable[[], None]] = []

    # ---- what an account has --------------------------------------------------------------------

    async def state_of(self, tx: Tx, account_id: str) -> State:
        """What an account has now, without writing: a month that is over counts as renewed.

        Raises `NotFound`.
        """
        state = await store.find(tx, account_id)
        if state is not None:
            return self.as_of_now(state)
        return self._begun(account_id, (await self._accounts.find(tx, account_id)).created_at_ms)

    async def opened(self, tx: Tx, account_id: str) -> State:
        """The same, but written: the account has a row of this month. Raises `NotFound`."""
        state = await store.find(tx, account_id)
        if state is None:
            await self._open(tx, account_id)
            state = await store.find(tx, account_id)
        assert state is not None, "it is there, or was made"
        while state.period_ends_ms <= self._clock.now_ms():
            state = await self.renew(tx, state)
        return state

    def as_of_now(self, state: State) -> State:
        """What it will be found to be: renewed, if its month is over."""
        now_ms = self._clock.now_ms()
        if state.period_ends_ms > now_ms:
            return state
        fresh = self._fresh(state, now_ms)
        is_empty = fresh.balance == 0 and not self.is_unlimited(state.plan)
        exhausted_at_ms = None if not is_empty else state.exhausted_at_ms or fresh.period_started_ms
        return replace(fresh, exhausted_at_ms=exhausted_at_ms)

    def standing(self, state: State) -> Standing:
        """Of a state as of now."""
        ends_ms = self.grace_ends_ms(state)
        if ends_ms is None:
            return "ok"
        return "grace" if self._clock.now_ms() < ends_ms else "blocked"

    def grace_ends_ms(self, state: State) -> int | None:
        """When paid operations end, or ended; None while there are credits."""
        if state.exhausted_at_ms is None or self.is_unlimited(state.plan):
            return None
        return state.exhausted_at_ms + self.settings.grace_ms

    def is_unlimited(self, plan: str) -> bool:
        return self.settings.terms(plan).monthly_credits is None

    async def plan_of(self, tx: Tx, account_id: str) -> Plan:
        """The plan's terms of an account. Operators are not limited."""
        state = await store.find(tx, account_id)
        plan = self.settings.plan(self.settings.default_plan if state is None else state.plan)
        if self.settings.operators_limited:
            return plan
        account = (await self._accounts.find_many(tx, [account_id])).get(account_id)
        return Plan(plan.name) if account is not None and account.is_operator else plan

    # ---- what a project sees of the account that pays for it --------------------------------------

    async def paying_for(self, tx: Tx, project_id: str) -> State | None:
        """What the account has that pays for a project; None where none does."""
        payer = await self._payers.find(tx, project_id)
        return None if payer is None else self.state_now(payer)

    def state_now(self, payer: Payer) -> State:
        """What an account has now, without writing."""
        if payer.state is None:
            return self._begun(payer.account_id, payer.anchor_ms)
        return self.as_of_now(payer.state)

    # ---- what the operator does -----------------------------------------------------------------

    async def grant(self, tx: Tx, account_id: str, count: int, note: str = "") -> State:
        """Adds a pack of credits, which stay until they are used; below 0 it takes them back.

        Raises `NotFound`, `ValidationFailed`, and `Conflict` where there are not so many.
        """
        if not 0 < abs(count) <= MOST_CREDITS:
            raise ValidationFailed(
                "1 to {limit}, or as many below 0", field="credits", limit=MOST_CREDITS
            )
        state = await self.opened(tx, account_id)
        changed = await store.add_packs(
            tx,
            account_id,
            count,
            unlimited=self.is_unlimited(state.plan),
            now_ms=self._clock.now_ms(),
        )
        if changed is None:
            raise Conflict("the account's packs do not hold as many", field="credits")
        operation = PACK_GRANTED if count > 0 else PACK_WITHDRAWN
        await self.record(tx, account_id, operation, changed[0], note=_checked(note))
        return self._changed(tx, changed[1])

    async def change_plan(self, tx: Tx, account_id: str, plan: str, note: str = "") -> State:
        """Changes the plan immediately. This month's usage counts for the new plan.

        Raises `NotFound`, `ValidationFailed` for an unknown plan, and `Conflict` for the current plan.
        """
        if plan not in self.settings.plans:
            known = ", ".join(sorted(self.settings.plans))
            raise ValidationFailed("must be one of {choices}", field="plan", choices=known)
        before = await self.opened(tx, account_id)
        now_ms = self._clock.now_ms()
        granted = self.settings.terms(plan).monthly_credits
        changed = await store.set_plan(
            tx, account_id, plan, granted or 0, unlimited=granted is None, now_ms=now_ms
        )
        if changed is None:
            raise Conflict("it is {plan!r} already", field="plan", plan=plan)
        said = f"{before.plan} -> {plan}" + (f": {note}" if _checked(note) else "")
        await self.record(tx, account_id, PLAN_CHANGED, changed[0], note=said)
        return self._changed(tx, changed[1])

    async def customers(self, tx: Tx, search: str, after: str | None, limit: int) -> list[Customer]:
        """Up to `limit` accounts with their balances, newest first; `search` is a prefix of their email."""
        accounts = await self._accounts.page(tx, search.strip().lower(), after, limit)
        states = await store.find_many(tx, [account.account_id for account in accounts])
        return [self._customer(account, states.get(account.account_id)) for account in accounts]

    # ---- months ---------------------------------------------------------------------------------

    async def renew(self, tx: Tx, before: State) -> State:
        """Starts the current month of an account whose month is over, unless that has been done."""
        now_ms = self._clock.now_ms()
        fresh = self._fresh(before, now_ms)
        unlimited = self.is_unlimited(before.plan)
        changed = await store.renew(tx, before, fresh, unlimited=unlimited, now_ms=now_ms)
        if changed is None:
            found = await store.find(tx, before.account_id)
            assert found is not None, "an account with credits is not removed by itself"
            return found
        taken, state = changed
        month = str(fresh.period_started_ms)
        if taken.allowance:
            await self.record(tx, before.account_id, EXPIRED, taken, month)
        await self._record_granted(tx, state)
        log.info("billing_month_begun", account_id=state.account_id, credits=state.granted)
        return self._changed(tx, state)

    async def _open(self, tx: Tx, account_id: str) -> None:
        account = await self._accounts.find(tx, account_id)
        state = self._begun(account_id, account.created_at_ms)
        if await store.insert(tx, state):
            await self._record_granted(tx, state)

    def _customer(self, account: AccountSummary, state: State | None) -> Customer:
        return Customer(
            account.account_id,
            account.email,
            account.name,
            account.created_at_ms,
            self._begun(account.account_id, account.created_at_ms)
            if state is None
            else self.as_of_now(state),
        )

    def _begun(self, account_id: str, anchor_ms: int) -> State:
        """An account that was never charged yet."""
        plan, now_ms = self.settings.default_plan, self._clock.now_ms()
        state = State(account_id, plan, anchor_ms, 0, 0, 0, 0, 0, None)
        fresh = self._fresh(state, now_ms)
        is_empty = fresh.granted == 0 and not self.is_unlimited(plan)
        return replace(fresh, exhausted_at_ms=anchor_ms if is_empty else None)

    def _fresh(self, state: State, now_ms: int) -> State:
        started_ms, ends_ms = period_at(state.anchor_ms, now_ms)
        return replace(
            state,
            period_started_ms=started_ms,
            period_ends_ms=ends_ms,
            granted=self.settings.terms(state.plan).monthly_credits or 0,
            used=0,
        )

    # ---- the ledger -----------------------------------------------------------------------------

    async def record(
        self,
        tx: Tx,
        account_id: str,
        operation: str,
        taken: Debit,
        resource_id: str = "",
        note: str = "",
    ) -> None:
        """Writes down what concerns the account, and none of its projects."""
        entry = Entry(
            account_id=account_id,
            entry_id=new_id("led"),
            project_id=None,
            operation=operation,
            resource_id=resource_id or new_id("led"),
            quantity=1,
            allowance=-taken.allowance,
            packs=-taken.packs,
            unpaid=0,
            note=note,
            at_ms=self._clock.now_ms(),
        )
        await ledger.add(tx, entry)

    async def _record_granted(self, tx: Tx, state: State) -> None:
        if state.granted:
            month = str(state.period_started_ms)
            await self.record(tx, state.account_id, GRANTED, Debit(-state.granted, 0), month)

    def _changed(self, tx: Tx, state: State) -> State:
        for told in self.on_change:
            tx.on_commit(told)
        return state

    def log_exhausted(self, tx: Tx, state: State) -> None:
        """Says, after the commit, that an account's last credit is spent."""
        grace_ends_ms = self.grace_ends_ms(state)
        told = partial(
            log.info,
            "billing_credits_exhausted",
            account_id=state.account_id,
            grace_ends_ms=grace_ends_ms,
        )
        tx.on_commit(told)


def _checked(note: str) -> str:
    """Raises `ValidationFailed`."""
    if len(note) > NOTE_LENGTH or not note.isprintable():
        raise ValidationFailed(
            "at most {limit} characters on one line", field="note", limit=NOTE_LENGTH
        )
    return note
