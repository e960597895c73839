"""The cookies of a browser's sign-in: its ticket, and what proves that it left for a platform's page."""

import re

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_auth.hosted.models import REF_LENGTH, Site, Ticket
from msgsvc_auth.platforms.models import Departure

_KEY = re.compile(rf"[0-9a-f]{{{REF_LENGTH}}}")


class Tickets:
    """Reads and writes the cookie: one per site and state, so that tabs do not interfere.

    If the service is public over https, the name starts with `__Host-`: such a cookie can only be set by this
    host over TLS, not by a sibling domain (RFC 6265bis, section 4.1.3.2). It is sent with links to this host,
    and only with forms of our own pages.
    """

    def __init__(self, base_url: str) -> None:
        self._secure = base_url.startswith("https:")

    def read(self, request: Request, key: str) -> Ticket | None:
        """None without such a cookie, or with one that is none of ours."""
        if not _KEY.fullmatch(key):
            return None
        return Ticket.read(request.cookies.get(self._name(key), ""))

    def write(
        self,
        response: Response,
        request: Request,
        site: Site,
        key: str,
        ticket: Ticket,
        max_age_s: int,
    ) -> None:
        root = request.scope.get("root_path", "")
        response.set_cookie(
            self._name(key),
            str(ticket),
            max_age=max_age_s,
            # Required by the prefix.
            path="/" if self._secure else f"{root}/login/{site.path}",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def _name(self, key: str) -> str:
        return f"__Host-msgsvc-login-{key}" if self._secure else f"msgsvc-login-{key}"


class ReturnCookies:
    """A cookie for each visit to a platform's page, under the same rules as a ticket. `lax` lets it come
    along when the platform sends the browser back."""

    def __init__(self, base_url: str) -> None:
        self._secure = base_url.startswith("https:")

    def read(self, request: Request, ref: str) -> str:
        """Empty without such a cookie."""
        return request.cookies.get(self._name(ref), "")

    def write(self, response: Response, request: Request, departure: Departure) -> None:
        root = request.scope.get("root_path", "")
        response.set_cookie(
            self._name(departure.cookie_ref),
            departure.cookie,
            max_age=departure.max_age_s,
            path="/" if self._secure else f"{root}/login/_return",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def _name(self, ref: str) -> str:
        return f"__Host-msgsvc-return-{ref}" if self._secure else f"msgsvc-return-{ref}"
