"""Logs: what never gets into them, and their two forms."""

import json
import subprocess
import sys
from http import HTTPStatus
from typing import Any, Literal

import httpx2
import pytest
import structlog
import structlog.testing
from starlette.responses import RedirectResponse

from msgsvc_core.config.sections import LogSettings
from msgsvc_core.http.requests import RequestLog
from msgsvc_core.security.api_keys import new_api_key
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import (
    HIDDEN,
    RequestLines,
    hide_secrets,
    probe_lines,
    request_lines,
)
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

KEY = new_api_key().secret


def cleaned(**entry: Any) -> dict[str, Any]:
    return dict(hide_secrets(None, "info", entry))


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "webhook_secret",
        "token",
        "bot_token",
        "password",
        "Authorization",
        "api_key",
        "apikey",
        "cookie",
        "Set_Cookie",
        "signature",
        "code",
        "auth_code",
        "payload",
        "body",
    ],
)
def test_a_value_with_a_secret_name_is_blanked(name: str) -> None:
    assert cleaned(**{name: "anything"}) == {name: HIDDEN}


@pytest.mark.parametrize(
    "name", ["event", "endpoint", "status", "status_code", "reason", "tokens_left"]
)
def test_a_value_with_a_harmless_name_is_kept(name: str) -> None:
    assert cleaned(**{name: "anything"}) == {name: "anything"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param(f"the key {KEY} is unknown", f"the key {HIDDEN} is unknown", id="an API key"),
        ("whsec_abc+/=", HIDDEN),
        ("postgresql://me:pass@host/db", f"postgresql://{HIDDEN}@host/db"),
        ("postgresql://:pass@host/db", f"postgresql://{HIDDEN}@host/db"),
        ("https://example.com:8000/a@b", "https://example.com:8000/a@b"),
        (
            "GET https://shop.example/back?from=bot&code=c0De&state=x#y 200",
            f"GET https://shop.example/back?from=bot&code={HIDDEN}&state=x#y 200",
        ),
        ('<a href="/back?from=bot&amp;code=c0De">', f'<a href="/back?from=bot&amp;code={HIDDEN}">'),
        (
            "{'url': 'https://shop.example?code=c0De'}",
            f"{{'url': 'https://shop.example?code={HIDDEN}'}}",
        ),
        ("/v1/products?barcode=12&postcode=34", "/v1/products?barcode=12&postcode=34"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_a_secret_inside_a_text_is_blanked(text: str, kept: str) -> None:
    assert cleaned(event=text) == {"event": kept}


def test_secrets_deep_inside_are_blanked() -> None:
    entry = cleaned(request={"headers": {"authorization": "x"}, "keys": [KEY, {"note": KEY}]}, n=1)

    assert entry == {
        "request": {"headers": {"authorization": HIDDEN}, "keys": [HIDDEN, {"note": HIDDEN}]},
        "n": 1,
    }


def test_the_text_of_an_exception_is_blanked() -> None:
    assert cleaned(error=ValueError(f"no {KEY}")) == {"error": f"no {HIDDEN}"}


PROGRAM = """
import logging
import structlog
from msgsvc_core.telemetry.logs import configure_logs
from msgsvc_core.config.sections import LogSettings

configure_logs(LogSettings(format="{format}", level="info"))
log = structlog.get_logger("test")
log.debug("too small")
log.info("hello", password="hunter2", name="Анна")
logging.getLogger("library").warning("from %s", "postgresql://me:hunter2@host/db")
structlog.contextvars.bind_contextvars(request_id="req_1")
try:
    raise ValueError("hunter2 is msk_{key}")
except ValueError:
    log.exception("failed")
"""


#: What a server does: its logs are set up for good, and requests have lines of their own.
SERVER = """
import asyncio
import structlog
from msgsvc_core.telemetry.logs import configure_logs, request_lines
from msgsvc_core.config.sections import LogSettings

configure_logs(LogSettings(format="{format}", level="{level}"), for_good=True)
values = dict(method="POST", endpoint="/v1/send", status=202, duration_ms=1.5, request_id="req_1")
async def answer():
    request_lines(LogSettings())(**values, project_id=None)

asyncio.run(answer())
structlog.contextvars.bind_contextvars(request_id="req_1")
structlog.get_logger("test").error("odd", text="two\\nlines msk_{key}", number=7)
"""


def written(log_format: str, program: str = PROGRAM, level: str = "info") -> list[str]:
    """What a program that logs writes on standard error."""
    for name, value in {"format": log_format, "level": level, "key": "0" * 43}.items():
        program = program.replace("{" + name + "}", value)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_a_service_in_somebodys_program_shows_no_local_variables_of_a_failure() -> None:
    program = """
import structlog
from msgsvc_core.service import Service
from msgsvc_core.config.settings import Settings

Service(Settings(secret_keys=["k" * 40], database_url="sqlite:///none.db", plugins=[], channels={}))

def fail(secret):
    raise RuntimeError("it said " + secret)

try:
    fail("msk_" + "v" * 32)
except RuntimeError:
    structlog.get_logger("shop").exception("failed")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "failed" in done.stderr
    assert "RuntimeError: it said [hidden]" in done.stderr
    assert "vvvv" not in done.stdout + done.stderr


def test_json_logs_are_one_object_a_line_without_secrets() -> None:
    lines = [json.loads(line) for line in written("json")]

    assert [line["event"] for line in lines] == [
        "hello",
        f"from postgresql://{HIDDEN}@host/db",
        "failed",
    ]
    assert (lines[0]["password"], lines[0]["name"], lines[0]["level"]) == (HIDDEN, "Анна", "info")
    assert lines[2]["request_id"] == "req_1"
    assert HIDDEN in lines[2]["exception"]
    assert all(line["timestamp"].endswith("Z") for line in lines)


def test_console_logs_hold_no_secrets_either() -> None:
    text = "\n".join(written("console"))

    assert "hello" in text
    assert "0" * 43 not in text
    assert "me:hunter2" not in text


def test_a_servers_request_is_one_line_of_names_and_values() -> None:
    request, odd = written("console", SERVER)

    moment, line = request.split(" ", 1)
    assert moment.endswith("Z")
    assert line == (
        "info    request method=POST endpoint=/v1/send status=202 duration_ms=1.5 request_id=req_1"
    )
    assert odd.split(" ", 1)[1] == (
        f"error   odd text='two\\nlines {HIDDEN}' number=7 request_id=req_1"
    )


def test_a_servers_request_is_one_object_as_other_entries_are() -> None:
    request, odd = (json.loads(line) for line in written("json", SERVER))

    assert request.pop("timestamp").endswith("Z")
    assert request == {
        "event": "request",
        "level": "info",
        "method": "POST",
        "endpoint": "/v1/send",
        "status": 202,
        "duration_ms": 1.5,
        "request_id": "req_1",
    }
    assert odd["request_id"] == "req_1"


def test_a_servers_requests_are_left_out_where_the_level_is_higher() -> None:
    assert len(written("console", SERVER, level="warning")) == 1


async def test_a_request_is_logged_by_its_template_and_never_by_its_path(tenant: Tenant) -> None:
    with structlog.testing.capture_logs() as entries:
        await tenant.client.get("/v1/messages/msg_private")
        await tenant.client.get("/v1/messages?batch_id=private")

    logged = [entry for entry in entries if entry["event"] == "request"]
    assert [(entry["endpoint"], entry["status"]) for entry in logged] == [
        ("/v1/messages/{message_id}", 404),
        ("/v1/messages", 200),
    ]
    assert "private" not in str(entries)
    assert tenant.key not in str(entries)


async def test_a_status_that_is_named_is_logged_as_a_number(service: Service) -> None:
    away = RedirectResponse("https://shop.example/", HTTPStatus.SEE_OTHER)
    with structlog.testing.capture_logs() as entries:
        transport = httpx2.ASGITransport(
            app=RequestLog(
                away,
                errors_url=service.settings.errors_url,
                lines=RequestLines.of(LogSettings()),
                metrics=service.metrics.requests,
            )
        )
        async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
            await client.get("/sign-in")

    assert [str(entry["status"]) for entry in entries] == ["303"]
    assert "HTTPStatus" not in repr(entries)


@pytest.mark.parametrize(
    ("which", "statuses"), [("all", [202, 404, 503, 0]), ("failed", [503, 0]), ("none", [])]
)
def test_requests_get_lines_as_the_setting_says(
    which: Literal["all", "failed", "none"], statuses: list[int]
) -> None:
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as lines:
        write = request_lines(LogSettings(requests=which))
        for status in (202, 404, 503, 0):
            write(method="POST", endpoint="/v1/send", status=status, request_id="req_1")

    assert [line["status"] for line in lines] == statuses


def test_a_sample_of_ordinary_requests_is_logged_and_all_that_failed_or_were_slow() -> None:
    structlog.reset_defaults()
    settings = LogSettings(request_sample=0.25, slow_request_s=0.5)
    with structlog.testing.capture_logs() as lines:
        write = request_lines(settings)
        for _ in range(2000):
            write(status=200, duration_ms=3.0)
        for status, duration_ms in ((404, 3.0), (503, 3.0), (0, 3.0), (200, 500.0)):
            write(status=status, duration_ms=duration_ms)

    *ordinary, missing, failed, unanswered, slow = lines
    assert 350 < len(ordinary) < 650, "a quarter of 2,000, give or take 7 standard deviations"
    assert {line["sample"] for line in ordinary} == {0.25}
    assert [line["status"] for line in (missing, failed, unanswered, slow)] == [404, 503, 0, 200]
    assert all("sample" not in line for line in (missing, failed, unanswered, slow))


@pytest.mark.parametrize(
    ("which", "levels"),
    [
        ("all", {200: "debug", 503: "info", 0: "info", 204: "info"}),
        ("failed", {503: "info", 0: "info"}),
        ("none", {}),
    ],
)
def test_probes_that_succeed_in_time_are_lines_for_debugging(
    which: Literal["all", "failed", "none"], levels: dict[int, str]
) -> None:
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as lines:
        write = probe_lines(LogSettings(requests=which, slow_request_s=0.5))
        for status, duration_ms in ((200, 3.0), (503, 3.0), (0, 3.0), (204, 500.0)):
            write(endpoint="page", status=status, duration_ms=duration_ms)

    assert {line["status"]: line["log_level"] for line in lines} == levels


async def test_a_monitor_fills_no_log(make_service: ServiceFactory) -> None:
    service = await make_service()
    structlog.reset_defaults()
    transport = httpx2.ASGITransport(app=service.app)
    with structlog.testing.capture_logs() as lines:
        async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
            for path in ("/healthz", "/readyz", "/metrics", "/v1/project"):
                await client.get(path)

    requests = [(line["status"], line["log_level"]) for line in lines if line["event"] == "request"]
    assert requests == [(200, "debug"), (200, "debug"), (200, "debug"), (401, "info")]
