"""HTTP/1.1 client: calls over connections that are kept, each sent once."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from urllib.parse import urlencode

from msgsvc_core.http_client.connecting import Connector
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
from msgsvc_core.http_client.spans import call_span, note_status
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

#: Headers that the client sets itself. Servers understand a request with two of them in different ways.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding"})

DEFAULT_LIMITS = Limits()

_NO_HEADERS: Mapping[str, str] = {}


class StreamedResponse(Response):
    """A response whose body is read in parts, by `parts`, within the block of `HttpClient.stream`."""

    __slots__ = ("_connection", "_deadlines", "_exchange", "_idle_s")

    def __init__(
        self,
        connection: Connection,
        exchange: Exchange,
        deadlines: TimeoutPool,
        idle_s: float | None,
    ) -> None:
        super().__init__(exchange.status, Headers(exchange.headers))
        self._connection = connection
        self._exchange = exchange
        self._deadlines = deadlines
        self._idle_s = idle_s

    async def parts(self) -> AsyncIterator[bytes]:
        """The body, as it comes. Raises `CallError`."""
        while True:
            try:
                with _within(self._deadlines, self._idle_s):
                    part = await self._connection.next_part(self._exchange)
            except TimeoutError:
                raise CallTimeout(sent=True) from None
            if part is None:
                return
            yield part


class HttpClient:
    """Makes calls to servers, with connections of its own; used in one event loop.

    A request is sent once: if it may have reached the server, an error says so (`CallError.sent`). Redirects
    are not followed, cookies are not kept, and proxies of the environment are ignored. `connections` is the
    maximum at a time, None for any number. `headers` are sent with every request. `connect_s` is how long
    connecting may take, by default `CONNECT_S` or half of a call's timeout.
    """

    def __init__(
        self,
        connector: Connector,
        *,
        headers: Mapping[str, str] | None = None,
        connections: int | None = 100,
        connect_s: float | None = None,
    ) -> None:
        self._connector = connector
        self._proxy = connector.proxy
        self._connect_s = connect_s
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
        template: str | None = None,
    ) -> Response:
        """The whole response, with any status. `params` are added to the URL's query. `template` is the URL's
        path in traces, without secrets and ids.

        Raises `CallError`, ValueError for a URL or header that is invalid, and `OSError` if a file of an
        upload can't be read; then the server has received a part of the request.
        """
        call = _Call()
        with call_span(method, url, template) as span:
            try:
                with self._deadlines.timeout(timeout_s):
                    origin, head = self._request(method, url, params, headers, body, content_type)
                    connection = await self._connected(origin, timeout_s)
                    try:
                        call.sent = True
                        if isinstance(body, Upload):
                            response = await _upload(connection, head, body, limits)
                        else:
                            response = await connection.call(
                                head + (body or b""), limits, may_have_body=method != "HEAD"
                            )
                    finally:
                        self._pool.release(origin, connection)
            except CallError:
                raise
            except TimeoutError:
                raise CallTimeout(sent=call.sent) from None
            if span is not None:
                note_status(span, response.status)
            return response

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
        idle_s: float | None = None,
        limits: Limits = DEFAULT_LIMITS,
        propagates_trace: bool = False,
    ) -> AsyncIterator[StreamedResponse]:
        """The same, with the body in parts; what is not read at the end of the block is dropped.

        The timeout covers the block. `idle_s` is how long the server may take to begin its response, and
        from one part to the next. With `propagates_trace` the server gets a `traceparent`, if there is a
        trace.
        """
        with call_span(method, url, None) as span:
            if span is not None and propagates_trace:
                headers = {**headers, "traceparent": span.traceparent}
            streaming = self._stream(
                method, url, params, body, content_type, headers, timeout_s, idle_s, limits
            )
            async with streaming as response:
                if span is not None:
                    note_status(span, response.status)
                yield response

    @asynccontextmanager
    async def _stream(
        self,
        method: str,
        url: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str | None,
        headers: Mapping[str, str],
        timeout_s: float,
        idle_s: float | None,
        limits: Limits,
    ) -> AsyncIterator[StreamedResponse]:
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
                        with _within(self._deadlines, idle_s):
                            await connection.response_head(exchange)
                        yield StreamedResponse(connection, exchange, self._deadlines, idle_s)
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

    async def _connected(self, origin: Origin, timeout_s: float) -> Connection:
        # Without a second timeout, which would be a tenth of a call's cost.
        connection = self._pool.take(origin)
        if connection is not None:
            return connection
        try:
            with self._deadlines.timeout(self._connect_s or min(CONNECT_S, timeout_s / 2)):
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
        # The boundary in an upload's type is random, so its head does not occur again.
        if headers or isinstance(body, Upload):
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
        # The last of each name in any case: a second one would contradict the first.
        sent = {
            name.lower(): (name, value)
            for name, value in [*self._headers.items(), *headers.items()]
        }
        if content_type is not None:
            sent["content-type"] = ("Content-Type", content_type)
        if not _OWN_HEADERS.isdisjoint(sent):
            raise ValueError("Host and the length of the body are the client's to set")
        lines = [("Host", target.host_header), *sent.values()]
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


def _within(deadlines: TimeoutPool, idle_s: float | None) -> AbstractContextManager[None]:
    """A timeout besides that of the call, if there is one."""
    return nullcontext() if idle_s is None else deadlines.timeout(idle_s)


async def _upload(connection: Connection, head: bytes, upload: Upload, limits: Limits) -> Response:
    exchange = connection.start(head, limits)
    try:
        async with aclosing(upload.parts()) as parts:
            await connection.write_body(exchange, parts)
        return await connection.whole(exchange)
    finally:
        connection.finish(exchange)
