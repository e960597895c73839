"""Notices shown once, on the page after a change.

They are stored in a signed cookie, so no server state is needed, and nobody else can forge them.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.security.secret_box import SecretBox
from msgsvc_dashboard.accounts import AccountSession
from msgsvc_dashboard.frame.addresses import root_of

COOKIE = "msgsvc_notice"

_PURPOSE = "dashboard notice"

#: Seconds for which it is kept: the browser is following the redirect to the page.
WAITS_S = 60

#: Characters of it: a cookie has 4 KiB, and a Cyrillic letter two bytes.
MOST = 500


class Notice:
    """The notice of a request; shown by the first complete page."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.taken = False

    def take(self) -> list[str]:
        """Its text, in a list that is empty without one."""
        self.taken = bool(self._text)
        return [self._text] if self._text else []


def read_notice(request: Request, session: AccountSession, secrets: SecretBox) -> Notice:
    packed, _, given = request.cookies.get(COOKIE, "").partition(".")
    if not secrets.verify(given, _PURPOSE, session.session_id, packed):
        return Notice("")
    return Notice(urlsafe_b64decode(packed.encode()).decode())


def leave_notice(
    response: Response, request: Request, session: AccountSession, secrets: SecretBox, text: str
) -> None:
    packed = urlsafe_b64encode(text[:MOST].encode()).decode()
    response.set_cookie(
        COOKIE,
        f"{packed}.{secrets.sign(_PURPOSE, session.session_id, packed)}",
        max_age=WAITS_S,
        path=root_of(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def forget_notice(response: Response, request: Request) -> None:
    response.delete_cookie(COOKIE, path=root_of(request), httponly=True, samesite="lax")
