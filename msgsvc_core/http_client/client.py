"""HTTP/1.1 client: calls over connections that are kept, each sent once."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from msgsvc_core.http_client.connecting import Connector, Proxy
from msgsvc_core.http_client.connection import Connection, Exchange, Limits
from msgsvc_core.http_client.errors import CallError, CallTimeout, NoConnectionInTime
from msgsvc_core.http_client.messages import (
    Headers,
    Origin,
    Response,
    check_method,
    header_lines,
    parse_target,
)
from msgsvc_core.http_client.pool import ConnectionPool
from msgsvc_core.http_client.upload import Upload
from msgsvc_core.kernel.aio import TimeoutPool
from msgsvc_core.kernel.values import value_object

#: Seconds to connect, or half of a call's timeout if that is less.
CONNECT_S = 10.0

#: Sent with every request unless the caller sets them. Compressed bodies are not asked for: 64 KiB of gzip
#: can hold 64 MiB.
DEFAULT_HEADERS = {"User-Agent": "msgsvc", "Accept": "*/*", "Accept-Encoding": "identity"}

#: Requests whose head is cached: a bot calls the same few methods of its platform's API.
CACHED_HEADS = 256

#: Methods whose requests have no body, and no length, unless one is given.
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})

DEFAULT_LIMITS = Limits()

_NO_HEADERS: Mapping[str, str] = {}


class StreamedResponse(Response):
    """A response whose body is read in parts, by `parts`, within the block of `HttpClient.stream`."""

    __slots__ = ("_connection", "_exchange")

    def __init__(self, connection: Connection, exchange: Exchange) -> None:
        super().__init__(exchange.status, Headers(exchange.headers))
        self._connection = connection
        self._exchange = exchange

    def parts(self) -> AsyncIterator[bytes]:
        """The body, as it comes. Raises `CallError`."""
        return self._connection.stream(self._exchange)


class HttpClient:
    """Makes calls to servers, with connections of its own; used in one event loop.

    A request is sent once: if it may have reached the server, an error says so (`CallError.sent`). Redirects
    are not followed, cookies are not kept, and proxies of the environment are ignored. `connections` is the
    maximum at a time, None for any number. `headers` are sent with every request.
    """

    def __init__(
        self,
        connector: Connector,
        *,
        headers: Mapping[str, str] | None = None,
        proxy: Proxy | None = None,
        connections: int | None = 100,
    ) -> None:
        self._connector = connector
        self._proxy = proxy
        self._headers = {**DEFAULT_HEADERS, **(headers or {})}
        self._pool = ConnectionPool(connector, connections)
        self._deadlines = TimeoutPool()
        self._heads: dict[tuple[str, str, str | None], _Head] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | Upload | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Response:
        """The whole response, with any status. `params` are added to the URL's query.

        Raises `CallError`, and ValueError for a URL or header that is invalid.
        """
        call = _Call()
        try:
            with self._deadlines.timeout(timeout_s):
                origin, head = self._request(method, url, params, headers, body, content_type)
                connection = await self._connected(origin, timeout_s)
                try:
                    call.sent = True
                    if isinstance(body, Upload):
                        return await _upload(connection, head, body, limits)
                    return await connection.call(
                        head + (body or b""), limits, may_have_body=method != "HEAD"
                    )
                finally:
                    self._pool.release(origin, connection)
        except CallError:
            raise
        except TimeoutError:
            raise CallTimeout(sent=call.sent) from None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout_s: float,
        limits: Limits = DEFAULT_LIMITS,
    ) -> AsyncIterator[StreamedResponse]:
        """The same, with the body in parts; what is not read at the end of the block is dropped.

        The timeout covers the block.
        """
        call = _Call()
        try:
            with self._deadlines.timeout(timeout_s):
                origin, head = self._request(method, url, params, headers, body, content_type)
                connection = await self._connected(origin, timeout_s)
                try:
                    call.sent = True
                    exchange = connection.start(
                        head + (body or b""),
                        limits,
                        wants_stream=True,
                        may_have_body=method != "HEAD",
                    )
                    try:
                        await connection.response_head(exchange)
                        yield StreamedResponse(connection, exchange)
                    finally:
                        connection.finish(exchange)
                finally:
                    self._pool.release(origin, connection)
        except CallError:
            raise
        except TimeoutError:
            raise CallTimeout(sent=call.sent) from None

    async def close(self) -> None:
        """Closes unused connections; calls in progress end with theirs."""
        self._pool.close()
        await self._connector.close()

    async def _connected(self, origin: tuple[str, str, int], timeout_s: float) -> Connection:
        try:
            with self._deadlines.timeout(min(CONNECT_S, timeout_s / 2)):
                return await self._pool.acquire(origin)
        except TimeoutError:
            raise NoConnectionInTime from None

    def _request(
        self,
        method: str,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | Upload | None,
        content_type: str | None,
    ) -> tuple[Origin, bytes]:
        """Where the request goes, and its head."""
        if isinstance(body, Upload):
            content_type = body.content_type
        if headers:
            head = self._make_head(method, url, headers, content_type)
        else:
            key = method, url, content_type
            cached = self._heads.get(key)
            if cached is None:
                if len(self._heads) >= CACHED_HEADS:
                    self._heads.clear()
                cached = self._heads[key] = self._make_head(method, url, headers, content_type)
            head = cached
        path = head.path
        if params:
            path += ("&" if b"?" in path else "?").encode() + urlencode(params).encode()
        if body is None and method in _WITHOUT_BODY:
            return head.origin, b"%b%b%b\r\n" % (head.method, path, head.rest)
        size = 0 if body is None else body.size if isinstance(body, Upload) else len(body)
        return head.origin, b"%b%b%bContent-Length: %d\r\n\r\n" % (
            head.method,
            path,
            head.rest,
            size,
        )

    def _make_head(
        self, method: str, url: str, headers: Mapping[str, str], content_type: str | None
    ) -> "_Head":
        target = parse_target(url)
        path = target.path
        sent = {**self._headers, **headers}
        if content_type is not None:
            sent["Content-Type"] = content_type
        lines = [("Host", target.host_header), *sent.items()]
        if self._proxy is not None and target.origin[0] == "http":
            path = f"http://{target.host_header}{path}"
            lines += self._proxy.headers
        return _Head(
            target.origin,
            f"{check_method(method)} ".encode(),
            path.encode(),
            b" HTTP/1.1\r\n" + header_lines(lines),
        )


@value_object
class _Head:
    """A request's head, up to where its length is added."""

    origin: Origin
    method: bytes
    path: bytes
    rest: bytes


class _Call:
    """Whether a call's request has been written."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


async def _upload(connection: Connection, head: bytes, upload: Upload, limits: Limits) -> Response:
    exchange = connection.start(head, limits)
    try:
        await connection.write_body(exchange, upload.parts())
        return await connection.whole(exchange)
    finally:
        connection.finish(exchange)
