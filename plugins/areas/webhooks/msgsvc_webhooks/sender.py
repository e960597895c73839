"""One attempt: a signed POST to a URL chosen by a tenant."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ssl import SSLError

from msgsvc_core.http_client import (
    CallError,
    CallTimeout,
    ConnectionLost,
    Connector,
    HttpClient,
    Limits,
    NameNotResolved,
    NoConnectionInTime,
    NotConnected,
    StreamedResponse,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard
from msgsvc_core.security.signing import sign, standard_headers
from msgsvc_webhooks.headers import kept
from msgsvc_webhooks.models import Attempt, Delivery, HeaderPairs
from msgsvc_webhooks.settings import WebhookSettings

#: Bytes of an answer that the journal keeps (decision 0075).
KEPT_ANSWER_BYTES = 2048

USER_AGENT, CONTENT_TYPE = "msgsvc", "application/json"

#: Headers of every request, besides those of the delivery.
ALWAYS_SENT = (("User-Agent", USER_AGENT), ("Content-Type", CONTENT_TYPE))

#: What an answer says by ending with its connection is no more than the journal needs.
LIMITS = Limits(until_close=True)

#: URLs whose form has been looked at that are remembered.
KNOWN_URLS = 1000


@dataclass(slots=True)
class _Call:
    """What is known of an attempt so far; it may break off anywhere."""

    status_code: int | None = None
    answer: bytearray = field(default_factory=bytearray)
    request_headers: HeaderPairs = ()
    response_headers: HeaderPairs = ()
    retry_after: str | None = None


class Sender:
    """Makes the calls of one service, with one connection pool."""

    def __init__(
        self,
        settings: WebhookSettings,
        guard: OutboundGuard,
        clock: Clock,
        header_prefix: str = "X-Service",
    ) -> None:
        self._settings = settings
        self._guard = guard
        # A tenth of a delivery's time, for an answer that depends on the URL alone.
        self._check_url = lru_cache(maxsize=KNOWN_URLS)(guard.check_url)
        self._clock = clock
        self._header_prefix = header_prefix
        self._client: HttpClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def send(self, url: str, delivery: Delivery, secrets: Sequence[str]) -> Attempt:
        """POSTs `delivery`, signed now with each of `secrets`; never raises for what the other
        side does."""
        started_at_ms, started = self._clock.now_ms(), time.perf_counter()
        call = _Call()
        error: str | None
        forbidden = False
        try:
            await self._call(url, delivery, secrets, call)
            error = _status_error(call.status_code)
        except ForbiddenTarget as refusal:
            error, forbidden = refusal.reason, True
        except CallError as failure:
            refused = _refusal(failure)
            error = refused.reason if refused else self._explain(failure)
            forbidden = refused is not None
        return Attempt(
            started_at_ms=started_at_ms,
            duration_ms=round((time.perf_counter() - started) * 1000),
            status_code=call.status_code,
            error=error,
            answer=_as_text(call.answer),
            request_headers=call.request_headers,
            response_headers=call.response_headers,
            retry_after_s=_seconds(call.retry_after, self._clock.time()),
            forbidden=forbidden,
        )

    async def _call(
        self, url: str, delivery: Delivery, secrets: Sequence[str], call: _Call
    ) -> None:
        # As it is stored: the client leaves out a login.
        self._check_url(url)
        body = delivery.body.encode()
        headers = self._headers(delivery, body, secrets)
        call.request_headers = kept([*ALWAYS_SENT, *headers.items()])
        async with self._opened().stream(
            "POST",
            url,
            body=body,
            content_type=CONTENT_TYPE,
            headers=headers,
            timeout_s=self._settings.attempt_timeout_s,
            limits=LIMITS,
            propagates_trace=True,
        ) as response:
            call.status_code = response.status
            call.response_headers = kept(response.headers.items())
            call.retry_after = response.headers.get("Retry-After")
            await self._read(response, call.answer)

    async def _read(self, response: StreamedResponse, answer: bytearray) -> None:
        """Reads to the end, so that the connection can be used again, or to the limit."""
        total = 0
        async for part in response.parts():
            total += len(part)
            answer += part[: KEPT_ANSWER_BYTES - len(answer)]
            if total >= self._settings.max_answer_bytes:
                return

    def _opened(self) -> HttpClient:
        if self._client is None:
            self._client = HttpClient(
                Connector(guard=self._guard),
                headers={"User-Agent": USER_AGENT},
                # Unlimited: with a common limit, slow receivers would take every place. The lanes
                # bound the calls to each webhook.
                connections=None,
                connect_s=self._settings.attempt_timeout_s,
            )
        return self._client

    def _explain(self, failure: CallError) -> str:
        """The failure in words for the project's journal."""
        match failure:
            case NotConnected():
                return _explain_no_connection(failure)
            case CallTimeout() | NoConnectionInTime():
                return f"no complete answer within {self._settings.attempt_timeout_s:g} s"
            case ConnectionLost(in_body=True):
                return "the answer broke off"
            case ConnectionLost():
                return "the connection was closed before an answer came"
            case _:
                return f"the answer is no valid HTTP ({failure})"

    def _headers(self, delivery: Delivery, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
        timestamp = int(self._clock.time())
        prefix = self._header_prefix
        return {
            f"{prefix}-Signature": sign(body, secrets, timestamp),
            f"{prefix}-Timestamp": str(timestamp),
            f"{prefix}-Delivery-Id": delivery.delivery_id,
            f"{prefix}-Event": delivery.event,
            f"{prefix}-Event-Id": delivery.event_id,
            **standard_headers(delivery.delivery_id, body, secrets, timestamp),
        }


def _status_error(status: int | None) -> str | None:
    if status is not None and 300 <= status < 400:
        return "a redirect, which is not followed; set the webhook's URL to where it leads"
    return None


def _refusal(failure: CallError) -> ForbiddenTarget | None:
    """The guard's reason, if the guard refused the connection. A name that resolves to our own network is
    reported, and retried, like an unknown one."""
    reason = failure.cause if isinstance(failure, NotConnected) else None
    if isinstance(reason, NoPublicHost):
        return None
    return reason if isinstance(reason, ForbiddenTarget) else None


def _explain_no_connection(failure: NotConnected) -> str:
    # Not the text of the error: it has the address that the name leads to.
    cause = failure.cause
    if isinstance(failure, NameNotResolved) or isinstance(cause, NoPublicHost):
        return "the host can't be resolved to public addresses"
    if isinstance(cause, SSLError):
        return f"TLS failed: {getattr(cause, 'verify_message', '') or 'handshake'}"
    number = cause.errno if cause is not None else None
    return f"could not connect: {os.strerror(number) if number else 'no reason given'}"


def _as_text(answer: bytes | bytearray) -> str:
    # PostgreSQL takes no NUL in a text.
    return answer.decode("utf-8", "replace").replace("\0", "\ufffd")


def _seconds(retry_after: str | None, now_s: float) -> float | None:
    """`Retry-After` as seconds from now; it is a number or a date (RFC 9110, section 10.2.3)."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        # Nobody means a wait of more digits, and float() of thousands would be infinite.
        return float(retry_after[:12])
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now_s)
    return None
