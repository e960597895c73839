"""Checks of `msgsvc doctor` that ask the service that runs on this machine."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.advice import Finding, warning

#: Seconds for the service to say whether it is ready: its own checks may take 5.
READY_S = 6.0

#: Bytes of its response that are read.
READY_BYTES = 1 << 20


async def check_running_quarantine(settings: Settings) -> AsyncIterator[Finding]:
    """Whether a service that runs here was started with `--quarantine`, which no setting says."""
    if settings.quarantine or not settings.server.port:
        return
    status = await asyncio.to_thread(_ready_checks, settings)
    if "quarantine" in status:
        yield warning(
            "quarantine",
            f"the service that listens on port {settings.server.port} was started in quarantine: it sends and"
            " receives nothing",
            "when this copy is to replace the original: end that one, look at `msgsvc outbox`, and start"
            " without --quarantine",
        )


def _ready_checks(settings: Settings) -> Mapping[str, Any]:
    """The checks of `/readyz` of the service on this machine; none if it does not run or does not tell."""
    host = settings.server.host
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - not listened on: it is where a service may listen
        host = "127.0.0.1"
    headers = {}
    if settings.metrics.token is not None:
        headers["Authorization"] = f"Bearer {settings.metrics.token.get_secret_value()}"
    connection = http.client.HTTPConnection(host, settings.server.port, timeout=READY_S)
    try:
        connection.request("GET", "/readyz", headers=headers)
        answer = json.loads(connection.getresponse().read(READY_BYTES))
    except (OSError, ValueError, http.client.HTTPException):
        # Nothing listens there, or something else.
        return {}
    finally:
        connection.close()
    checks = answer.get("checks") if isinstance(answer, dict) else None
    return checks if isinstance(checks, dict) else {}
