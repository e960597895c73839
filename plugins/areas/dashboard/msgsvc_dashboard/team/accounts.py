"""For operators: all accounts and projects."""

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.errors import Conflict
from msgsvc_dashboard.accounts import Account
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.models import LinkPurpose
from msgsvc_dashboard.accounts.password_changes import PasswordChanges
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.team.declared import OPERATOR

ACCOUNTS = "/operator/accounts"


@OPERATOR.get(
    "/accounts",
    access="installation:operate",
    nav=Nav("Accounts", icon="account", group="overview", order=10),
)
async def accounts(page: PageContext, all_accounts: Accounts) -> Render:
    """Newest first, or those whose email begins so."""
    query, search = _query(page), page.query.get("query", "")
    found = await all_accounts.page(page.tx, query.after, query.fetch_limit, search.strip().lower())
    listed, cursor = query.cut(found, lambda account: account.account_id)
    older = page.url(ACCOUNTS, query=search, cursor=cursor) if cursor else ""
    return Render("accounts.html", {"accounts": listed, "search": search, "older": older})


@OPERATOR.post(
    "/accounts",
    access="installation:operate",
    form_page=accounts,
    title=lambda _: _("Account created"),
)
async def create(page: PageContext, all_accounts: Accounts, account_links: AccountLinks) -> Render:
    """The link is shown only once."""
    form = page.form
    account = await all_accounts.create(
        page.tx,
        email=form.text("email"),
        name=form.text("name"),
        is_operator=form.checked("is_operator"),
    )
    page.note(created=account.account_id)
    return await _link(page, account_links, account, "password")


@OPERATOR.post(
    "/accounts/{account_id}/link",
    access="installation:operate",
    title=lambda _: _("Account link created"),
)
async def make_link(
    page: PageContext,
    all_accounts: Accounts,
    passwords: PasswordChanges,
    account_links: AccountLinks,
) -> Render:
    """A link for a user who can't sign in."""
    account = await all_accounts.find(page.tx, page.params["account_id"])
    wanted: LinkPurpose = "sign_in" if page.form.text("purpose") == "sign_in" else "password"
    page.note(purpose=wanted)
    if wanted == "password":
        await passwords.reset(page.tx, account.account_id)
    return await _link(page, account_links, account, wanted)


@OPERATOR.post(
    "/accounts/{account_id}/disable",
    access="installation:operate",
    form_page=accounts,
    title=lambda _: _("Account disabled"),
)
async def disable(page: PageContext, all_accounts: Accounts) -> Redirect:
    account_id = _somebody_else(page)
    await all_accounts.set_active(page.tx, account_id, active=False)
    return Redirect(page.url(ACCOUNTS), page._("Disabled: signed out everywhere."))


@OPERATOR.post(
    "/accounts/{account_id}/enable",
    access="installation:operate",
    form_page=accounts,
    title=lambda _: _("Account enabled"),
)
async def enable(page: PageContext, all_accounts: Accounts) -> Redirect:
    await all_accounts.set_active(page.tx, page.params["account_id"], active=True)
    return Redirect(page.url(ACCOUNTS), page._("Enabled."))


@OPERATOR.post(
    "/accounts/{account_id}/operator",
    access="installation:operate",
    form_page=accounts,
    title=lambda _: _("Operator rights changed"),
)
async def set_operator(page: PageContext, all_accounts: Accounts) -> Redirect:
    """Grants or revokes the operator role."""
    account_id = _somebody_else(page)
    wanted = page.form.text("wanted") == "yes"
    await all_accounts.change(page.tx, account_id, is_operator=wanted)
    page.note(wanted=wanted)
    return Redirect(page.url(ACCOUNTS), page._("Saved."))


@OPERATOR.get(
    "/projects",
    access="installation:operate",
    nav=Nav("All projects", icon="database", group="overview", order=20),
)
async def projects(page: PageContext, all_accounts: Accounts) -> Render:
    """Newest first, or those whose name or id begins so."""
    query, search = _query(page), page.query.get("query", "")
    found = await all_accounts.all_projects(page.tx, query.after, query.fetch_limit, search.strip())
    listed, cursor = query.cut(found, lambda each: each[0].project_id)
    older = page.url("/operator/projects", query=search, cursor=cursor) if cursor else ""
    return Render("all_projects.html", {"projects": listed, "search": search, "older": older})


def _somebody_else(page: PageContext) -> str:
    """Nobody shuts themselves out."""
    account_id = page.params["account_id"]
    if account_id == page.viewer.account_id:
        raise Conflict(page._("That is you. Ask another operator."))
    return account_id


async def _link(
    page: PageContext, account_links: AccountLinks, account: Account, purpose: LinkPurpose
) -> Render:
    token = await account_links.for_account(page.tx, account.account_id, purpose)
    values = {"account": account, "link": account_links.url(token), "purpose": purpose}
    return Render("account_link.html", values)


def _query(page: PageContext) -> PageQuery:
    given = {"cursor": page.query["cursor"]} if page.query.get("cursor") else {}
    return validate(PageQuery, given, whole="query")
