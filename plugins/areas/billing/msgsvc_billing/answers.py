"""Responses about an account's credits, for the projects it pays for."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from msgsvc_billing.models import Entry, Standing, State, Usage
from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, MomentMs, Time
from msgsvc_core.kernel.clock import DAY_MS, to_rfc3339

Operation = Annotated[
    str,
    Field(
        description="What was done: `auth.confirmed`, `message.sent`, `broadcast.message`, `otp.send`,"
        " `ticket.reply`, `form.submission`, or an operation of another plugin.",
        examples=["message.sent"],
    ),
]
Quantity = Annotated[int, Field(description="How often it was done.", examples=[1200])]
Credits = Annotated[
    int, Field(description="What it cost, in credits; 0 for what has no price.", examples=[1200])
]


class BillingPeriodAnswer(ResponseModel):
    """A billing month, which starts on the day of the month on which the account was created."""

    started_at: Time = Field(description="When it began.", examples=["2026-02-10T00:00:00.000Z"])
    ends_at: Time = Field(
        description="When the next one begins.", examples=["2026-03-10T00:00:00.000Z"]
    )


class UsageAnswer(ResponseModel):
    """What was done of an operation and what it cost."""

    operation: Operation
    quantity: Quantity
    credits: Credits


class BillingAnswer(ResponseModel):
    """The account that pays for the project.

    All but `status` and `usage` is null where nobody pays: such a project is never charged or blocked.
    """

    plan: str | None = Field(description="Name of the account's plan.", examples=["start"])
    period: BillingPeriodAnswer | None = Field(description="The account's current month.")
    allowance: int | None = Field(
        description="Credits that the plan gives each month; null for a plan without a limit.",
        examples=[5000],
    )
    used: int | None = Field(
        description="Credits of this month's allowance that are spent, by all projects of the account.",
        examples=[1200],
    )
    allowance_left: int | None = Field(
        description="Credits of this month's allowance that are left; null for a plan without a limit.",
        examples=[3800],
    )
    packs: int | None = Field(
        description="Credits of packs that are left. They do not expire, and are spent after the allowance.",
        examples=[1000],
    )
    balance: int | None = Field(
        description="Credits that are left in all; null for a plan without a limit.",
        examples=[4800],
    )
    status: Standing = Field(
        description="`ok` while there are credits; `grace` after the last: paid operations go on until"
        " `grace_ends_at`; `blocked` after that, when they are answered 402."
    )
    grace_ends_at: Time | None = Field(
        description="Until when paid operations go on without credits; null while there are some.",
        examples=[None],
    )
    usage: list[UsageAnswer] = Field(
        description="What this project used since the day on which the account's month began, by"
        " operation; empty where nobody pays."
    )


class LedgerEntryAnswer(ResponseModel):
    """An entry of the ledger: a charge for one operation."""

    entry_id: str = Field(
        description="The entry's id, in the order of time.", examples=["led_032aJfP0EUccKdTd0oGtWm"]
    )
    operation: Operation
    resource_id: str = Field(
        description="What it was done with, as the id of the message; each is charged once.",
        examples=[examples.MESSAGE_ID],
    )
    quantity: int = Field(description="How many of it were charged at once.", examples=[1])
    amount: int = Field(
        description="Credits by which the balance changed: `allowance` and `packs` together. Negative for"
        " a charge, positive for a refund.",
        examples=[-1],
    )
    allowance: int = Field(description="Of these, credits of the month's allowance.", examples=[-1])
    packs: int = Field(description="Of these, credits of packs.", examples=[0])
    unpaid: int = Field(
        description="Credits of the price that there were not, in the grace period.", examples=[0]
    )
    created_at: CreatedAt = Field(description="When it was charged.", examples=[examples.TIME])

    @classmethod
    def of(cls, entry: Entry) -> "LedgerEntryAnswer":
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


class LedgerEntryList(ResponseModel):
    """A page of the ledger, newest first."""

    data: list[LedgerEntryAnswer] = Field(description="The entries of this page.")
    next_cursor: NextCursor


class LedgerQuery(PageQuery):
    """Which lines of the ledger."""

    operation: str | None = Field(
        None,
        max_length=64,
        description="Only entries of this operation.",
        examples=["auth.confirmed"],
    )


class UsageQuery(Query):
    """The days of the usage, in UTC: at most 366."""

    created_after: MomentMs | None = Field(
        None,
        description="Only this time's day and later ones; by default the last 30 days.",
        examples=["2026-02-01T00:00:00Z"],
    )
    created_before: MomentMs | None = Field(
        None,
        description="Only days that began before this time.",
        examples=["2026-03-01T00:00:00Z"],
    )


class UsageDayAnswer(ResponseModel):
    """What was done on a day of an operation."""

    day: str = Field(
        description="The day in UTC.",
        examples=["2026-03-01"],
        json_schema_extra={"format": "date"},
    )
    operation: Operation
    quantity: Quantity
    credits: Credits

    @classmethod
    def of(cls, usage: Usage) -> "UsageDayAnswer":
        return cls(
            day=day_text(usage.day),
            operation=usage.operation,
            quantity=usage.quantity,
            credits=usage.credits,
        )


class UsageByDayAnswer(ResponseModel):
    """The usage of a period, by day and operation."""

    days: list[UsageDayAnswer] = Field(
        description="The oldest day first, with an entry for each operation. Days without a charge are left"
        " out."
    )


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
        period=BillingPeriodAnswer(
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
