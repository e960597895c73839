"""Traces through OpenTelemetry: by its API alone, whichever SDK records them.

Import this only where tracing is on: the API is an optional package.
"""

from collections.abc import Callable
from importlib.metadata import version

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from msgsvc_core.kernel.tracing import Attributes, Kind

_KINDS = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
    "internal": SpanKind.INTERNAL,
}

_W3C = TraceContextTextMapPropagator()


class OtelTracing:
    """Implements `Tracing`. `provider` records the spans, by default the one that is set for the process."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer(
            "msgsvc",
            version("msgsvc-core"),
            tracer_provider=provider or trace.get_tracer_provider(),
        )

    def start(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        parent: str | None = None,
        link: str | None = None,
    ) -> "OtelSpan | None":
        # An application around this one may have a span; jobs and updates start in an empty context.
        context = None if parent is None else _context_of(parent)
        linked = None if link is None else _context_of(link)
        links = [] if linked is None else [Link(trace.get_current_span(linked).get_span_context())]
        if linked is not None and context is None:
            context = Context()
        span = self._tracer.start_span(
            name, context, kind=_KINDS[kind], attributes=dict(attributes), links=links
        )
        # Without an SDK there is a span only if there was one before.
        return OtelSpan(self._tracer, span) if span.get_span_context().is_valid else None


class OtelSpan:
    """Implements `Span`."""

    __slots__ = ("_span", "_tracer")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    @property
    def span_id(self) -> str:
        return trace.format_span_id(self._span.get_span_context().span_id)

    @property
    def is_sampled(self) -> bool:
        return self._span.get_span_context().trace_flags.sampled

    @property
    def traceparent(self) -> str:
        flags = self._span.get_span_context().trace_flags
        return f"00-{self.trace_id}-{self.span_id}-{flags:02x}"

    def child(self, name: str, kind: Kind, attributes: Attributes) -> "OtelSpan":
        context = trace.set_span_in_context(self._span)
        span = self._tracer.start_span(
            name, context, kind=_KINDS[kind], attributes=dict(attributes)
        )
        return OtelSpan(self._tracer, span)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set(self, name: str, value: str | int) -> None:
        self._span.set_attribute(name, value)

    def fail(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        self._span.end()

    def attach(self) -> Callable[[], None]:
        before = contexts.get_current()
        contexts.attach(trace.set_span_in_context(self._span))
        # Not by the token of `attach`: see `kernel.tracing`.
        return lambda: _restore(before)


def _restore(before: Context) -> None:
    contexts.attach(before)


def _context_of(traceparent: str) -> Context | None:
    """The context that a `traceparent` stands for; None for an invalid one."""
    context = _W3C.extract({"traceparent": traceparent}, Context())
    return context if trace.get_current_span(context).get_span_context().is_valid else None
