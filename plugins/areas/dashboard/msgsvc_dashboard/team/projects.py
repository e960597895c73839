"""The projects of the signed-in user."""

from msgsvc_core.billing import BillingGate
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.sign_in.lockout import has_no_way_back
from msgsvc_dashboard.team.declared import ACCOUNT
from msgsvc_dashboard.team.labels import roles


@ACCOUNT.get(
    "/projects", access="account:self", nav=Nav("Projects", icon="list", group="overview", order=1)
)
async def projects(
    page: PageContext,
    all_accounts: Accounts,
    billing: BillingGate,
    messenger_sign_in: MessengerSignIn,
) -> Render:
    accounts, account_id = all_accounts, page.viewer.account_id
    return Render(
        "projects.html",
        {
            "projects": await accounts.projects_of(page.tx, account_id),
            "plan": await billing.plan_of_account(page.tx, account_id),
            "roles": roles(page),
            "no_way_back": await has_no_way_back(page, messenger_sign_in),
        },
    )


@ACCOUNT.post(
    "/projects", access="account:self", form_page=projects, title=lambda _: _("Project created")
)
async def create(page: PageContext, accounts: Accounts) -> Redirect:
    name = " ".join(page.form.text("name").split())
    made = await accounts.create_project(page.tx, page.viewer, name)
    page.note(project_id=made.project_id)
    return Redirect(f"{page.root}/projects/{made.project_id}", page._("Project created."))
