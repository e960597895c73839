"""The audit log of a project, and that of the user's own changes."""

from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Render
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.models import AuditEntry
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.team import Team
from msgsvc_dashboard.team.actions import action_title
from msgsvc_dashboard.team.declared import ACCOUNT, TEAM


@TEAM.get(
    "/audit", access="project:write", nav=Nav("Audit log", icon="log", group="project", order=90)
)
async def audit(
    page: PageContext, all_audit: Audit, team: Team, accounts: Accounts, projects: Projects
) -> Render:
    """Changes of this project, with their authors."""
    query = _query(page)
    person = page.query.get("account_id") or None
    found = await all_audit.of_project(
        page.tx, page.project_id, account_id=person, after=query.after, most=query.fetch_limit
    )
    people = {
        account.account_id: account.name
        for account in (await team.accounts_of(page.tx, page.project_id)).values()
    }
    owner_id = await projects.owner_of(page.tx, page.project_id)
    if owner_id is not None:
        people[owner_id] = (await accounts.find(page.tx, owner_id)).name
    shown = _shown(page, query, found)
    cursor = shown.pop("cursor")
    older = page.url("/audit", account_id=person, cursor=cursor) if cursor else ""
    options = [("", page._("Everyone")), *sorted(people.items(), key=lambda each: each[1])]
    return Render("audit.html", {**shown, "older": older, "people": options, "person": person})


@ACCOUNT.get("/log", access="account:self")
async def own(page: PageContext, all_audit: Audit) -> Render:
    """The user's own changes everywhere, and failed attempts to sign in to the account."""
    query = _query(page)
    found = await all_audit.of_account(
        page.tx, page.viewer.account_id, after=query.after, most=query.fetch_limit
    )
    shown = _shown(page, query, found)
    cursor = shown.pop("cursor")
    older = page.url("/account/log", cursor=cursor) if cursor else ""
    return Render("own_log.html", {**shown, "older": older})


def _query(page: PageContext) -> PageQuery:
    given = {"cursor": page.query["cursor"]} if page.query.get("cursor") else {}
    return validate(PageQuery, given, whole="query")


def _shown(page: PageContext, query: PageQuery, found: list[AuditEntry]) -> dict[str, Any]:
    entries, cursor = query.cut(found, lambda entry: entry.entry_id)
    return {
        "entries": [
            (entry, action_title(page._, entry.action), _detail(entry)) for entry in entries
        ],
        "cursor": cursor,
    }


def _detail(entry: AuditEntry) -> str:
    """The ids and names that the change noted, in one line. Who it was by has a column, but where that
    shows an account."""
    shown = {name for name in entry.detail if entry.account_id or name not in {"by", "key"}}
    return ", ".join(f"{name}: {value}" for name, value in entry.detail.items() if name in shown)
