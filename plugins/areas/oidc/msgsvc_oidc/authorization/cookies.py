"""The browser's cookies: its session with the provider, and the requests that it started."""

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.security import digest
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.sessions.service import Sessions

#: Hex digits that tell the cookies of projects apart; they are no secrets.
KEY_LENGTH = 16


class BrowserCookies:
    """Reads and writes them. If the service is public over https, their names start with `__Host-`: only this
    host can set them then (RFC 6265bis, section 4.1.3.2).

    The session's cookie is sent from other sites too, for clients that renew their tokens in a frame by
    `prompt=none`: it opens nothing there without the client's registered redirect URI. The request's cookie
    is never sent with forms of other sites.
    """

    def __init__(self, *, issuers: Issuers, sessions: Sessions, references: References) -> None:
        self._issuers = issuers
        self._sessions = sessions
        self._references = references

    def session(self, request: Request, project_id: str) -> str | None:
        """The id of the browser's session; it may have ended."""
        return self._sessions.read(project_id, request.cookies.get(self._name("sid", project_id)))

    def set_session(
        self, response: Response, project_id: str, session_id: str, max_age_s: int
    ) -> None:
        """Has the browser keep its session."""
        response.set_cookie(
            self._name("sid", project_id),
            self._sessions.reference(project_id, session_id),
            max_age=max_age_s,
            path=self._path,
            secure=self._issuers.is_secure,
            httponly=True,
            # Browsers take `none` over https alone; on localhost all ports are one site.
            samesite="none" if self._issuers.is_secure else "lax",
        )

    def delete_session(self, response: Response, project_id: str) -> None:
        """Has the browser forget its session."""
        response.delete_cookie(
            self._name("sid", project_id),
            path=self._path,
            secure=self._issuers.is_secure,
            httponly=True,
            samesite="none" if self._issuers.is_secure else "lax",
        )

    def started(self, request: Request, project_id: str, request_id: str) -> bool:
        """Whether this browser started the request."""
        held = request.cookies.get(self._name("request", request_id), "")
        found = self._references.read("browser", project_id, held)
        return found is not None and found[0] == request_id

    def set_started(
        self, response: Response, project_id: str, request_id: str, max_age_s: int
    ) -> None:
        """Has the browser remember that it started the request."""
        response.set_cookie(
            self._name("request", request_id),
            self._references.make("browser", project_id, request_id),
            max_age=max_age_s,
            path=self._path,
            secure=self._issuers.is_secure,
            httponly=True,
            samesite="lax",
        )

    def delete_started(self, response: Response, project_id: str, request_id: str) -> None:
        """Has the browser forget a request that has ended."""
        response.delete_cookie(
            self._name("request", request_id),
            path=self._path,
            secure=self._issuers.is_secure,
            httponly=True,
            samesite="lax",
        )

    @property
    def _path(self) -> str:
        # Required by the prefix.
        return "/" if self._issuers.is_secure else f"{self._issuers.path}/oidc"

    def _name(self, kind: str, of: str) -> str:
        prefix = "__Host-" if self._issuers.is_secure else ""
        return f"{prefix}msgsvc-oidc-{kind}-{digest(of)[:KEY_LENGTH]}"
