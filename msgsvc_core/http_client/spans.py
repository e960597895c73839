"""Spans of calls to other servers, by OpenTelemetry's conventions for HTTP clients.

They leave out `url.full`, which the conventions ask for: paths and queries hold tokens.
"""

from contextlib import AbstractContextManager

from msgsvc_core.http_client.messages import parse_target
from msgsvc_core.kernel.tracing import Span, child_span, current_span


def call_span(method: str, url: str, template: str | None) -> AbstractContextManager[Span | None]:
    """A span of one call within the current one; nothing without one. Raises ValueError for a URL that is
    none."""
    if current_span() is None:
        return child_span(method)
    scheme, host, port = parse_target(url).origin
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "url.scheme": scheme,
        "server.address": host,
        "server.port": port,
    }
    name = method
    if template is not None:
        attributes["url.template"] = template
        name = f"{method} {template}"
    return child_span(name, "client", attributes)


def note_status(span: Span, status: int) -> None:
    """Records the status of a response; from 400 on the call has failed."""
    span.set("http.response.status_code", status)
    if status >= 400:
        span.fail(str(status))
