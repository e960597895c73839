"""HTTP client for channels whose messenger has an HTTP API."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import IO, Any
from urllib.parse import urlencode

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.http_client import (
    CallError,
    Connector,
    HttpClient,
    Limits,
    NotConnected,
    Proxy,
    Upload,
)
from msgsvc_core.kernel.json import to_json_bytes
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Maximum bytes of a response, and of an error response to a download that are read.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
REFUSAL_BYTES = 64 * 1024

#: A response that ends with its connection may have been cut off, so it is not taken.
_LIMITS = Limits(max_body_bytes=MAX_ANSWER_BYTES)

_NO_HEADERS: Mapping[str, str] = {}

#: Where `collecting_dates` puts what it collects, for the tasks of its block only.
_dates: ContextVar[set[int] | None] = ContextVar("dates", default=None)


@value_object
class PlatformAnswer:
    """The platform's response, with any status. Names of headers can be read in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PlatformHttp:
    """HTTP client for one bot's platform API; connections are opened on first use.

    Headers and proxy apply to every call; `connections` is their maximum number at a time, None for any.
    Responses are interpreted by the channel; only connection failures are raised here, as
    `platform_unavailable`. `ca_file` holds PEM certificates trusted in addition to the system's. With a
    `guard` (`service.media.guard`), for URLs not set by the operator, only allowed addresses are called: a
    refused one is `invalid_message`. Behind a proxy, which resolves names itself, the guard only sees the
    URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        timeout_s: float = 30.0,
        connections: int | None = 100,
        ca_file: str | None = None,
        guard: OutboundGuard | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._guard = guard
        self._proxy = Proxy.from_url(proxy) if proxy is not None else None
        self._headers = headers
        self._connections = connections
        self._ca_file = ca_file
        self._client: HttpClient | None = None

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        form: Upload | None = None,
        fields: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout_s: float | None = None,
        template: str | None = None,
    ) -> PlatformAnswer:
        """Makes one request and returns the response; `path` is appended to the base URL, or an absolute URL.
        `template` is the path in traces, without secrets and ids, e.g. `/bot{token}/sendMessage`.

        The body is `json`, `form` (a `FileUpload` is one file without a form), or `fields` as
        `application/x-www-form-urlencoded`. Raises
        `DeliveryError`, `in_doubt` if the request may have reached the platform, and ValueError for what JSON
        or HTTP can't express.
        """
        body, content_type = _body(json, form, fields)
        try:
            answer = await self._opened().request(
                method,
                self._url(path),
                params=params,
                body=body,
                content_type=content_type,
                headers=headers,
                timeout_s=timeout_s or self._timeout_s,
                limits=_LIMITS,
                template=template,
            )
        except CallError as error:
            raise _delivery_error(error) from None
        if (dates := _dates.get()) is not None:
            dates.update(_time_of(answer.headers))
        return PlatformAnswer(answer.status, answer.headers, answer.body)

    async def download(
        self, path: str, into: IO[bytes], max_bytes: int, *, timeout_s: float | None = None
    ) -> PlatformAnswer:
        """Writes the body of a GET with status 200 into `into`; for other statuses the body is in the
        response.

        Raises `DeliveryError`: `invalid_message` for more than `max_bytes`, of which no more is read.
        """
        total_s = timeout_s or self._timeout_s
        try:
            async with self._opened().stream("GET", self._url(path), timeout_s=total_s) as answer:
                if answer.status != 200:
                    refusal = b""
                    async for part in answer.parts():
                        refusal += part
                        if len(refusal) >= REFUSAL_BYTES:
                            break
                    return PlatformAnswer(answer.status, answer.headers, refusal[:REFUSAL_BYTES])
                size = answer.content_length or 0
                if size <= max_bytes:
                    size = 0
                    async for part in answer.parts():
                        size += len(part)
                        if size > max_bytes:
                            break
                        into.write(part)
                if size > max_bytes:
                    raise DeliveryError(
                        Reason.INVALID_MESSAGE, f"it is larger than {max_bytes} bytes"
                    )
                return PlatformAnswer(answer.status, answer.headers, b"")
        except CallError as error:
            raise _delivery_error(error) from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _opened(self) -> HttpClient:
        if self._client is None:
            # What a proxy connects to can't be checked here.
            guard = self._guard if self._proxy is None else None
            self._client = HttpClient(
                Connector(ca_file=self._ca_file, proxy=self._proxy, guard=guard),
                headers=self._headers,
                connections=self._connections,
            )
        return self._client

    def _url(self, path: str) -> str:
        url = path if path.startswith(("http://", "https://")) else self._base_url + path
        if self._guard is not None:
            try:
                self._guard.check_url(url)
            except ForbiddenTarget as error:
                raise DeliveryError(Reason.INVALID_MESSAGE, str(error)) from None
        return url


@contextmanager
def collecting_dates() -> Iterator[set[int]]:
    """The times of platforms, from the `Date` of their answers to calls in the block; milliseconds since
    1970."""
    dates = set[int]()
    token = _dates.set(dates)
    try:
        yield dates
    finally:
        _dates.reset(token)


def _time_of(headers: Mapping[str, str]) -> Iterator[int]:
    with suppress(ValueError):
        yield round(parsedate_to_datetime(headers.get("date", "")).timestamp() * 1000)


def _body(
    json: Any, form: Upload | None, fields: Mapping[str, str] | None
) -> tuple[bytes | Upload | None, str | None]:
    """The body, and its content type unless that is the form's own."""
    if json is not None:
        return to_json_bytes(json), "application/json"
    if fields is not None:
        return urlencode(fields).encode(), "application/x-www-form-urlencoded"
    return form, None


def _delivery_error(error: CallError) -> DeliveryError:
    """The error as a `DeliveryError`, without the URL: a path may contain the bot's token."""
    if isinstance(error, NotConnected):
        refused = error.cause
        if isinstance(refused, ForbiddenTarget) and not isinstance(refused, NoPublicHost):
            return DeliveryError(Reason.INVALID_MESSAGE, str(refused))
    why = f"the connection broke: {type(error).__name__}" if error.sent else str(error)
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, why, in_doubt=error.sent)
