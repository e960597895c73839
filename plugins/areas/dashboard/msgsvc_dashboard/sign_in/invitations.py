"""Accepting an invitation: a signed-in user joins, and a user without an account gets one."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.projects.service import Projects
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.models import OneTimeLink, Refused
from msgsvc_dashboard.accounts.password_changes import PasswordChanges
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.accounts.team import Team
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.sign_in.entering import see_other
from msgsvc_dashboard.sign_in.tools import PageTools


class InvitationPages:
    """The links of the purpose `invitation`."""

    def __init__(
        self,
        *,
        db: Database,
        projects: Projects,
        accounts: Accounts,
        audit: Audit,
        sign_in: SignIn,
        passwords: PasswordChanges,
        team: Team,
        tools: PageTools,
    ) -> None:
        self._db = db
        self._projects = projects
        self._accounts = accounts
        self._audit = audit
        self._sign_in = sign_in
        self._passwords = passwords
        self._team = team
        self._gate = tools.gate
        self._cookies = tools.cookies
        self._rendering = tools.rendering
        self._entering = tools.entering

    async def show(
        self, request: Request, link: OneTimeLink, status: int, shown: Mapping[str, Any]
    ) -> Response:
        """Who is invited to what; `shown` is what the page of every link has."""
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

    async def join(
        self, request: Request, link: OneTimeLink, token: str, form: PostedForm
    ) -> Response:
        """Makes who is signed in a member; or makes an account, where the email has none."""
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
        hashed = await self._passwords.hashed(form.text("password"), invited.email)
        browser = self._cookies.browser(request)
        async with self._db.transaction() as tx:
            account = await self._accounts.create(
                tx, email=invited.email, name=form.text("name") or invited.name
            )
            await self._passwords.set_password(tx, account.account_id, hashed)
            await self._team.join(tx, token, account)
            await self._note(request, tx, invited.project_id, account.account_id)
            outcome = await self._sign_in.enter(tx, account, browser, "link")
        if isinstance(outcome, Refused):
            raise NotFound("this account can't sign in")
        return await self._entering.go_on(request, outcome, form, "")

    async def _note(self, request: Request, tx: Tx, project_id: str, account_id: str) -> None:
        ip = request.client.host if request.client else ""
        await self._audit.write(
            tx,
            "team.joined",
            project_id=project_id,
            account_id=account_id,
            ip=ip,
        )
