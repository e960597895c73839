"""/v1/billing."""

from msgsvc_billing.answers import (
    BillingAnswer,
    LedgerEntryAnswer,
    LedgerEntryList,
    LedgerQuery,
    UsageByDayAnswer,
    UsageDayAnswer,
    UsageQuery,
    billed,
    unbilled,
)
from msgsvc_billing.models import LedgerFilter
from msgsvc_billing.service import Billing
from msgsvc_billing.statements import Statements
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.errors import BadRequest

router = Router(
    area="billing",
    description="The plan, its limits, and what was charged.",
    group="project",
    owners_only=True,
)


@router.get("/v1/billing")
async def get_billing(ctx: Context, billing: Billing, statements: Statements) -> BillingAnswer:
    """Shows the plan, the remaining credits, and whether paid operations are allowed."""
    state = await billing.paying_for(ctx.tx, ctx.project_id)
    if state is None:
        return unbilled()
    return billed(
        state,
        billing.standing(state),
        await statements.used_this_month(ctx.tx, state, ctx.project_id),
        unlimited=billing.is_unlimited(state.plan),
        grace_ends_ms=billing.grace_ends_ms(state),
    )


@router.get("/v1/billing/ledger", errors=(BadRequest,))
async def list_ledger(ctx: Context, query: LedgerQuery, statements: Statements) -> LedgerEntryList:
    """Lists the charges of this project, newest first, one entry per operation."""
    account_id = await statements.payer_of(ctx.tx, ctx.project_id)
    if account_id is None:
        return LedgerEntryList(data=[], next_cursor=None)
    wanted = LedgerFilter(account_id, ctx.project_id, query.operation)
    found = await statements.page(ctx.tx, wanted, query.begin("led"), query.fetch_limit)
    page, following = query.cut(
        found, lambda entry: entry.entry_id, created_ms=lambda entry: entry.at_ms
    )
    return LedgerEntryList(
        data=[LedgerEntryAnswer.of(entry) for entry in page], next_cursor=following
    )


@router.get("/v1/billing/usage")
async def get_usage(ctx: Context, query: UsageQuery, statements: Statements) -> UsageByDayAnswer:
    """Shows the project's usage, by day and operation."""
    account_id = await statements.payer_of(ctx.tx, ctx.project_id)
    if account_id is None:
        return UsageByDayAnswer(days=[])
    found = await statements.used_between(
        ctx.tx, account_id, ctx.project_id, query.created_after, query.created_before
    )
    return UsageByDayAnswer(days=[UsageDayAnswer.of(usage) for usage in found])
