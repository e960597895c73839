"""Accounts' credits, and entries of their ledgers."""

from typing import Literal

from msgsvc_core.kernel.values import value_object

Standing = Literal["ok", "grace", "blocked"]

#: What a ledger says beside operations that were paid for.
GRANTED, EXPIRED = "allowance.granted", "allowance.expired"
PLAN_CHANGED = "plan.changed"
PACK_GRANTED, PACK_WITHDRAWN = "pack.granted", "pack.withdrawn"


@value_object
class State:
    """An account's credits. `granted` and `used` are of this month's allowance; packs do not expire."""

    account_id: str
    plan: str
    #: When its months began to count.
    anchor_ms: int
    period_started_ms: int
    period_ends_ms: int
    granted: int
    used: int
    packs: int
    #: When the last credit was spent; None while there is one, and for plans without a limit.
    exhausted_at_ms: int | None

    @property
    def allowance(self) -> int:
        """Credits of this month that are left. More may be used than a smaller plan has."""
        return max(0, self.granted - self.used)

    @property
    def balance(self) -> int:
        return self.allowance + self.packs


@value_object
class Payer:
    """The account that pays for a project; `state` is None before its first charge."""

    account_id: str
    #: From when its months are counted, in Unix milliseconds.
    anchor_ms: int
    state: State | None


@value_object
class Debit:
    """What one change took from the allowance and from packs; a negative amount was added."""

    allowance: int
    packs: int


@value_object
class Entry:
    """A line of a ledger. `unpaid` is the part of the price without credit."""

    account_id: str
    entry_id: str
    project_id: str | None
    operation: str
    resource_id: str
    quantity: int
    allowance: int
    packs: int
    unpaid: int
    note: str
    at_ms: int

    @property
    def amount(self) -> int:
        """What it did to the balance."""
        return self.allowance + self.packs


@value_object
class Usage:
    """The usage of an operation on a day, or in several days, and its cost.

    `day` is the number of days since 1970, in UTC.
    """

    day: int
    operation: str
    quantity: int
    credits: int


@value_object
class LedgerFilter:
    """Filters of a ledger; None means any."""

    account_id: str
    #: Only this project's lines.
    project_id: str | None = None
    operation: str | None = None
    since_ms: int | None = None


@value_object
class Customer:
    """An account and its balance, for the operator."""

    account_id: str
    email: str
    name: str
    created_at_ms: int
    state: State
