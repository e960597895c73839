"""One attempt: a POST of a logout token to a URL that a tenant chose."""

from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

from msgsvc_core.http_client import (
    CallError,
    Connector,
    HttpClient,
    Limits,
    explain_call,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_oidc.backchannel_logout.models import LogoutAttempt

#: Bytes of a response that are read: what it says is not needed.
LIMITS = Limits(max_body_bytes=64 * 1024, until_close=True)

#: The statuses that lead elsewhere (RFC 9110, section 15.4): 300 offers a choice, 304 is about a copy.
REDIRECTS = frozenset({301, 302, 303, 307, 308})


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: What is recorded of responses that are no success.
REDIRECTED = _("a redirect, which is not followed; register the URL to which it leads")
REFUSED = _("the client answered {status}")

FORM = "application/x-www-form-urlencoded"


class LogoutSender:
    """Makes the calls, with one connection pool."""

    def __init__(self, *, clock: Clock, guard: OutboundGuard, timeout_s: float) -> None:
        self._clock = clock
        self._guard = guard
        self._timeout_s = timeout_s
        self._client: HttpClient | None = None

    async def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def send(self, url: str, token: str) -> LogoutAttempt:
        """POSTs a token (Back-Channel Logout 1.0, section 2.5); never raises for what the other side does."""
        try:
            self._guard.check_url(url)
            response = await self._opened().request(
                "POST",
                url,
                body=urlencode({"logout_token": token}).encode(),
                content_type=FORM,
                timeout_s=self._timeout_s,
                limits=LIMITS,
            )
        except (CallError, ForbiddenTarget) as error:
            explained = explain_call(error, self._timeout_s)
            return LogoutAttempt(
                status_code=None, failure=explained.why, is_forbidden=explained.is_forbidden
            )
        return LogoutAttempt(
            status_code=response.status,
            failure=_status_failure(response.status),
            retry_after_s=self._seconds(response.headers.get("Retry-After")),
        )

    def _opened(self) -> HttpClient:
        if self._client is None:
            # Unlimited: the lanes bound the calls to each client, and slow ones must not take every place.
            self._client = HttpClient(
                Connector(guard=self._guard),
                headers={"User-Agent": "msgsvc"},
                connections=None,
                connect_s=self._timeout_s,
            )
        return self._client

    def _seconds(self, retry_after: str | None) -> float | None:
        """`Retry-After` as seconds from now (RFC 9110, section 10.2.3)."""
        if retry_after is None:
            return None
        if retry_after.isascii() and retry_after.isdigit():
            return float(retry_after[:12])
        with suppress(ValueError, OverflowError):
            return max(0.0, parsedate_to_datetime(retry_after).timestamp() - self._clock.time())
        return None


def _status_failure(status: int) -> Finding | None:
    if 200 <= status < 300:
        return None
    if status in REDIRECTS:
        return Finding(REDIRECTED, package="msgsvc_oidc")
    return Finding(REFUSED, {"status": status}, package="msgsvc_oidc")
