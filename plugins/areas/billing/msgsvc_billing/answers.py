"""Responses about an account's credits, for the projects it pays for."""

from datetime import UTC, datetime

from pydantic import Field

from msgsvc_billing.models import Entry, Standing, State, Usage
from msgsvc_core.api.endpoint import Query, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import MomentMs
from msgsvc_core.kernel.clock import DAY_MS, to_rfc3339


class PeriodAnswer(ResponseModel):
    """A billing month, which starts on the day of the month on which the account was created."""

    started_at: str
    ends_at: str


class UsageAnswer(ResponseModel):
    """What was done of an operation and what it cost. Of what has no price there is none."""

    operation: str
    quantity: int
    credits: int


class BillingAnswer(ResponseModel):
    """How the account that pays for the project stands.

    All but `status` is null where nobody pays: such a project is never charged or blocked. `allowance` is
    what the plan gives each month, null for a plan without a limit; `balance` is what is left of it and
    of packs. `usage` is this project's, since the day on which the account's month began.
    """

    plan: str | None
    period: PeriodAnswer | None
    allowance: int | None
    used: int | None
    allowance_left: int | None
    packs: int | None
    balance: int | None
    status: Standing = Field(
        description="`grace` after the last credit: paid operations go on until `grace_ends_at`;"
        " `blocked` after that, when they are answered 402."
    )
    grace_ends_at: str | None
    usage: list[UsageAnswer]


class EntryAnswer(ResponseModel):
    """A line of the ledger. `amount` is what it did to the balance, of which `allowance` and `packs` are
    parts; `unpaid` is what there was no credit for."""

    entry_id: str
    operation: str
    resource_id: str
    quantity: int
    amount: int
    allowance: int
    packs: int
    unpaid: int
    created_at: str

    @classmethod
    def of(cls, entry: Entry) -> "EntryAnswer":
        return cls(
            entry_id=entry.entry_id,
            operation=entry.operation,
            resource_id=entry.resource_id,
            quantity=entry.quantity,
            amount=entry.amount,
            allowance=entry.allowance,
            packs=entry.packs,
            unpaid=entry.unpaid,
            created_at=to_rfc3339(entry.at_ms),
        )


class LedgerAnswer(ResponseModel):
    """A page of the ledger, newest first."""

    data: list[EntryAnswer]
    next_cursor: str | None


class LedgerQuery(PageQuery):
    """Which lines of the ledger."""

    operation: str | None = Field(None, max_length=64, description="E.g. `auth.confirmed`.")
    since: MomentMs | None = Field(None, description="Only entries at or after this time.")


class UsageQuery(Query):
    """How far back."""

    days: int = Field(30, ge=1, le=366, description="Days, of which the last is today, in UTC.")


class DayAnswer(ResponseModel):
    """What was done on a day of an operation."""

    day: str = Field(description="`2026-01-15`, in UTC.")
    operation: str
    quantity: int
    credits: int

    @classmethod
    def of(cls, usage: Usage) -> "DayAnswer":
        return cls(
            day=day_text(usage.day),
            operation=usage.operation,
            quantity=usage.quantity,
            credits=usage.credits,
        )


class DaysAnswer(ResponseModel):
    """The oldest day first; days on which nothing was paid for are left out."""

    data: list[DayAnswer]


def day_text(day: int) -> str:
    """The date of a day's number: `2026-01-15`."""
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).strftime("%Y-%m-%d")


def unbilled() -> BillingAnswer:
    """For a project without an account that pays."""
    return BillingAnswer(
        plan=None,
        period=None,
        allowance=None,
        used=None,
        allowance_left=None,
        packs=None,
        balance=None,
        status="ok",
        grace_ends_at=None,
        usage=[],
    )


def billed(
    state: State,
    status: Standing,
    usage: list[Usage],
    *,
    unlimited: bool,
    grace_ends_ms: int | None,
) -> BillingAnswer:
    """For a project whose account pays."""
    return BillingAnswer(
        plan=state.plan,
        period=PeriodAnswer(
            started_at=to_rfc3339(state.period_started_ms), ends_at=to_rfc3339(state.period_ends_ms)
        ),
        allowance=None if unlimited else state.granted,
        used=state.used,
        allowance_left=None if unlimited else state.allowance,
        packs=state.packs,
        balance=None if unlimited else state.balance,
        status=status,
        grace_ends_at=None if grace_ends_ms is None else to_rfc3339(grace_ends_ms),
        usage=[
            UsageAnswer(operation=one.operation, quantity=one.quantity, credits=one.credits)
            for one in usage
        ],
    )
