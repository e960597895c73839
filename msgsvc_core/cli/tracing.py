"""Exports spans from the processes of the command line, as the `OTEL_*` variables say."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from msgsvc_core.config.optional import check_installed
from msgsvc_core.config.settings import Settings, SettingsError


@contextmanager
def exporting_spans(settings: Settings) -> Iterator[None]:
    """With tracing on, exports spans by OTLP over HTTP, the last ones at the end of the block.

    A provider that is set for the process, e.g. by `opentelemetry-instrument`, is left as it is. Raises
    `SettingsError` if OpenTelemetry's SDK or exporter is not installed.
    """
    if not settings.tracing.enabled:
        yield
        return
    from opentelemetry import trace  # noqa: PLC0415 - an optional package

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        yield
        return
    try:
        check_installed("opentelemetry.sdk", "tracing.enabled", "tracing")
        check_installed("opentelemetry.exporter.otlp.proto.http", "tracing.enabled", "tracing")
    except ValueError as error:
        raise SettingsError(str(error)) from None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - see above
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - see above

    ours = Resource.create({"service.name": "msgsvc", "service.version": version("msgsvc-core")})
    # What the environment says of the service counts.
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
