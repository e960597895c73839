"""A project owner's pages: balance, usage, and the ledger."""

from datetime import date, datetime, time

from msgsvc_billing.dashboard.area import operations, pages
from msgsvc_billing.dashboard.chart import DAYS, chart_of
from msgsvc_billing.models import LedgerFilter
from msgsvc_billing.service import Billing
from msgsvc_billing.statements import Statements
from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import after_cursor, next_cursor
from msgsvc_core.dashboard import Download, Nav, PageContext, Redirect, Render
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import NotFound, ValidationFailed

#: Lines of one page.
LIMIT = 50


@pages.get(
    "/billing", access="project:own", nav=Nav("Billing", icon="card", group="project", order=60)
)
async def credits_left(page: PageContext, billing: Billing, statements: Statements) -> Render:
    state = await billing.paying_for(page.tx, page.project_id)
    if state is None:
        return Render("unbilled.html")
    only = _only(page, state.account_id)
    used = await statements.used_of_days(page.tx, state.account_id, only, DAYS)
    return Render(
        "credits.html",
        {
            "state": state,
            "standing": billing.standing(state),
            "grace_ends_ms": billing.grace_ends_ms(state),
            "unlimited": billing.is_unlimited(state.plan),
            "terms": billing.settings.terms(state.plan),
            "chart": chart_of(used, statements.today),
            "used": await statements.used_this_month(page.tx, state, only),
            "operations": operations(page._),
            "is_whole": only is None,
        },
    )


@pages.get("/billing/ledger", access="project:own")
async def ledger_lines(page: PageContext, statements: Statements) -> Render:
    problem, wanted = None, None
    try:
        wanted = await _wanted(page, page.tx, statements)
    except ValidationFailed as error:
        problem = error
    lines = []
    if wanted is not None:
        after = after_cursor(page.query.get("cursor") or None)
        lines = await statements.page(page.tx, wanted, after, LIMIT + 1)
    following = ""
    if len(lines) > LIMIT:
        asked = {"operation": page.query.get("operation"), "since": page.query.get("since")}
        cursor = next_cursor(lines[LIMIT - 1].entry_id)
        following = page.url("/billing/ledger", cursor=cursor, **asked)
    return Render(
        "ledger.html",
        {
            "lines": lines[:LIMIT],
            "following": following,
            "operations": operations(page._),
            "problem": problem,
            "may_export": page.plan is None or page.plan.csv_export,
        },
    )


@pages.get("/billing/ledger/export", access="project:own", holds_connection=False)
async def export_ledger(
    page: PageContext, db: Database, clock: Clock, statements: Statements, exports: Exports
) -> Download | Redirect:
    if page.plan is not None and not page.plan.csv_export:
        said = page._("Your plan has no CSV export; a larger plan does.")
        return Redirect(page.url("/billing/ledger"), notice=said)
    async with db.read() as tx:
        wanted = await _wanted(page, tx, statements)
    if wanted is None:
        raise NotFound("nobody pays for this project, so there is no ledger")
    day = to_rfc3339(clock.now_ms()).partition("T")[0]
    stream = exports.start(page.project_id, statements.csv(wanted))
    return Download(stream, f"credits-{day}.csv")


async def _wanted(page: PageContext, tx: Tx, statements: Statements) -> LedgerFilter | None:
    """None where nobody pays. Raises `ValidationFailed` for what is no day."""
    account_id = await statements.payer_of(tx, page.project_id)
    if account_id is None:
        return None
    operation, since = page.query.get("operation") or None, page.query.get("since")
    since_ms = None
    if since:
        try:
            begun = datetime.combine(date.fromisoformat(since), time(), page.timezone)
            since_ms = int(begun.timestamp() * 1000)
        except (ValueError, OverflowError):
            raise ValidationFailed(page._("Since: enter a date, e.g. 2026-01-31")) from None
    return LedgerFilter(account_id, _only(page, account_id), operation, since_ms)


def _only(page: PageContext, account_id: str) -> str | None:
    """The paying owner sees all their projects, another owner only this one."""
    return None if page.viewer.account_id == account_id else page.project_id
