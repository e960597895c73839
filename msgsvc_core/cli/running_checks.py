"""Checks of `msgsvc doctor` that ask the service that runs on this machine."""

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.plugins.advice import Finding, ok, warning
from msgsvc_core.server import bind, check_uds

#: Seconds for the service to say whether it is ready: its own checks may take 5.
READY_S = 6.0

#: Bytes of its response that are read.
READY_BYTES = 1 << 20


async def check_port(settings: Settings) -> AsyncIterator[Finding]:
    """Whether the service can listen where it is to, or listens there already."""
    server = settings.server
    if server.uds is not None:
        yield await _check_uds(settings, server.uds)
        return
    if not server.port:
        return
    try:
        bind(server.host, server.port).close()
    except SettingsError as error:
        if await asyncio.to_thread(_answer, settings, "/healthz") == {"status": "ok"}:
            yield ok("port", f"a service answers on port {server.port}")
        else:
            yield warning(
                "port",
                f"{error}",
                "end the program that listens there (`ss -ltnp` lists them), or set server.port",
            )
    else:
        yield ok("port", f"{server.port} of {server.host} is free")


async def _check_uds(settings: Settings, path: Path) -> Finding:
    answer = await asyncio.to_thread(_answer, settings, "/healthz")
    if answer == {"status": "ok"}:
        return ok("unix socket", f"a service answers on {path}")
    try:
        check_uds(path)
    except SettingsError as error:
        return warning("unix socket", f"{error}", "end what listens there, or set server.uds")
    return ok("unix socket", f"{path} is free")


async def check_running_quarantine(settings: Settings) -> AsyncIterator[Finding]:
    """Whether a service that runs here was started with `--quarantine`, which no setting says."""
    server = settings.server
    if settings.quarantine or (server.uds is None and not server.port):
        return
    status = await asyncio.to_thread(_ready_checks, settings)
    if "quarantine" in status:
        yield warning(
            "quarantine",
            f"the service that listens on {server.uds or f'port {server.port}'} was started in quarantine: it"
            " sends and receives nothing",
            "when this copy is to replace the original: end that one, look at `msgsvc outbox`, and start"
            " without --quarantine",
        )


def _ready_checks(settings: Settings) -> Mapping[str, Any]:
    """The checks of `/readyz` of the service on this machine; none if it does not run or does not tell."""
    checks = _answer(settings, "/readyz").get("checks")
    return checks if isinstance(checks, dict) else {}


def _answer(settings: Settings, path: str) -> Mapping[str, Any]:
    """The object with which the service on this machine answers; empty if it does not run."""
    uds, host = settings.server.uds, settings.server.host
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - not listened on: it is where a service may listen
        host = "127.0.0.1"
    headers = {}
    if settings.metrics.token is not None:
        headers["Authorization"] = f"Bearer {settings.metrics.token.get_secret_value()}"
    connection = http.client.HTTPConnection(host, settings.server.port, timeout=READY_S)
    try:
        if uds is not None:
            connection.sock = _connected(uds)
        connection.request("GET", path, headers=headers)
        answer = json.loads(connection.getresponse().read(READY_BYTES))
    except (OSError, ValueError, http.client.HTTPException):
        # Nothing listens there, or something else.
        return {}
    finally:
        connection.close()
    return answer if isinstance(answer, dict) else {}


def _connected(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(READY_S)
        found.connect(str(path))
    except OSError:
        found.close()
        raise
    return found
