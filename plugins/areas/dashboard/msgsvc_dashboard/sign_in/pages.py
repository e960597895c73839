"""GET and POST /dashboard/sign-in and its steps, /dashboard/sign-out, and the redirect of /dashboard."""

from collections.abc import Awaitable, Callable
from functools import partial, update_wrapper
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_core.api.envelope import api_error
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database
from msgsvc_core.pages import static_files
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.models import Refused, TooMany
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.frame.addresses import ROOT, root_of
from msgsvc_dashboard.frame.refusals import worded
from msgsvc_dashboard.sign_in.cookies import TICKET
from msgsvc_dashboard.sign_in.entering import see_other, wanted
from msgsvc_dashboard.sign_in.links import LinkPages
from msgsvc_dashboard.sign_in.messengers import MessengerPages
from msgsvc_dashboard.sign_in.tools import PageTools

STATIC = Path(__file__).parent / "static"

Handler = Callable[[Request], Awaitable[Response]]


class SignInPages:
    """The routes, and the pages of password and code."""

    def __init__(
        self,
        *,
        db: Database,
        channels: Channels,
        accounts: Accounts,
        sign_in: SignIn,
        messenger_sign_in: MessengerSignIn,
        tools: PageTools,
        messengers: MessengerPages,
        links: LinkPages,
    ) -> None:
        self._db = db
        self._channels = channels
        self._accounts = accounts
        self._sign_in = sign_in
        self._messenger_sign_in = messenger_sign_in
        self._gate = tools.gate
        self._cookies = tools.cookies
        self._forms = tools.forms
        self._rendering = tools.rendering
        self._entering = tools.entering
        self._messengers = messengers
        self._links = links

    def routes(self) -> list[BaseRoute]:
        return [
            Mount(f"{ROOT}/sign-in/_static", static_files(STATIC)),
            self._route("/sign-in", self.password, "GET", "POST"),
            self._route("/sign-in/code", self.code, "GET", "POST"),
            self._route("/sign-in/messenger", self._messengers.page, "GET", "POST"),
            self._route("/sign-in/messenger/status", self._messengers.status, "GET"),
            self._route("/link/{token}", self._links.page, "GET", "POST"),
            self._route("/sign-out", self.sign_out, "POST"),
            self._route("", self.begin, "GET"),
            self._route("/", self.begin, "GET"),
        ]

    def _route(self, path: str, handler: Handler, *methods: str) -> Route:
        # A name of its own, so that the log says which page it was, and not its token.
        shown = update_wrapper(partial(self._shown, ROOT + path, handler), handler)
        # `/` of the service leads to the route of this name.
        name = "home" if not path else None
        return Route(ROOT + path, shown, methods=[*methods], name=name)

    async def _shown(self, path: str, handler: Handler, request: Request) -> Response:
        request.scope["state"]["endpoint"] = path
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - shown as a page; `api_error` logs it
            refusal = api_error(error)
            _ = self._rendering.translate(request)
            title = _("Something went wrong")
            return self._rendering.told(request, title, worded(refusal, _), refusal.status)

    async def begin(self, request: Request) -> Response:
        """Redirects to the only project, or to the list of projects; requires sign-in."""
        session = await self._gate.session(request)
        root = root_of(request)
        if session is None:
            return see_other(f"{root}/sign-in")
        async with self._db.read() as tx:
            projects = await self._accounts.projects_of(tx, session.account.account_id)
        if len(projects) == 1:
            return see_other(f"{root}/projects/{projects[0].project_id}")
        return see_other(f"{root}/account/projects")

    async def password(self, request: Request) -> Response:
        """Email and password."""
        if request.method != "POST":
            to = wanted(request, request.query_params.get("next", ""))
            if await self._gate.session(request) is not None:
                return see_other(to or root_of(request))
            return self._ask(request, to)
        form = await self._forms.read(request)
        email, to = form.text("email"), form.text("next")
        outcome = await self._sign_in.by_password(
            email, form.text("password"), self._cookies.browser(request)
        )
        if isinstance(outcome, TooMany):
            return self._rendering.too_many(
                request, "password.html", outcome.retry_after_s, **self._values(to, email)
            )
        if isinstance(outcome, Refused):
            _ = self._rendering.translate(request)
            return self._ask(request, to, email, _("Wrong email or password."), status=403)
        return await self._entering.go_on(request, outcome, form, to)

    def _ask(
        self, request: Request, to: str, email: str = "", error: str = "", status: int = 200
    ) -> Response:
        values = self._values(to, email)
        return self._rendering.page(request, "password.html", status, error=error, **values)

    def _values(self, to: str, email: str) -> dict[str, object]:
        sign_in = self._messenger_sign_in
        by_messenger = sign_in.is_on and bool(self._channels.shared)
        return {"next": to, "email": email, "by_messenger": by_messenger}

    async def code(self, request: Request) -> Response:
        """The second factor's code."""
        ticket = self._cookies.read(request, TICKET)
        if not self._sign_in.is_waiting(ticket):
            return see_other(f"{root_of(request)}/sign-in")
        if request.method != "POST":
            to = wanted(request, request.query_params.get("next", ""))
            return self._rendering.page(request, "code.html", next=to)
        form = await self._forms.read(request)
        to = form.text("next")
        outcome = await self._sign_in.by_code(
            ticket, form.text("code"), self._cookies.browser(request)
        )
        if isinstance(outcome, TooMany):
            return self._rendering.too_many(request, "code.html", outcome.retry_after_s, next=to)
        if isinstance(outcome, Refused):
            _ = self._rendering.translate(request)
            error = _("The code is wrong or was already used.")
            return self._rendering.page(request, "code.html", 403, next=to, error=error)
        return await self._entering.go_on(request, outcome, form, to)

    async def sign_out(self, request: Request) -> Response:
        """Ends this browser's session."""
        response = see_other(f"{root_of(request)}/sign-in")
        session = await self._gate.session(request)
        if session is not None:
            account_id = session.account.account_id
            async with (
                self._gate.form(request, session),
                self._db.transaction() as tx,
            ):
                await self._accounts.end_session(tx, account_id, session.session_id)
        self._cookies.leave(response, request)
        return response
