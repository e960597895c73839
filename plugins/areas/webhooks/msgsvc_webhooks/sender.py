"""One attempt: a signed POST to a URL chosen by a tenant."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache

from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
)

from msgsvc_core.kernel.aio import TimeoutPool
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.connector import GuardedConnector
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard
from msgsvc_core.security.signing import sign, standard_headers
from msgsvc_webhooks.models import Attempt, Delivery
from msgsvc_webhooks.settings import WebhookSettings

#: Bytes of an answer that the journal keeps (decision 0075).
KEPT_ANSWER_BYTES = 2048

USER_AGENT = "msgsvc"

#: URLs whose form has been looked at that are remembered.
KNOWN_URLS = 1000


@dataclass(slots=True)
class _Call:
    """What is known of an attempt so far; it may break off anywhere."""

    status_code: int | None = None
    answer: bytearray = field(default_factory=bytearray)
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
        self._session: ClientSession | None = None
        self._deadlines = TimeoutPool()

    async def open(self) -> None:
        self._session = ClientSession(
            # Unlimited: with a common limit, slow receivers would take every place. The lanes
            # bound the calls to each webhook.
            connector=GuardedConnector(self._guard, limit=0),
            # Cookies of one receiver would be sent to another webhook on the same host.
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            # 64 KiB of gzip can hold 64 MiB.
            auto_decompress=False,
            # `_call` sees to the time, from the first look at the host's name to the end of the answer.
            timeout=ClientTimeout(total=None),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

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
        except TimeoutError:
            error = f"no complete answer within {self._settings.attempt_timeout_s:g} s"
        except (ClientError, OSError) as failure:
            refusal = _refusal(failure)
            error = refusal.reason if refusal else _explain(failure)
            forbidden = refusal is not None
        return Attempt(
            started_at_ms=started_at_ms,
            duration_ms=round((time.perf_counter() - started) * 1000),
            status_code=call.status_code,
            error=error,
            answer=_as_text(call.answer),
            retry_after_s=_seconds(call.retry_after, self._clock.time()),
            forbidden=forbidden,
        )

    async def _call(
        self, url: str, delivery: Delivery, secrets: Sequence[str], call: _Call
    ) -> None:
        assert self._session is not None, "the service is not started"
        # As it is stored: the client leaves out a login, and what it can't read it reports otherwise.
        self._check_url(url)
        body = delivery.body.encode()
        headers = self._headers(delivery, body, secrets)
        with self._deadlines.timeout(self._settings.attempt_timeout_s):
            async with self._session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                call.status_code = response.status
                call.retry_after = response.headers.get("Retry-After")
                await self._read(response, call.answer)

    async def _read(self, response: ClientResponse, answer: bytearray) -> None:
        """Reads to the end, so that the connection can be used again, or to the limit."""
        most = self._settings.max_answer_bytes
        total = 0
        content = response.content
        while total < most and not content.at_eof():
            chunk = await content.read(most - total)
            total += len(chunk)
            answer += chunk[: KEPT_ANSWER_BYTES - len(answer)]

    def _headers(self, delivery: Delivery, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
        timestamp = int(self._clock.time())
        prefix = self._header_prefix
        return {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "Accept-Encoding": "identity",
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


def _refusal(failure: Exception) -> ForbiddenTarget | None:
    """The guard's reason, if the guard refused the connection. A name that resolves to our own network is
    reported, and retried, like an unknown one."""
    reason = failure.os_error if isinstance(failure, ClientConnectorError) else failure
    if isinstance(reason, NoPublicHost):
        return None
    return reason if isinstance(reason, ForbiddenTarget) else None


def _explain(failure: Exception) -> str:
    """The failure in words for the project's journal."""
    match failure:
        case ClientConnectorError():
            return _explain_no_connection(failure)
        case ServerDisconnectedError() | ClientOSError():
            return "the connection was closed before an answer came"
        case ClientPayloadError():
            return "the answer broke off"
        case _:
            return f"the answer is no valid HTTP ({type(failure).__name__})"


def _explain_no_connection(failure: ClientConnectorError) -> str:
    # Not the text of the error: it has the address that the name leads to.
    match failure:
        case ClientConnectorDNSError():
            return "the host can't be resolved to public addresses"
        case ClientSSLError():
            return f"TLS failed: {getattr(failure.os_error, 'verify_message', '') or 'handshake'}"
        case _:
            number = failure.os_error.errno
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
