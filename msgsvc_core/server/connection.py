"""uvicorn's connection, with timeouts and limits.

uvicorn waits forever for an incomplete head or body, and httptools accepts heads of any size. This adds a
few attributes per request and no timers: the limits are checked for all connections once a second.
"""

import asyncio
import fcntl
import sys
import termios
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from msgsvc_core.kernel.errors import ApiError, BadRequest, Unavailable
from msgsvc_core.server.buffered_transport import BufferedTransport
from msgsvc_core.server.connection_limits import (
    LEAST_BODY_RATE,
    SPARE_CONNECTIONS,
    SPARE_TIMEOUT_S,
    ConnectionLimits,
)
from msgsvc_core.server.exchange import Exchange

#: A health probe that gets a response even at the connection limit.
HEALTH = b"/healthz"

#: Allowed bytes of framing per byte of a chunked body; chunks of one byte have five.
MOST_FRAMING = 8


#: The part of a request being read. Integers, since access to an `Enum` member takes three times as long.
HEAD, BODY, BETWEEN = range(3)


class _Trailers(list[tuple[bytes, bytes]]):
    """Discards trailers of a chunked body, so that they don't appear among the headers already checked."""

    def append(self, _header: tuple[bytes, bytes]) -> None:
        pass


class GuardedConnection(HttpToolsProtocol):
    """One connection within the limits of `ConnectionLimits`."""

    # With uvicorn's own attributes these are more than the 30 names for which Python shares keys between
    # instances of a class: without slots each connection took 1.3 KiB more.
    __slots__ = (
        "_body_bytes",
        "_chunk",
        "_first_chunk",
        "_framing_bytes",
        "_guard",
        "_head_bytes",
        "_max_head",
        "_phase",
        "_since",
        "_spare",
        "_unsent",
        "_unsent_since",
    )

    def __init__(
        self,
        guard: ConnectionLimits,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        settings = guard.settings
        self._guard = guard
        self._max_head = settings.max_header_bytes
        #: Whether it was opened when all connections were in use.
        self._spare = False
        self._phase = HEAD
        #: When the phase began; updated while the peer waits for us.
        self._since = guard.now
        #: Bytes of the current read; a head or body may start anywhere in it.
        self._chunk = 0
        #: Bytes of the head, including the whole read in which it started; and of that read.
        self._head_bytes = self._first_chunk = 0
        self._body_bytes = 0
        self._framing_bytes = 0
        #: Bytes not yet received by the peer at the last sweep, and since when it has received none.
        self._unsent = 0
        self._unsent_since = 0.0

    # ---- deadlines ------------------------------------------------------------------------------

    def overdue(self, now: float) -> str | None:
        """Which deadline has passed: `header`, `body`, `idle` or `send`; None if none has."""
        settings = self._guard.settings
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            unsent += _in_kernel(self.transport)
            # A slow download continues as long as the peer receives anything.
            if unsent < self._unsent or not self._unsent:
                self._unsent_since = now
            self._unsent = unsent
            return "send" if now - self._unsent_since > settings.send_timeout_s else None
        self._unsent = 0
        if self.transport.is_closing() and self._phase is not BODY:
            return None
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._phase is BODY:
            return self._overdue_body(now, answering)
        if answering:
            # A long poll, a live page, or a running handler: the peer waits for us.
            self._since = now
            return None
        if self._phase is HEAD:
            allowed_s = SPARE_TIMEOUT_S if self._spare else settings.header_timeout_s
            return "header" if now - self._since > allowed_s else None
        return "idle" if now - self._since > settings.keep_alive_s else None

    def _overdue_body(self, now: float, answering: bool) -> str | None:
        if self.flow.read_paused:
            # We are the slow side.
            self._since = now
            return None
        allowed_s = self._guard.settings.body_timeout_s
        if answering:
            allowed_s += self._body_bytes / LEAST_BODY_RATE
        # Otherwise the response was sent, most likely an error, and the rest is not read.
        return "body" if now - self._since > allowed_s else None

    def cut(self) -> None:
        # Not `close`, which waits until the peer has received what was written.
        self.transport.abort()

    # ---- reading --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(BufferedTransport(transport, self.loop, self._is_receiving))
        beyond = len(self.connections) - self._guard.settings.max_connections
        if beyond > 0:
            self._spare = True
            if beyond > SPARE_CONNECTIONS:
                self._refuse("full", _full())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        cast("BufferedTransport", self.transport).lost()

    def _is_receiving(self) -> bool:
        return self._phase is BODY

    def data_received(self, data: bytes) -> None:
        self._chunk = len(data)
        super().data_received(data)
        if self._phase is HEAD:
            self._head_bytes += len(data)
            if self._head_bytes - self._first_chunk > self._max_head:
                self._refuse("head_too_large", self._too_large())
        elif self._phase is BODY:
            self._framing_bytes += len(data)
            if self._framing_bytes > self._max_head + MOST_FRAMING * self._body_bytes:
                # Endless chunk extensions or trailers, which the parser would buffer.
                self.cut()

    def on_message_begin(self) -> None:
        self._phase = HEAD
        self._since = self._guard.now
        self._head_bytes = 0
        self._first_chunk = self._chunk
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._phase = BODY
        self._since = self._guard.now
        self._body_bytes = 0
        self._framing_bytes = -self._chunk
        if self.transport.is_closing():
            # A pipelined request after the last one that gets a response.
            pass
        elif self._spare or self._head_bytes + self._chunk > self._max_head:
            self._complete_doubtful_head()
        elif self._names_one_host():
            self._start(self.app)
        else:
            self._start(self._guard.refuse("not_http", _no_host()))
        self.headers = _TRAILERS

    def _start(self, app: Any) -> None:
        """Runs `app` for the request whose head was read, once the earlier ones have their responses."""
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        url = httptools.parse_url(self.url)
        scope["raw_path"] = url.path
        scope["path"] = unquote(url.path.decode("ascii"))
        scope["query_string"] = url.query or b""
        before = self.cycle
        self.cycle = Exchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive() and not self._guard.draining,
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def on_response_complete(self) -> None:
        # Without uvicorn's keep-alive timer: the periodic sweep finds idle connections.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            if self._phase is BODY:
                # The rest of the body is discarded; then the connection is closed.
                self.flow.resume_reading()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._framing_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = BETWEEN
        super().on_message_complete()
        if self.transport.is_closing():
            self.transport.close()

    # ---- refusing -------------------------------------------------------------------------------

    def _complete_doubtful_head(self) -> None:
        """Passes a request on, or responds with an error."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        app: Any = self.app
        if size > self._max_head:
            app = self._guard.refuse("head_too_large", self._too_large())
        elif self._spare and self.url != HEALTH:
            app = self._guard.refuse("full", _full())
        elif not self._names_one_host():
            app = self._guard.refuse("not_http", _no_host())
        self._start(app)
        if self._spare:
            self.cycle.keep_alive = False

    def _names_one_host(self) -> bool:
        """Whether the head complies with RFC 9112, section 3.2: all parsers must agree on the host.
        HTTP/1.0 has no Host."""
        hosts = [value for name, value in self.headers if name == b"host"]
        return len(hosts) == 1 or (not hosts and self.parser.get_http_version() == "1.0")

    def send_400_response(self, _msg: str) -> None:
        self._refuse("not_http", BadRequest("this is not HTTP/1.1, or not well-formed"))

    def _unsupported_upgrade_warning(self) -> None:
        """Logs nothing: the upgrade is ignored, and any client can request one."""

    def _refuse(self, reason: str, error: ApiError) -> None:
        """Responds without a request, unless another response is being sent, and closes."""
        if self.transport.is_closing():
            return
        refusal = self._guard.refuse(reason, error)
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.write(refusal.to_http())
        elif self._phase is BODY and not self.pipeline and not cycle.response_started:
            # To the request whose body can't be read; further output of its handler is discarded.
            cycle.disconnected = True
            cycle.message_event.set()
            self.transport.write(refusal.to_http())
        # The rest of the request can't be parsed.
        self._phase = BETWEEN
        self.transport.close()

    def _too_large(self) -> ApiError:
        return BadRequest(
            "the head of the request is larger than {limit} bytes", limit=self._max_head
        )


_TRAILERS = _Trailers()


def _in_kernel(transport: asyncio.Transport) -> int:
    """Bytes in the kernel's send buffer that the peer has not acknowledged.

    Without them a slow download seems stalled: the kernel accepts more only when a third of its buffer, up
    to megabytes, is free again.
    """
    socket = transport.get_extra_info("socket")
    try:
        answer = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4))
    except (AttributeError, OSError, ValueError):
        # Just closed: there is no socket or file descriptor any more.
        return 0
    return int.from_bytes(answer, sys.byteorder)


def _no_host() -> ApiError:
    return BadRequest("the request must have exactly one Host header")


def _full() -> ApiError:
    return Unavailable("all connections are taken", retry_after_s=1)
