"""Spans of calls, and what holds where OpenTelemetry is not installed."""

import subprocess
import sys
from contextvars import Context
from pathlib import Path

import pytest
from opentelemetry import trace

from msgsvc_core.http_client.spans import call_span, note_status
from msgsvc_core.kernel.tracing import (
    child_span,
    current_span,
    current_trace_id,
    current_traceparent,
    first_span,
    within,
)
from msgsvc_core.telemetry.otel import OtelTracing
from msgsvc_devkit.services import SECRET_KEY
from tests.spans import Recorded, trace_id_of


def test_without_a_trace_nothing_is_current() -> None:
    with child_span("transaction") as span, call_span("POST", "no URL at all", None) as call:
        assert span is None
        assert call is None
        assert current_traceparent() is None
        assert current_trace_id() is None


def test_a_provider_without_an_sdk_records_nothing() -> None:
    tracing = OtelTracing(trace.NoOpTracerProvider())

    assert tracing.start("GET", "server", {}) is None
    with first_span(tracing, "GET", "server"):
        assert current_span() is None


def test_spans_nest_and_the_outer_one_is_current_again() -> None:
    recorded = Recorded()
    with first_span(recorded.tracing, "outer", "consumer") as outer:
        with child_span("inner", "client", {"db.system.name": "sqlite"}):
            assert current_span() is not outer
        assert current_span() is outer
    assert current_span() is None

    [span] = recorded.named("outer")
    assert recorded.tree(span) == ("outer", [("inner", [])])


def test_instrumented_libraries_see_the_current_span() -> None:
    recorded = Recorded()
    with first_span(recorded.tracing, "outer", "consumer") as outer:
        assert outer is not None
        seen = trace.format_span_id(trace.get_current_span().get_span_context().span_id)

        assert seen == outer.span_id
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_failure_is_recorded_by_the_name_of_its_class_alone() -> None:
    recorded = Recorded()
    with pytest.raises(ValueError, match="secret"), first_span(recorded.tracing, "job", "consumer"):
        raise ValueError("secret")

    [span] = recorded.spans
    assert span.attributes == {"error.type": "ValueError"}
    assert not span.status.is_ok
    assert span.status.description is None
    assert span.events == ()


def test_a_block_may_end_in_another_context_than_it_began() -> None:
    recorded = Recorded()
    block = first_span(recorded.tracing, "job", "consumer")
    Context().run(block.__enter__)
    block.__exit__(None, None, None)

    assert current_span() is None
    assert len(recorded.spans) == 1


def test_a_span_with_a_parent_in_another_process_is_of_its_trace() -> None:
    recorded = Recorded()
    first = recorded.tracing.start("request", "server", {})
    assert first is not None
    second = recorded.tracing.start("job", "consumer", {}, parent=first.traceparent)
    assert second is not None
    with within(second):
        assert current_traceparent() == second.traceparent
        assert current_trace_id() == first.trace_id


def test_a_call_is_named_by_its_template_and_shows_neither_path_nor_query() -> None:
    recorded = Recorded()
    url = "https://api.example:8443/bot123:secret/send?token=secret"
    with first_span(recorded.tracing, "job", "consumer"):
        with call_span("POST", url, "/bot{token}/send") as span:
            assert span is not None
            note_status(span, 429)
        with call_span("GET", url, None):
            pass

    named, unnamed, _ = recorded.spans
    assert named.name == "POST /bot{token}/send"
    assert named.attributes == {
        "http.request.method": "POST",
        "http.response.status_code": 429,
        "url.scheme": "https",
        "url.template": "/bot{token}/send",
        "server.address": "api.example",
        "server.port": 8443,
        "error.type": "429",
    }
    assert unnamed.name == "GET"
    assert trace_id_of(named) == trace_id_of(unnamed)


#: A service that sends and receives a webhook where OpenTelemetry can't be imported.
WITHOUT_IT = """
import asyncio, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())

from msgsvc_core.config.settings import Settings
from msgsvc_core.service import Service

def settings(**more):
    return Settings.model_validate({
        "secret_keys": [sys.argv[1]], "database_url": f"sqlite:///{sys.argv[2]}",
        "plugins": ["sandbox", "webhooks"], "channels": {"messenger_a": {"plugin": "sandbox"}}, **more,
    })

async def main():
    async with Service(settings()) as service:
        project = await service.projects.create("Shop")
        _, key = await service.projects.create_key(project.project_id, "test", ("*",))
        import httpx2
        transport = httpx2.ASGITransport(app=service.app)
        headers = {"Authorization": f"Bearer {key}", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://msgsvc.test", headers=headers
        ) as client:
            print((await client.get("/v1/project")).status_code)
            print((await client.post("/v1/webhooks", json={"url": "https://shop.example/hook"})).status_code)

asyncio.run(main())
try:
    settings(tracing={"enabled": True})
except ValueError as error:
    print(error)
"""


def test_without_opentelemetry_all_works_and_only_tracing_is_refused(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_IT, SECRET_KEY, str(tmp_path / "msgsvc.db")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    found, created, *refusal = ran.stdout.splitlines()
    assert (found, created) == ("200", "201")
    assert "pip install 'msgsvc-core[tracing]'" in "".join(refusal)
