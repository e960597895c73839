"""The operator's pages: accounts, their balances, and grants."""

from msgsvc_billing.dashboard.area import operations, pages
from msgsvc_billing.models import LedgerFilter
from msgsvc_billing.service import MOST_CREDITS, NOTE_LENGTH, Billing
from msgsvc_billing.statements import Statements
from msgsvc_core.api.pagination import after_cursor, next_cursor
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.plugins.accounts import AccountDirectory

#: Accounts, or lines, of one page.
LIMIT = 50


@pages.get(
    "/billing", access="installation:operate", nav=Nav("Billing", icon="card", group="project")
)
async def accounts(page: PageContext, billing: Billing) -> Render:
    search = page.query.get("email") or ""
    after = after_cursor(page.query.get("cursor") or None)
    found = await billing.customers(page.tx, search, after, LIMIT + 1)
    following = ""
    if len(found) > LIMIT:
        cursor = next_cursor(found[LIMIT - 1].account_id)
        following = page.url("/operator/billing", email=search, cursor=cursor)
    shown = [(each, billing.standing(each.state)) for each in found[:LIMIT]]
    unlimited = {name for name in billing.settings.plans if billing.is_unlimited(name)}
    return Render(
        "accounts.html",
        {"accounts": shown, "search": search, "following": following, "unlimited": unlimited},
    )


@pages.get("/billing/{account_id}", access="installation:operate")
async def account(
    page: PageContext, all_accounts: AccountDirectory, billing: Billing, statements: Statements
) -> Render:
    account_id = page.params["account_id"]
    who = await all_accounts.find(page.tx, account_id)
    state = await billing.state_of(page.tx, account_id)
    after = after_cursor(page.query.get("cursor") or None)
    lines = await statements.page(page.tx, LedgerFilter(account_id), after, LIMIT + 1)
    following = ""
    if len(lines) > LIMIT:
        following = f"{_url(page)}?cursor={next_cursor(lines[LIMIT - 1].entry_id)}"
    return Render(
        "account.html",
        {
            "who": who,
            "url": _url(page),
            "state": state,
            "standing": billing.standing(state),
            "grace_ends_ms": billing.grace_ends_ms(state),
            "unlimited": billing.is_unlimited(state.plan),
            "plans": [
                (name, _described(page, name, billing.settings.terms(name).monthly_credits))
                for name in billing.settings.plans
            ],
            "lines": lines[:LIMIT],
            "following": following,
            "operations": operations(page._),
            "most": MOST_CREDITS,
            "note_length": NOTE_LENGTH,
        },
    )


@pages.post(
    "/billing/{account_id}/grant",
    access="installation:operate",
    form_page=account,
    title=lambda _: _("Credits added"),
)
async def grant(page: PageContext, billing: Billing) -> Redirect:
    given = page.form.text("credits").strip()
    try:
        count = int(given)
    except ValueError:
        raise ValidationFailed("must be a whole number", field="credits") from None
    account_id = page.params["account_id"]
    await billing.grant(page.tx, account_id, count, page.form.text("note").strip())
    page.note(account=account_id, credits=count)
    return Redirect(_url(page), notice=page._("Credits added."))


@pages.post(
    "/billing/{account_id}/plan",
    access="installation:operate",
    form_page=account,
    title=lambda _: _("Plan changed"),
)
async def change_plan(page: PageContext, billing: Billing) -> Redirect:
    account_id, plan = page.params["account_id"], page.form.text("plan")
    await billing.change_plan(page.tx, account_id, plan)
    page.note(account=account_id, plan=plan)
    return Redirect(_url(page), notice=page._("Plan changed."))


def _url(page: PageContext) -> str:
    return f"{page.root}/operator/billing/{page.params['account_id']}"


def _described(page: PageContext, name: str, monthly: int | None) -> str:
    """`basic: 700 credits a month`."""
    if monthly is None:
        return page._("{plan}: unlimited", plan=name)
    credits_text = page._.ngettext("{count} credit per month", "{count} credits per month", monthly)
    return f"{name}: {credits_text}"
