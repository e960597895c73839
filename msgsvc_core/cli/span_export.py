"""Exports spans by OpenTelemetry's SDK. Import it only where tracing is on: the SDK is optional."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version

import structlog
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

#: Seconds for the last spans at the end of the process.
STOP_S = 3.0

log = structlog.get_logger(__name__)


@contextmanager
def exporting() -> Iterator[None]:
    """Exports the process's spans by OTLP over HTTP during the block."""
    ours = Resource.create({"service.name": "msgsvc", "service.version": version("msgsvc-core")})
    exporter = ReportingExporter(OTLPSpanExporter())
    # What the environment says of the service counts.
    provider = TracerProvider(
        resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        # Else a collector that is away would hold up the end for as long as an export may take.
        hurry = threading.Timer(STOP_S, exporter.shutdown)
        hurry.start()
        provider.shutdown()
        hurry.cancel()


class ReportingExporter(SpanExporter):
    """Logs once that spans can't be exported, with the exporter's reason, and once that they can again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._is_failing = False
        self._is_shut_down = False
        self._reasons = logging.getLogger("opentelemetry.exporter")
        # Each batch is tried several times, with a warning for each.
        self._reasons.setLevel(logging.ERROR)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing != self._is_failing:
            self._is_failing = is_failing
            self._reasons.setLevel(logging.CRITICAL if is_failing else logging.ERROR)
            if is_failing:
                log.warning("spans_not_exported", count=len(spans))
            else:
                log.info("spans_exported_again")
        return result

    def shutdown(self) -> None:
        if not self._is_shut_down:
            self._is_shut_down = True
            self._exporter.shutdown()
