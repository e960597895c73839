"""GET and POST /dashboard/link/{token}: looking shows a button, and pressing it uses the link."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.models import OneTimeLink, Refused
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.accounts.team import Team
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.frame.refusals import worded
from msgsvc_dashboard.sign_in.entering import see_other
from msgsvc_dashboard.sign_in.tools import PageTools

if TYPE_CHECKING:
    from msgsvc_dashboard.accounts.models import CodeNeeded, SignedIn


class LinkPages:
    """By what a link is for."""

    def __init__(
        self,
        *,
        db: Database,
        projects: Projects,
        accounts: Accounts,
        account_links: AccountLinks,
        audit: Audit,
        sign_in: SignIn,
        team: Team,
        tools: PageTools,
    ) -> None:
        self._db = db
        self._projects = projects
        self._accounts = accounts
        self._account_links = account_links
        self._audit = audit
        self._sign_in = sign_in
        self._team = team
        self._gate = tools.gate
        self._cookies = tools.cookies
        self._forms = tools.forms
        self._rendering = tools.rendering
        self._entering = tools.entering

    async def page(self, request: Request) -> Response:
        token = request.path_params["token"]
        async with self._db.read() as tx:
            link = await self._account_links.find(tx, token)
        if request.method != "POST":
            return await self._show(request, link)
        form = await self._forms.read(request)
        try:
            if link.purpose == "invitation":
                return await self._join(request, link, token, form)
            return await self._open(request, link, token, form)
        except ApiError as error:
            # Not for a link that somebody else used meanwhile: there is no form to show again.
            if error.status >= 500 or isinstance(error, NotFound):
                raise
            return await self._show(request, link, form, error)

    async def _show(
        self,
        request: Request,
        link: OneTimeLink,
        form: PostedForm | None = None,
        error: ApiError | None = None,
    ) -> Response:
        form = form or PostedForm()
        shown = {
            "error": worded(error, self._rendering.translate(request)) if error else "",
            "typed": form,
        }
        status = error.status if error else 200
        if link.purpose != "invitation":
            assert link.account_id is not None
            async with self._db.read() as tx:
                account = await self._accounts.find(tx, link.account_id)
            template = "password_link.html" if link.purpose == "password" else "sign_in_link.html"
            return self._rendering.page(request, template, status, account=account, **shown)
        async with self._db.read() as tx:
            member, known = await self._team.invitation(tx, link)
            project = await self._projects.get(tx, member.project_id)
        session = await self._gate.session(request)
        return self._rendering.page(
            request,
            "invitation.html",
            status,
            member=member,
            project=project,
            account=session.account if session else None,
            known=known is not None,
            here=request.url.path,
            **shown,
        )

    async def _open(
        self, request: Request, link: OneTimeLink, token: str, form: PostedForm
    ) -> Response:
        """Signs in, by a link for that, or with a new password."""
        assert link.account_id is not None
        async with self._db.read() as tx:
            account = await self._accounts.find(tx, link.account_id)
        hashed = None
        if link.purpose == "password":
            hashed = await self._sign_in.hashed(form.text("password"), account.email)
        browser = self._cookies.browser(request)
        async with self._db.transaction() as tx:
            await self._account_links.use(tx, token)
            if hashed is not None:
                # Once more: who was in may have made another way in since the link was made.
                await self._sign_in.reset(tx, account.account_id)
                await self._sign_in.set_password(tx, account.account_id, hashed)
            outcome = await self._sign_in.enter(tx, account, browser, "link")
        return await self._go_on(request, outcome, form)

    async def _join(
        self, request: Request, link: OneTimeLink, token: str, form: PostedForm
    ) -> Response:
        """Makes who is signed in a member; or makes an account, where the e-mail has none."""
        session = await self._gate.session(request)
        if session is not None:
            async with self._db.transaction() as tx:
                member = await self._team.join(tx, token, session.account)
                await self._note(request, tx, member.project_id, session.account.account_id)
            return see_other(f"{root_of(request)}/projects/{member.project_id}")
        async with self._db.read() as tx:
            invited, known = await self._team.invitation(tx, link)
        if known is not None:
            # An invitation opens no account that is there: whoever invited has the link as well.
            return see_other(f"{root_of(request)}/sign-in?next={request.url.path}")
        hashed = await self._sign_in.hashed(form.text("password"), invited.email)
        browser = self._cookies.browser(request)
        async with self._db.transaction() as tx:
            account = await self._accounts.create(
                tx, email=invited.email, name=form.text("name") or invited.name
            )
            await self._sign_in.set_password(tx, account.account_id, hashed)
            await self._team.join(tx, token, account)
            await self._note(request, tx, invited.project_id, account.account_id)
            outcome = await self._sign_in.enter(tx, account, browser, "link")
        return await self._go_on(request, outcome, form)

    async def _note(self, request: Request, tx: Tx, project_id: str, account_id: str) -> None:
        ip = request.client.host if request.client else ""
        await self._audit.write(
            tx,
            "team.joined",
            project_id=project_id,
            account_id=account_id,
            ip=ip,
        )

    async def _go_on(
        self, request: Request, outcome: "SignedIn | CodeNeeded | Refused", form: PostedForm
    ) -> Response:
        if isinstance(outcome, Refused):
            raise NotFound("this account can't sign in")
        return await self._entering.go_on(request, outcome, form, "")
