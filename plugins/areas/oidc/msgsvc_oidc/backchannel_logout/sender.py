"""One attempt: a POST of a logout token to a URL that a tenant chose."""

import os
from contextlib import suppress
from email.utils import parsedate_to_datetime
from ssl import SSLError
from urllib.parse import urlencode

from msgsvc_core.http_client import (
    CallError,
    CallTimeout,
    Connector,
    HttpClient,
    InvalidResponse,
    Limits,
    NameNotResolved,
    NoConnectionInTime,
    NotConnected,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard
from msgsvc_oidc.backchannel_logout.models import LogoutAttempt

#: Bytes of a response that are read: what it says is not needed.
LIMITS = Limits(max_body_bytes=64 * 1024, until_close=True)

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
        except ForbiddenTarget as refusal:
            return LogoutAttempt(status_code=None, error=refusal.reason, is_forbidden=True)
        except CallError as failure:
            return failed_attempt(failure, self._timeout_s)
        return LogoutAttempt(
            status_code=response.status,
            error=_status_error(response.status),
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


def _status_error(status: int) -> str:
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return "a redirect, which is not followed; register the URL to which it leads"
    return f"the client answered {status}"


def failed_attempt(failure: CallError, timeout_s: float) -> LogoutAttempt:
    """The failure in words for the project's journal, without the address that a name leads to."""
    cause = failure.cause if isinstance(failure, NotConnected) else None
    if isinstance(failure, NameNotResolved) or isinstance(cause, NoPublicHost):
        error = "the host can't be resolved to public addresses"
    elif isinstance(cause, ForbiddenTarget):
        return LogoutAttempt(status_code=None, error=cause.reason, is_forbidden=True)
    elif isinstance(cause, SSLError):
        error = f"TLS failed: {getattr(cause, 'verify_message', '') or 'handshake'}"
    elif isinstance(failure, NotConnected):
        number = cause.errno if cause is not None else None
        error = f"could not connect: {os.strerror(number) if number else 'no reason given'}"
    elif isinstance(failure, (CallTimeout, NoConnectionInTime)):
        error = f"no complete answer within {timeout_s:g} s"
    elif isinstance(failure, InvalidResponse):
        error = "the answer is no valid HTTP, or too large"
    else:
        error = "the connection was closed before an answer came"
    return LogoutAttempt(status_code=None, error=error)
