"""Every request gets an id and a log line; what fails outside an endpoint gets the envelope too."""

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msgsvc_core.api.envelope import api_error, envelope
from msgsvc_core.config.sections import LogSettings
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.telemetry.logs import request_lines
from msgsvc_core.telemetry.request_metrics import RequestMetrics

ID_HEADER = b"x-request-id"


class RequestLog:
    """Pure ASGI middleware (Starlette's `BaseHTTPMiddleware` cost 80 % of the throughput)."""

    def __init__(
        self, app: ASGIApp, *, errors_url: str, log: LogSettings, metrics: RequestMetrics
    ) -> None:
        self._app = app
        self._errors_url = errors_url
        self._write_line = request_lines(log)
        self._metrics = metrics

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

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = [(name, value) for name, value in message["headers"] if name != ID_HEADER]
                message["headers"] = [*headers, (ID_HEADER, request_id.encode())]
            await send(message)

        metrics = self._metrics
        metrics.in_flight += 1
        started = time.perf_counter()
        try:
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
            endpoint = state.get("endpoint", "page")
            metrics.observe(scope["method"], endpoint, status, seconds)
            self._write_line(
                method=scope["method"],
                endpoint=endpoint,
                status=status,
                duration_ms=round(seconds * 1000, 1),
                request_id=request_id,
                project_id=state.get("project_id"),
            )
            # Only what is ours: an application that mounts this one may have bound more.
            structlog.contextvars.unbind_contextvars("request_id", "project_id")
