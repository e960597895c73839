"""The step after an identity was proven: the session, or first a code."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from msgsvc_core.dashboard import PostedForm
from msgsvc_dashboard.accounts.models import CodeNeeded, SignedIn
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.frame.addresses import is_ours, root_of
from msgsvc_dashboard.sign_in.cookies import TICKET, Cookies
from msgsvc_dashboard.sign_in.rendering import HEADERS


class Entering:
    """Redirects to the page that the user wanted."""

    def __init__(self, *, accounts: Accounts, cookies: Cookies) -> None:
        self._accounts = accounts
        self._cookies = cookies

    async def go_on(
        self, request: Request, outcome: SignedIn | CodeNeeded, form: PostedForm, to: str
    ) -> Response:
        """`to` leads to a page of ours; what leads elsewhere is left out."""
        to = wanted(request, to)
        if isinstance(outcome, CodeNeeded):
            response = see_other(step(request, "code", to))
            self._cookies.write(response, request, TICKET, outcome.ticket)
            return response
        await self._accounts.learn_timezone(outcome.session.account, form.text("timezone"))
        response = see_other(to or root_of(request))
        self._cookies.enter(response, request, outcome)
        return response


def wanted(request: Request, to: str) -> str:
    """The requested page of the dashboard; empty for none, or another site's."""
    return to if to and is_ours(request, to) else ""


def step(request: Request, name: str, to: str) -> str:
    """The URL of a step of signing in that finally leads to that page."""
    return f"{root_of(request)}/sign-in/{name}" + (f"?next={quote(to)}" if to else "")


def see_other(to: str) -> Response:
    return RedirectResponse(to, 303, HEADERS)
