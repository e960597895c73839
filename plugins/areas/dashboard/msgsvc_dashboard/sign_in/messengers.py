"""Sign-in with a messenger: the link, the number, and the session once the number was picked."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from msgsvc_core.channels.failures import no_bot_ready
from msgsvc_core.dashboard import PostedForm
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import NotFound
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.models import Refused, TooMany
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.sign_in.cookies import WAITING
from msgsvc_dashboard.sign_in.entering import see_other, step, wanted
from msgsvc_dashboard.sign_in.rendering import HEADERS
from msgsvc_dashboard.sign_in.tools import PageTools

#: Seconds between two looks of a browser without scripts.
REFRESH_S = 5


class MessengerPages:
    """The browser stores two secrets: that of the link to the bot, and that by which it is signed in. A QR
    code reveals only the first."""

    def __init__(
        self,
        *,
        db: Database,
        accounts: Accounts,
        sign_in: SignIn,
        messenger_sign_in: MessengerSignIn,
        throttle: Throttle,
        tools: PageTools,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._sign_in = sign_in
        self._messenger_sign_in = messenger_sign_in
        self._throttle = throttle
        self._cookies = tools.cookies
        self._forms = tools.forms
        self._rendering = tools.rendering
        self._entering = tools.entering

    async def page(self, request: Request) -> Response:
        """Sign-in through a messenger. POST starts it; GET shows the links and the number to match, and signs
        in once the user has picked that number in the messenger."""
        if not self._messenger_sign_in.is_on:
            raise NotFound("there is no such page")
        if request.method == "POST":
            return await self._begin(request)
        to = wanted(request, request.query_params.get("next", ""))
        token, secret = self._kept(request)
        async with self._db.read() as tx:
            waiting = await self._messenger_sign_in.waiting(tx, secret)
        if waiting is None or waiting.purpose != "sign_in":
            return see_other(f"{root_of(request)}/sign-in")
        if waiting.status == "confirmed":
            return await self._enter(request, secret, to)
        if waiting.status != "pending":
            _ = self._rendering.translate(request)
            return self._rendering.told(
                request,
                _("Sign-in not completed"),
                _("Cancel or a different number was pressed in the messenger."),
                403,
            )
        return self._rendering.page(
            request,
            "messenger.html",
            messengers=self._messenger_sign_in.ways(token),
            number=waiting.number,
            here=step(request, "messenger", to),
            status_url=step(request, "messenger/status", ""),
            refresh_s=REFRESH_S,
        )

    async def status(self, request: Request) -> Response:
        """What the page's script asks for: `{"status": "pending"}` until there is something new."""
        _token, secret = self._kept(request)
        async with self._db.read() as tx:
            waiting = await self._messenger_sign_in.waiting(tx, secret)
        status = "ended" if waiting is None else waiting.status
        return JSONResponse({"status": status}, headers=HEADERS)

    async def _begin(self, request: Request) -> Response:
        form = await self._forms.read(request)
        to = wanted(request, form.text("next"))
        browser = self._cookies.browser(request)
        waits = await self._throttle.request(browser)
        if waits is not None:
            values = {"next": to, "email": "", "by_messenger": True}
            return self._rendering.too_many(request, "password.html", waits.retry_after_s, **values)
        async with self._db.transaction() as tx:
            begun = await self._messenger_sign_in.begin(tx, "sign_in", browser)
        if not self._messenger_sign_in.ways(begun.token):
            raise no_bot_ready()
        response = see_other(step(request, "messenger", to))
        self._cookies.write(response, request, WAITING, f"{begun.token}.{begun.secret}")
        return response

    async def _enter(self, request: Request, secret: str, to: str) -> Response:
        browser = self._cookies.browser(request)
        async with self._db.transaction() as tx:
            account_id = await self._messenger_sign_in.claim(tx, secret)
            if account_id is None:
                raise NotFound("this sign-in was used, or has expired; begin again")
            account = await self._accounts.find(tx, account_id)
            outcome = await self._sign_in.enter(tx, account, browser, "messenger")
        if isinstance(outcome, Refused | TooMany):
            raise NotFound("this account can't sign in")
        return await self._entering.go_on(request, outcome, PostedForm(), to)

    def _kept(self, request: Request) -> tuple[str, str]:
        token, _, secret = self._cookies.read(request, WAITING).partition(".")
        return token, secret
