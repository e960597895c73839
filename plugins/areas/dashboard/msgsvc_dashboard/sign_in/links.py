"""GET and POST /dashboard/link/{token}: GET shows a button, and its POST uses the link."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.models import OneTimeLink, Refused
from msgsvc_dashboard.accounts.password_changes import PasswordChanges
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.frame.refusals import worded
from msgsvc_dashboard.sign_in.invitations import InvitationPages
from msgsvc_dashboard.sign_in.tools import PageTools


class LinkPages:
    """The pages of each purpose: those that give access to an account are here, invitations in their own
    module."""

    def __init__(
        self,
        *,
        db: Database,
        accounts: Accounts,
        account_links: AccountLinks,
        sign_in: SignIn,
        passwords: PasswordChanges,
        invitations: InvitationPages,
        tools: PageTools,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._account_links = account_links
        self._sign_in = sign_in
        self._passwords = passwords
        self._invitations = invitations
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
                return await self._invitations.join(request, link, token, form)
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
        shown: dict[str, Any] = {
            "error": worded(error, self._rendering.translate(request)) if error else "",
            "typed": form or PostedForm(),
        }
        status = error.status if error else 200
        if link.purpose == "invitation":
            return await self._invitations.show(request, link, status, shown)
        assert link.account_id is not None
        async with self._db.read() as tx:
            account = await self._accounts.find(tx, link.account_id)
        template = "password_link.html" if link.purpose == "password" else "sign_in_link.html"
        return self._rendering.page(request, template, status, account=account, **shown)

    async def _open(
        self, request: Request, link: OneTimeLink, token: str, form: PostedForm
    ) -> Response:
        """Signs in, by a link for that, or with a new password."""
        assert link.account_id is not None
        async with self._db.read() as tx:
            account = await self._accounts.find(tx, link.account_id)
        hashed = None
        if link.purpose == "password":
            hashed = await self._passwords.hashed(form.text("password"), account.email)
        browser = self._cookies.browser(request)
        async with self._db.transaction() as tx:
            await self._account_links.use(tx, token)
            if hashed is not None:
                # Once more: who was in may have made another way in since the link was made.
                await self._passwords.reset(tx, account.account_id)
                await self._passwords.set_password(tx, account.account_id, hashed)
            outcome = await self._sign_in.enter(tx, account, browser, "link")
        if isinstance(outcome, Refused):
            raise NotFound("this account can't sign in")
        return await self._entering.go_on(request, outcome, form, "")
