"""The cookies of signing in."""

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_dashboard.accounts.models import Browser, SignedIn
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.frame.browser import session_cookie

#: That the account was signed in here before; forms are ours; what waits for a code, or for a Yes.
DEVICE, FORM, TICKET, WAITING = (
    "msgsvc_device",
    "msgsvc_form",
    "msgsvc_ticket",
    "msgsvc_waiting",
)

DAY_S = 24 * 3600

#: Seconds for which a browser is known again: a year.
DEVICE_S = 365 * DAY_S

#: Seconds for a form, a code and an answer in a messenger; each of them ends sooner by itself.
STEP_S = 3600


class Cookies:
    """Reads and writes them: for our pages only, not accessible to scripts, and secure over https.

    `SameSite=Lax`: they are sent with links that lead here, but not with forms of other sites.
    """

    def __init__(self, *, base_url: str, session_days: int) -> None:
        self._days = session_days
        self._secure = base_url.startswith("https:")
        self.session_name = session_cookie(base_url)

    def read(self, request: Request, name: str) -> str:
        return request.cookies.get(self._name(name), "")

    def write(self, response: Response, request: Request, name: str, value: str) -> None:
        self._set(response, request, self._name(name), value, STEP_S)

    def drop(self, response: Response, request: Request, name: str) -> None:
        self._set(response, request, self._name(name), "", 0)

    def browser(self, request: Request) -> Browser:
        """Who asks."""
        ip = request.client.host if request.client else ""
        agent = request.headers.get("user-agent", "")
        return Browser(ip, agent, self.read(request, DEVICE))

    def enter(self, response: Response, request: Request, done: SignedIn) -> None:
        """Signs the browser in."""
        self._set(response, request, self.session_name, done.token, self._days * DAY_S)
        self._set(response, request, self._name(DEVICE), done.device, DEVICE_S)
        for name in (FORM, TICKET, WAITING):
            if self.read(request, name):
                self.drop(response, request, name)

    def leave(self, response: Response, request: Request) -> None:
        """Signs it out; that it is known stays."""
        self._set(response, request, self.session_name, "", 0)

    def _set(
        self, response: Response, request: Request, name: str, value: str, max_age_s: int
    ) -> None:
        response.set_cookie(
            name,
            value,
            max_age=max_age_s,
            # The prefix asks for the whole host.
            path="/" if self._secure else root_of(request),
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._secure else name
