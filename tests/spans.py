"""The spans that a service records, in memory."""

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler

from msgsvc_core.telemetry.otel import OtelTracing

#: A span's name, and those within it in the order of their starts.
Tree = tuple[str, list["Tree"]]


class Recorded:
    """Give `tracing` to a service; `spans` are those that have ended."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=ParentBased(sampler), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = OtelTracing(provider)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of that name, in the order of their ends."""
        return [span for span in self.spans if span.name == name]

    def within(self, outer: ReadableSpan) -> list[ReadableSpan]:
        """The spans right within another, in the order of their starts."""
        found = [
            span
            for span in self.spans
            if span.parent and span.parent.span_id == context_of(outer).span_id
        ]
        return sorted(found, key=lambda span: span.start_time or 0)

    def tree(self, root: ReadableSpan) -> Tree:
        return root.name, [self.tree(span) for span in self.within(root)]


def context_of(span: ReadableSpan) -> Any:
    context = span.get_span_context()
    assert context is not None
    return context


def trace_id_of(span: ReadableSpan) -> str:
    return f"{context_of(span).trace_id:032x}"


def span_id_of(span: ReadableSpan) -> str:
    return f"{context_of(span).span_id:016x}"
