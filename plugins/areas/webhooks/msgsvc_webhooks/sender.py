"""One attempt: a signed POST to a URL chosen by a tenant."""

import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache

import structlog

from msgsvc_core.http_client import (
    CallError,
    Connector,
    HttpClient,
    Limits,
    StreamedResponse,
    explain_call,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.storable_text import storable
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_core.security.signing import sign, standard_headers
from msgsvc_webhooks.headers import kept
from msgsvc_webhooks.models import Attempt, Delivery, HeaderPairs
from msgsvc_webhooks.settings import WebhookSettings


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: Bytes of an answer that the journal keeps (decision 0075).
KEPT_ANSWER_BYTES = 2048

USER_AGENT, CONTENT_TYPE = "msgsvc", "application/json"

#: Headers of every request, besides those of the delivery.
ALWAYS_SENT = (("User-Agent", USER_AGENT), ("Content-Type", CONTENT_TYPE))

#: What an answer says by ending with its connection is no more than the journal needs.
LIMITS = Limits(until_close=True)

#: The statuses that lead elsewhere (RFC 9110, section 15.4): 300 offers a choice, 304 is about a copy.
REDIRECTS = frozenset({301, 302, 303, 307, 308})

#: What is recorded of them.
REDIRECTED = Finding(
    _("a redirect, which is not followed; set the webhook's URL to where it leads"),
    package="msgsvc_webhooks",
)

#: The codings of a body that are undone for the journal (RFC 9110, section 8.4.1).
ZLIB_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})

#: URLs whose form has been looked at that are remembered.
KNOWN_URLS = 1000

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Call:
    """What is known of an attempt so far; it may break off anywhere."""

    status_code: int | None = None
    answer: bytearray = field(default_factory=bytearray)
    request_headers: HeaderPairs = ()
    response_headers: HeaderPairs = ()
    retry_after: str | None = None
    coding: str | None = None


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
        forbidden = False
        try:
            await self._call(url, delivery, secrets, call)
            failure = _status_failure(call.status_code)
        except (CallError, ForbiddenTarget) as error:
            explained = explain_call(error, self._settings.attempt_timeout_s)
            failure, forbidden = explained.why, explained.is_forbidden
        except Exception:
            if call.status_code is None:
                raise
            # It was answered, which is written down whatever is wrong with the rest: a fault here would
            # have the call made again.
            log.exception("webhook_answer_not_read", delivery_id=delivery.delivery_id)
            failure = _status_failure(call.status_code)
        return Attempt(
            started_at_ms=started_at_ms,
            duration_ms=round((time.perf_counter() - started) * 1000),
            status_code=call.status_code,
            error=None if failure is None else failure.reason,
            failure=failure,
            answer=_as_text(call.answer, call.coding),
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
            call.coding = response.headers.get("Content-Encoding")
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


def _status_failure(status: int | None) -> Finding | None:
    return REDIRECTED if status in REDIRECTS else None


def _as_text(answer: bytes | bytearray, coding: str | None) -> str:
    """The start of an answer, unpacked if the receiver compressed it although no coding was asked for. Only
    as much is unpacked as the journal keeps: the rest may be gigabytes."""
    if (coding or "").strip().lower() in ZLIB_CODINGS:
        # 32 more than the largest window: the header says whether it is gzip or zlib.
        with suppress(zlib.error):
            answer = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(answer, KEPT_ANSWER_BYTES)
    return storable(answer.decode("utf-8", "replace"))


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
