"""One connection to a server: a request at a time, and the response to it, read by llhttp."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable
from typing import cast

import httptools

from msgsvc_core.http_client.errors import CallError, ConnectionLost, InvalidResponse
from msgsvc_core.http_client.messages import Headers, Response
from msgsvc_core.kernel.values import value_object

#: Bytes of a streamed body that are held before the socket is read no further.
HELD_BYTES = 128 * 1024

#: Bytes that the framing of a chunked body may take for each byte of it: a chunk of one byte takes five
#: more. A server that sends more of it sends chunk extensions, which nobody needs.
FRAMING_FACTOR = 8


@value_object
class Limits:
    """Limits of a response."""

    #: Bytes of a body that is read whole; a larger one is an `InvalidResponse`.
    max_body_bytes: int = 16 * 1024 * 1024

    #: Bytes of the head, of trailers, and of interim responses.
    max_head_bytes: int = 64 * 1024

    #: Whether a body may end with the connection, so that one that was cut off can't be told from a whole
    #: one.
    until_close: bool = False


class Exchange:
    """A request, and the response as far as it has come."""

    __slots__ = (
        "body",
        "body_bytes",
        "content_length",
        "done",
        "ends_with_connection",
        "error",
        "headers",
        "is_chunked",
        "limits",
        "may_have_body",
        "received_bytes",
        "status",
        "waiter",
        "wants_stream",
    )

    def __init__(self, limits: Limits, *, wants_stream: bool, may_have_body: bool) -> None:
        self.limits = limits
        self.wants_stream = wants_stream
        #: False for HEAD: its response has only the headers of one.
        self.may_have_body = may_have_body
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.content_length: bytes | None = None
        self.is_chunked = False
        self.ends_with_connection = False
        self.body: deque[bytes] = deque()
        self.body_bytes = 0
        #: All bytes of the response, with its framing.
        self.received_bytes = 0
        self.done = False
        self.error: CallError | None = None
        #: Who waits for the head of a streamed response, its next part, or else for all of it.
        self.waiter: asyncio.Future[None] | None = None

    def check_framing(self, *, has_body: bool) -> None:
        """Raises `InvalidResponse` unless the body has one certain end, within the limits."""
        limits, length = self.limits, self.content_length
        head_bytes = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head_bytes > limits.max_head_bytes:
            raise InvalidResponse("the head is too large")
        if length is not None and self.is_chunked:
            raise InvalidResponse("both Content-Length and Transfer-Encoding")
        if not has_body:
            return
        if length is None and not self.is_chunked:
            if not limits.until_close:
                raise InvalidResponse("neither Content-Length nor chunked")
            self.ends_with_connection = True
        elif length and not self.wants_stream and int(length) > limits.max_body_bytes:
            raise InvalidResponse("the body is too large")

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def fail(self, error: CallError) -> None:
        if not self.done and self.error is None:
            self.error = error
            self.wake()


class Connection(asyncio.Protocol):
    """A connection that is open, made by `Connector`.

    It can be used again when a request and its response are both complete, the server keeps it open, and not
    a byte more has come. Otherwise a response could be taken for that to another request.
    """

    __slots__ = (
        "_can_write",
        "_exchange",
        "_is_paused",
        "_is_reusable",
        "_loop",
        "_parser",
        "_transport",
        "idle_since_s",
        "writes_body",
    )

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._is_reusable = True
        self._is_paused = False
        #: Set while the transport takes no more.
        self._can_write: asyncio.Future[None] | None = None
        self.writes_body = False
        #: Loop time at which it was put back into the pool.
        self.idle_since_s = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent."""
        return (
            self._is_reusable
            and self._exchange is None
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def close(self) -> None:
        """Closes it at once; what was written and is not sent yet is dropped."""
        self._is_reusable = False
        if self._transport is not None:
            self._transport.abort()

    async def call(self, request: bytes, limits: Limits, *, may_have_body: bool = True) -> Response:
        """Sends a request and returns the whole response. Raises `CallError`."""
        exchange = self.start(request, limits, may_have_body=may_have_body)
        try:
            return await self.whole(exchange)
        finally:
            self.finish(exchange)

    def start(
        self,
        data: bytes,
        limits: Limits,
        *,
        wants_stream: bool = False,
        may_have_body: bool = True,
    ) -> Exchange:
        """Writes the request or its beginning; `finish` must follow."""
        assert self._transport is not None
        assert self._exchange is None, "one request at a time"
        exchange = self._exchange = Exchange(
            limits, wants_stream=wants_stream, may_have_body=may_have_body
        )
        self._transport.write(data)
        return exchange

    def finish(self, exchange: Exchange) -> None:
        """Ends the exchange; the connection is closed unless all of the response has been received."""
        self._exchange = None
        if not exchange.done or self.writes_body or not self._is_reusable:
            self.close()
        else:
            self._resume_reading()

    async def write_body(self, exchange: Exchange, parts: AsyncIterable[bytes]) -> None:
        """Writes a body as fast as the server takes it, up to where the server responds."""
        assert self._transport is not None
        self.writes_body = True
        async for part in parts:
            # A server that refuses a file need not read it: its response counts.
            if exchange.status or exchange.error is not None:
                return
            self._transport.write(part)
            if self._can_write is not None:
                await self._can_write
        self.writes_body = False

    async def whole(self, exchange: Exchange) -> Response:
        """Waits for the whole response. Raises `CallError`."""
        await self._wait(exchange)
        return Response(exchange.status, Headers(exchange.headers), b"".join(exchange.body))

    async def response_head(self, exchange: Exchange) -> None:
        """Waits for the head of a response. Raises `CallError`."""
        while not exchange.status:
            await self._wait(exchange)

    async def next_part(self, exchange: Exchange) -> bytes | None:
        """The next part of a streamed body, None at its end. Raises `CallError`."""
        if self._exchange is not exchange and not exchange.done:
            raise RuntimeError("the block of this response has ended")
        while not exchange.body:
            if exchange.done:
                return None
            self._resume_reading()
            await self._wait(exchange)
        part = exchange.body.popleft()
        exchange.body_bytes -= len(part)
        return part

    def _pause_reading(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    async def _wait(self, exchange: Exchange) -> None:
        if exchange.error is None and not exchange.done:
            exchange.waiter = self._loop.create_future()
            await exchange.waiter
        if exchange.error is not None:
            raise exchange.error

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, but not the class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None or exchange.done:
            # Nothing was asked.
            self.close()
            return
        if exchange.error is not None:
            return
        exchange.received_bytes += len(data)
        try:
            self._parser.feed_data(data)
            self._check_size(exchange)
        except httptools.HttpParserUpgrade:
            self._refuse(exchange, InvalidResponse("the server switches protocols"))
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, InvalidResponse):
                raise
            self._refuse(exchange, cause)
        except InvalidResponse as error:
            self._refuse(exchange, error)
        except httptools.HttpParserError as error:
            self._refuse(exchange, InvalidResponse(f"not valid HTTP: {error}"))

    def eof_received(self) -> bool:
        self._is_reusable = False
        # Closes the transport, also for TLS.
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_reusable = False
        exchange = self._exchange
        if exchange is not None and not exchange.done:
            if exchange.ends_with_connection and error is None and exchange.error is None:
                exchange.done = True
                exchange.wake()
            else:
                exchange.fail(ConnectionLost(in_body=bool(exchange.status)))
        self.resume_writing()

    def pause_writing(self) -> None:
        self._can_write = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._can_write is not None:
            if not self._can_write.done():
                self._can_write.set_result(None)
            self._can_write = None

    # What the parser calls.

    def on_message_begin(self) -> None:
        exchange = self._current()
        if exchange.done:
            # More than was asked for. The response stands, and the connection ends with it.
            self._is_reusable = False
            raise InvalidResponse("a second response to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._current()
        if exchange.status:
            return  # trailers, which nobody reads; `_check_size` limits them
        exchange.headers.append((name, value))
        lowered = name.lower()
        if lowered == b"content-length":
            if exchange.content_length is not None or not (value.isdigit() and len(value) < 20):
                raise InvalidResponse("an ambiguous Content-Length")
            exchange.content_length = value
        elif lowered == b"transfer-encoding":
            if exchange.is_chunked or value.strip().lower() != b"chunked":
                raise InvalidResponse("a Transfer-Encoding other than chunked")
            exchange.is_chunked = True

    def on_headers_complete(self) -> None:
        exchange = self._current()
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101 or exchange.content_length is not None or exchange.is_chunked:
                raise InvalidResponse("an interim response that ends the exchange or has a body")
            # 100 or 103: the response follows.
            exchange.headers.clear()
            return
        version = self._parser.get_http_version()
        if version != "1.1" and (version != "1.0" or exchange.is_chunked):
            raise InvalidResponse("not a response of HTTP/1.1")
        exchange.check_framing(has_body=exchange.may_have_body and status not in {204, 304})
        exchange.status = status
        if not exchange.may_have_body:
            # The parser waits for a body, so it can't read another response.
            self._is_reusable = False
            exchange.done = True
        if exchange.wants_stream or exchange.done:
            exchange.wake()
        # The server need not read the rest of a request's body.
        self.resume_writing()

    def on_body(self, data: bytes) -> None:
        exchange = self._current()
        if exchange.done:
            return
        exchange.body.append(data)
        exchange.body_bytes += len(data)
        if exchange.wants_stream:
            exchange.received_bytes = 0
            exchange.wake()
            if exchange.body_bytes > HELD_BYTES:
                self._pause_reading()
        elif exchange.body_bytes > exchange.limits.max_body_bytes:
            raise InvalidResponse("the body is too large")

    def on_message_complete(self) -> None:
        exchange = self._current()
        if not exchange.status:
            return  # an interim response
        exchange.done = True
        if not self._parser.should_keep_alive():
            self._is_reusable = False
        exchange.wake()

    def _current(self) -> Exchange:
        assert self._exchange is not None, "data_received drops what nobody asked for"
        return self._exchange

    def _check_size(self, exchange: Exchange) -> None:
        """Bounds a head, trailers, chunk extensions and interim responses that never end."""
        framing = exchange.received_bytes - FRAMING_FACTOR * exchange.body_bytes
        if not exchange.done and framing > exchange.limits.max_head_bytes:
            raise InvalidResponse("the head is too large")

    def _refuse(self, exchange: Exchange, error: CallError) -> None:
        exchange.fail(error)
        self.close()
