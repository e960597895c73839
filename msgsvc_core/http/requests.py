"""Every request gets an id, a log line and, with tracing, a span; what fails outside an endpoint gets the
envelope too."""

import time
from collections.abc import Sequence

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msgsvc_core.api.envelope import api_error, envelope
from msgsvc_core.http.base_path import path_within
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.tracing import Span, Tracing, within
from msgsvc_core.telemetry.logs import RequestLines
from msgsvc_core.telemetry.request_metrics import METHODS, RequestMetrics

ID_HEADER = b"x-request-id"
TRACE_HEADER = b"traceparent"

#: Paths that monitors ask for all the time: traces and lines of them would say nothing.
PROBES = frozenset({"/healthz", "/metrics", "/readyz"})

#: The endpoint of requests for pages in metrics and logs.
PAGE = "page"


class RequestLog:
    """Pure ASGI middleware (Starlette's `BaseHTTPMiddleware` cost 80 % of the throughput)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        errors_url: str,
        lines: RequestLines,
        metrics: RequestMetrics,
        tracing: Tracing | None = None,
        trust_incoming: bool = False,
        added: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        #: Headers of every response.
        self._added = tuple(added)
        self._app = app
        self._errors_url = errors_url
        self._lines = lines
        self._metrics = metrics
        self._tracing = tracing
        self._trust_incoming = trust_incoming

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The id is always ours: one from outside could carry anything into the logs.
        request_id = new_id("req")
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        structlog.contextvars.bind_contextvars(request_id=request_id)
        status = 0
        span = None if self._tracing is None else self._new_span(self._tracing, scope)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = [(name, value) for name, value in message["headers"] if name != ID_HEADER]
                message["headers"] = [*headers, *self._added, (ID_HEADER, request_id.encode())]
            await send(message)

        metrics = self._metrics
        metrics.in_flight += 1
        started = time.perf_counter()
        try:
            with within(span):
                await self._app(scope, receive, send_with_id)
        except Exception as error:
            answer = envelope(api_error(error), self._errors_url)
            if status:
                raise
            await answer(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            metrics.in_flight -= 1
            # The template of the path, not the path: ids and tokens stay out of logs and labels.
            endpoint = state.get("endpoint", PAGE)
            metrics.observe(scope["method"], endpoint, status, seconds)
            ids = {}
            if span is not None:
                ids = {"trace_id": span.trace_id, "span_id": span.span_id}
                _end(span, scope, endpoint, status)
            write_line = self._lines.probe if path_within(scope) in PROBES else self._lines.request
            write_line(
                method=scope["method"],
                endpoint=endpoint,
                status=status,
                duration_ms=round(seconds * 1000, 1),
                request_id=request_id,
                project_id=state.get("project_id"),
                **ids,
            )
            # Only what is ours: an application that mounts this one may have bound more.
            structlog.contextvars.unbind_contextvars("request_id", "project_id")

    def _new_span(self, tracing: Tracing, scope: Scope) -> Span | None:
        if path_within(scope) in PROBES:
            return None
        incoming = next(
            (value.decode("latin-1") for name, value in scope["headers"] if name == TRACE_HEADER),
            None,
        )
        method = _method(scope)
        return tracing.start(
            method,
            "server",
            {
                "http.request.method": method,
                "url.scheme": scope["scheme"],
                "msgsvc.request_id": scope["state"]["request_id"],
            },
            parent=incoming if self._trust_incoming else None,
            link=None if self._trust_incoming else incoming,
        )


def _end(span: Span, scope: Scope, endpoint: str, status: int) -> None:
    """Ends a request's span, named by its route: the path holds ids, and those of pages hold tokens."""
    route = getattr(scope.get("route"), "path", None) if endpoint == PAGE else endpoint
    if route is not None:
        span.set("http.route", route)
        span.rename(f"{_method(scope)} {route}")
    if project_id := scope["state"].get("project_id"):
        span.set("msgsvc.project_id", project_id)
    if status:
        span.set("http.response.status_code", status)
    if status >= 500 or not status:
        span.fail(str(status) if status else "no_response")
    span.end()


def _method(scope: Scope) -> str:
    # Clients may send any text.
    return scope["method"] if scope["method"] in METHODS else "_OTHER"
