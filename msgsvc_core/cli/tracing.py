"""Exports spans from the processes of the command line, as the `OTEL_*` variables say."""

from contextlib import AbstractContextManager, nullcontext

from msgsvc_core.config.optional import check_installed
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError


def exporting_spans(settings: Settings) -> AbstractContextManager[None]:
    """With tracing on, exports spans by OTLP over HTTP during the block, the last ones at its end.

    A provider that is set for the process, e.g. by `opentelemetry-instrument`, is left as it is. Raises
    `SettingsError` if OpenTelemetry's SDK or exporter is not installed.
    """
    if not settings.tracing.enabled:
        return nullcontext()
    from opentelemetry import trace  # noqa: PLC0415 - an optional package

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return nullcontext()
    try:
        for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
            check_installed(module, "tracing.enabled", "tracing")
    except ValueError as error:
        raise SettingsError(str(error)) from None
    from msgsvc_core.cli.span_export import exporting  # noqa: PLC0415 - imports the SDK, an optional package

    return exporting()
