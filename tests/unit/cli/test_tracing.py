"""`tracing.enabled`: spans of `msgsvc serve` arrive at a collector."""

import logging
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import structlog.testing
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from msgsvc_core.cli.span_export import ReportingExporter
from tests.process import Deployment

CONFIG = """
plugins = ["sandbox"]
[channels.messenger_a]
plugin = "sandbox"
[tracing]
enabled = true
"""


class Collector(ThreadingHTTPServer):
    """Receives spans by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[ExportTraceServiceRequest] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def names(self) -> list[str]:
        return [
            span.name
            for request in self.received
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, str]:
        [resource, *_] = self.received[0].resource_spans
        return {each.key: each.value.string_value for each in resource.resource.attributes}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip  # noqa: PLC0415 - only if it is compressed

            body = gzip.decompress(body)
        assert self.path == "/v1/traces"
        self.server.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: tests read standard error."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("variables", "name"), [({}, "msgsvc"), ({"OTEL_SERVICE_NAME": "shop"}, "shop")]
)
def test_a_server_exports_its_spans_until_its_end(
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    name: str,
) -> None:
    for variable, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **variables}.items():
        monkeypatch.setenv(variable, value)
    deployment = Deployment(tmp_path)
    deployment.configure(CONFIG)
    with deployment.serving() as server:
        urllib.request.urlopen(f"{server.url}/docs/errors").close()

    assert "GET /docs/errors" in collector.names
    assert collector.resource["service.name"] == name
    assert collector.resource["service.version"]


def test_a_collector_that_is_away_delays_the_end_by_seconds_and_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
    deployment = Deployment(tmp_path)
    deployment.configure(CONFIG)
    with deployment.serving() as server:
        urllib.request.urlopen(f"{server.url}/docs/errors").close()
        began_s = time.monotonic()
    took_s = time.monotonic() - began_s

    log = (tmp_path / "serve.log").read_text()
    assert took_s < 30  # the exporter alone would try for a minute
    assert log.count("spans_not_exported") == 1
    assert "Transient" not in log
    assert "s3cret" not in log


class Flaky(SpanExporter):
    """Fails as told."""

    def __init__(self, *results: SpanExportResult) -> None:
        self._results = list(results)
        self.shutdowns = 0

    def export(self, _spans: object) -> SpanExportResult:
        logging.getLogger("opentelemetry.exporter.flaky").error("because")
        return self._results.pop(0)

    def shutdown(self) -> None:
        self.shutdowns += 1


def test_an_outage_of_the_collector_is_logged_at_its_start_and_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, good = SpanExportResult.FAILURE, SpanExportResult.SUCCESS
    flaky = Flaky(bad, bad, bad, good, good)
    exporter = ReportingExporter(flaky)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            exporter.export([])
        reasons = [record.message for record in caplog.records]
        for _ in range(2):
            exporter.export([])
    exporter.shutdown()
    exporter.shutdown()

    assert [line["event"] for line in lines] == ["spans_not_exported", "spans_exported_again"]
    assert reasons == ["because"]
    assert flaky.shutdowns == 1
