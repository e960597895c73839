"""Limits for connections, and the sweep that checks all of them every second."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import Receive, Scope, Send

from msgsvc_core.api.envelope import envelope
from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.telemetry import Metrics

#: Minimum bytes per second of a request body after `server.body_timeout_s`. A phone with poor reception is
#: ten times as fast.
LEAST_BODY_RATE = 1024

#: Maximum seconds counted between two sweeps. If more have passed, the process was suspended or its loop
#: blocked, and data that peers sent meanwhile has not been read yet.
MOST_BETWEEN_S = 2.0

#: Connections accepted beyond `server.max_connections`, to respond to them with an error.
SPARE_CONNECTIONS = 100

#: Seconds for the head of a request on one of those.
SPARE_TIMEOUT_S = 2.0

#: Why the server closes or refuses a connection.
CUT_REASONS = ("header", "body", "idle", "send")
REFUSE_REASONS = ("full", "head_too_large", "not_http")


class LimitedConnection(Protocol):
    """A connection that the sweep can check."""

    def overdue(self, now: float) -> str | None:
        """Which deadline has passed; None if none has."""
        ...

    def cut(self) -> None:
        """Closes it immediately."""
        ...


class ConnectionLimits(Collector):
    """State shared by all connections of a server: settings, time, and counters."""

    def __init__(
        self,
        settings: ServerSettings,
        errors_url: str,
        metrics: Metrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._errors_url = errors_url
        self._monotonic = monotonic
        #: Seconds that the server has been running, as of the last sweep. A resolution of a second is enough
        #: for deadlines, and saves reading the clock for each request.
        self.now = 0.0
        self._swept_at = monotonic()
        self._open = 0
        #: Whether each response ends its connection, so that the next request comes to another process.
        self.draining = False
        cut = Counter(
            "msgsvc_http_connections_cut",
            "Connections closed because a deadline passed: for the head, the body, the idle time"
            " between requests, or for reading the response.",
            ["reason"],
            registry=metrics.registry,
        )
        refused = Counter(
            "msgsvc_http_connections_refused",
            "Connections refused: limit reached, head too large, or not HTTP.",
            ["reason"],
            registry=metrics.registry,
        )
        # All labels exist from the start, so that an alert sees the first increase.
        self._cut = {reason: cut.labels(reason) for reason in CUT_REASONS}
        self._refused = {reason: refused.labels(reason) for reason in REFUSE_REASONS}
        metrics.registry.register(self)

    def sweep(self, connections: Iterable[LimitedConnection]) -> None:
        """Closes the connections whose deadline has passed."""
        before, self._swept_at = self._swept_at, self._monotonic()
        self.now += min(self._swept_at - before, MOST_BETWEEN_S)
        known = list(connections)
        self._open = len(known)
        for connection in known:
            reason = connection.overdue(self.now)
            if reason is not None:
                self._cut[reason].inc()
                connection.cut()

    def refuse(self, reason: str, error: ApiError) -> "Refusal":
        """Counts a refusal; returns an ASGI application that responds with the error."""
        self._refused[reason].inc()
        return Refusal(error, self._errors_url)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("msgsvc_http_connections", "Open connections.", self._open)
        yield GaugeMetricFamily(
            "msgsvc_http_connections_max",
            "Maximum number of connections.",
            self.settings.max_connections,
        )


class Refusal:
    """Responds to any request with one error, and then closes the connection."""

    def __init__(self, error: ApiError, errors_url: str) -> None:
        self._response = envelope(error, errors_url)
        self._response.headers["Connection"] = "close"
        self._response.headers["X-Request-Id"] = new_id("req")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(scope, receive, send)

    @property
    def status(self) -> int:
        return self._response.status_code

    def to_http(self) -> bytes:
        """The same, for a connection on which no request could be read."""
        headers = b"".join(b"%b: %b\r\n" % pair for pair in self._response.raw_headers)
        return b"HTTP/1.1 %d \r\n%b\r\n%b" % (self.status, headers, bytes(self._response.body))
