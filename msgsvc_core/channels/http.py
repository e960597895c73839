"""HTTP client for channels whose messenger has an HTTP API."""

import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.kernel.aio import TimeoutPool
from msgsvc_core.kernel.json import to_json_bytes
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.connector import GuardedConnector
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Seconds to connect, or half of a call's timeout if that is less.
CONNECT_S = 10.0

#: Bytes of a file that are in memory at a time, and maximum bytes of an error response that are read.
CHUNK_BYTES = 64 * 1024
REFUSAL_BYTES = 64 * 1024

#: Exceptions of a call without a response.
_BROKEN = (ClientError, TimeoutError, OSError)


@value_object
class PlatformAnswer:
    """The platform's response, with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PlatformHttp:
    """HTTP client for one bot's platform API; connections are opened on first use.

    Headers and proxy apply to every call. Responses are interpreted by the channel; only connection
    failures are raised here, as `platform_unavailable`. `ca_file` holds PEM certificates trusted in
    addition to the system's. With a `guard` (`service.media.guard`), for URLs not set by the operator, only
    allowed addresses are called: a refused one is `invalid_message`. Behind a proxy, which resolves names
    itself, the guard only sees the URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        timeout_s: float = 30.0,
        connections: int = 100,
        ca_file: str | None = None,
        guard: OutboundGuard | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = dict(headers or {})
        self._proxy = proxy
        self._timeout_s = timeout_s
        self._connections = connections
        self._ca_file = ca_file
        self._guard = guard
        self._session: ClientSession | None = None
        self._deadlines = TimeoutPool()

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        data: Any = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> PlatformAnswer:
        """Makes one request and returns the response; `path` is appended to the base URL, or an absolute URL.

        Raises `DeliveryError`, `in_doubt` if the request may have reached the platform.
        """
        total_s = timeout_s or self._timeout_s
        try:
            with self._deadlines.timeout(total_s):
                answer = await self._opened().request(
                    method,
                    self._url(path),
                    json=json,
                    data=data,
                    params=params,
                    headers=headers,
                    timeout=_timeout(total_s),
                    proxy=self._proxy,
                    allow_redirects=False,
                )
                # Releases the connection at the end of the response, and closes it on failure.
                return PlatformAnswer(answer.status, answer.headers, await answer.read())
        except _BROKEN as error:
            raise _delivery_error(error) from None

    async def download(
        self, path: str, into: IO[bytes], max_bytes: int, *, timeout_s: float | None = None
    ) -> PlatformAnswer:
        """Writes the body of a GET with status 200 into `into`; for other statuses the body is in the
        response.

        Raises `DeliveryError`: `invalid_message` for more than `max_bytes`, of which no more is read.
        """
        total_s = timeout_s or self._timeout_s
        try:
            with self._deadlines.timeout(total_s):
                async with self._opened().get(
                    self._url(path),
                    timeout=_timeout(total_s),
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as answer:
                    if answer.status != 200:
                        refusal = await answer.content.read(REFUSAL_BYTES)
                        return PlatformAnswer(answer.status, answer.headers, refusal)
                    await _copy(answer, into, max_bytes)
                    return PlatformAnswer(answer.status, answer.headers, b"")
        except _BROKEN as error:
            raise _delivery_error(error) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                connector=self._connector(),
                headers=self._headers,
                cookie_jar=DummyCookieJar(),
                json_serialize_bytes=to_json_bytes,
                # Ignores proxies of the environment: they are a setting of the channel.
                trust_env=False,
            )
            # aiohttp retries a PUT or DELETE when a kept-alive connection breaks, although the platform
            # may have processed it. Only the caller may decide to retry.
            self._session._retry_connection = False
        return self._session

    def _connector(self) -> TCPConnector:
        if self._guard is not None and self._proxy is None:
            return GuardedConnector(self._guard, limit=self._connections, ssl=self._trust())
        return TCPConnector(limit=self._connections, ssl=self._trust())

    def _url(self, path: str) -> str:
        url = path if path.startswith(("http://", "https://")) else self._base_url + path
        if self._guard is not None:
            self._guard.check_url(url)
        return url

    def _trust(self) -> ssl.SSLContext | bool:
        if self._ca_file is None:
            return True
        context = ssl.create_default_context()
        context.load_verify_locations(self._ca_file)
        return context


@lru_cache(maxsize=100)
def _timeout(total_s: float) -> ClientTimeout:
    """Of the client's own timers, only that for new connections; `TimeoutPool` handles the total."""
    return ClientTimeout(total=None, connect=min(CONNECT_S, total_s / 2))


def _delivery_error(error: Exception) -> DeliveryError:
    """The exception as a `DeliveryError`."""
    refused = error.os_error if isinstance(error, ClientConnectorError) else error
    if isinstance(refused, ForbiddenTarget) and not isinstance(refused, NoPublicHost):
        return DeliveryError(Reason.INVALID_MESSAGE, str(refused))
    if isinstance(error, ClientConnectorError):
        # Only host and port: a path may contain the bot's token.
        why = f"no connection to {error.host}:{error.port}"
    elif isinstance(error, ConnectionTimeoutError):
        # Nothing was sent, so the call can't have succeeded.
        why = "no connection within the time for it"
    else:
        why = f"the connection broke: {type(error).__name__}"
        return DeliveryError(Reason.PLATFORM_UNAVAILABLE, why, in_doubt=True)
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, why)


async def _copy(answer: ClientResponse, into: IO[bytes], most_bytes: int) -> None:
    """Raises `DeliveryError` for more than `max_bytes`, of which no more is read."""
    size = answer.content_length or 0
    if size <= most_bytes:
        size = 0
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            size += len(chunk)
            if size > most_bytes:
                break
            into.write(chunk)
    if size > most_bytes:
        raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {most_bytes} bytes")
