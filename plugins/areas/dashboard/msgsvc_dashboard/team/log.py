"""The audit log of a project, and that of the user's own changes."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import MomentMs
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import ListWalk, Nav, PageContext, Render
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.models import NO_ACCOUNT, AuditEntry, AuditFilters
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.team import Team
from msgsvc_dashboard.people.filters import read_filters
from msgsvc_dashboard.team.actions import ActionTitles
from msgsvc_dashboard.team.declared import ACCOUNT, TEAM
from msgsvc_dashboard.team.subjects import AuditSubjects

#: Filters of a project's audit log.
FILTERS = ("about", "account_id", "created_after")


class AuditQuery(PageQuery):
    """Filters and paging. `about` is an area; an unknown one finds what all do."""

    about: str | None = None
    account_id: str | None = None
    created_after: MomentMs | None = None


@TEAM.get(
    "/audit", access="project:write", nav=Nav("Audit log", icon="log", group="project", order=90)
)
async def audit(
    page: PageContext,
    all_audit: Audit,
    team: Team,
    accounts: Accounts,
    projects: Projects,
    subjects: AuditSubjects,
    titles_of_actions: ActionTitles,
) -> Render:
    """Changes of this project, with their authors."""
    query, refused = read_filters(page, AuditQuery, *FILTERS)
    walk = ListWalk(page, "/audit", FILTERS)
    filters = AuditFilters(query.account_id, subjects.actions_of(query.about), query.created_after)
    found = await all_audit.of_project(
        page.tx,
        page.project_id,
        filters,
        after=query.after,
        most=query.fetch_limit,
        ascending=walk.ascending,
    )
    people = {
        account.account_id: account.name
        for account in (await team.accounts_of(page.tx, page.project_id)).values()
    }
    owner_id = await projects.owner_of(page.tx, page.project_id)
    if owner_id is not None:
        people[owner_id] = (await accounts.find(page.tx, owner_id)).name
    entries = walk.cut(found, query.limit, lambda entry: entry.entry_id)
    given = {name: page.query.get(name, "") for name in FILTERS}
    return Render(
        "audit.html",
        {
            "entries": _shown(page, entries, titles_of_actions, subjects),
            "refused": refused,
            "walk": walk,
            "given": given,
            "is_filtered": any(given.values()),
            "areas": [("", page._("All")), *subjects.areas(page._).items()],
            "people": [
                ("", page._("Everyone")),
                *sorted(people.items(), key=lambda each: each[1]),
                (NO_ACCOUNT, page._("API keys and command line")),
            ],
        },
    )


@ACCOUNT.get("/log", access="account:self")
async def own(page: PageContext, all_audit: Audit, titles_of_actions: ActionTitles) -> Render:
    """The user's own changes everywhere, and failed attempts to sign in to the account."""
    query = _query(page)
    found = await all_audit.of_account(
        page.tx, page.viewer.account_id, after=query.after, most=query.fetch_limit
    )
    entries, cursor = query.cut(found, lambda entry: entry.entry_id)
    older = page.url("/account/log", cursor=cursor) if cursor else ""
    return Render(
        "own_log.html", {"entries": _shown(page, entries, titles_of_actions), "older": older}
    )


def _query(page: PageContext) -> PageQuery:
    given = {"cursor": page.query["cursor"]} if page.query.get("cursor") else {}
    return validate(PageQuery, given, whole="query")


def _shown(
    page: PageContext,
    entries: Sequence[AuditEntry],
    titles_of_actions: ActionTitles,
    subjects: AuditSubjects | None = None,
) -> list[tuple[AuditEntry, str, str, str]]:
    """Each with what was done, what it noted, and the address of what it was about."""
    return [
        (
            entry,
            titles_of_actions.title(page._, entry.action),
            _detail(entry),
            subjects.url(page, entry) if subjects is not None else "",
        )
        for entry in entries
    ]


def _detail(entry: AuditEntry) -> str:
    """The ids and names that the change noted, in one line. Who it was by has a column, but where that
    shows an account."""
    shown = {name for name in entry.detail if entry.account_id or name not in {"by", "key"}}
    return ", ".join(f"{name}: {value}" for name, value in entry.detail.items() if name in shown)
