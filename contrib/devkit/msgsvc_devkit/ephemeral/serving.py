"""`msgsvc serve --ephemeral`."""

import json
import os
import socket
from ipaddress import ip_address
from typing import Any

import typer
import uvloop

from msgsvc_core.cli.process import collect_less_often
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import ConnectionLimits, Server, bind, check_open_files
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.ephemeral.folder import private_folder
from msgsvc_devkit.ephemeral.settings import ephemeral_settings
from msgsvc_devkit.ephemeral.tenancy import Tenancy, create_tenancy

#: The address and port of `msgsvc serve`.
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000


def serve_ephemeral(host: str | None, port: int | None, *, as_json: bool) -> None:
    """Serves until a signal; raises `SettingsError` before. The core calls it by its entry point."""
    try:
        from msgsvc_devkit.ephemeral.clock_api import ClockPlugin  # noqa: PLC0415 - needs the sandbox
    except ModuleNotFoundError as error:
        if error.name != "msgsvc_sandbox":
            raise
        raise SettingsError(
            "--ephemeral: needs the sandbox messenger: pip install 'msgsvc-core[testing]'"
        ) from None
    collect_less_often()
    clock = MovableClock()
    extra = [("ephemeral", ClockPlugin(clock))]
    with private_folder() as folder:
        listener = bind(host or DEFAULT_HOST, DEFAULT_PORT if port is None else port)
        try:
            settings = ephemeral_settings(folder, base_url_of(listener), os.environ)
            configure_logs(settings.log, for_good=True)
            service = Service(settings, clock=clock, extra_plugins=extra)
            uvloop.run(_serve(service, listener, as_json=as_json))
        except KeyboardInterrupt:
            # A second Ctrl-C during the shutdown.
            raise typer.Exit(130) from None
        finally:
            listener.close()


async def _serve(service: Service, listener: socket.socket, *, as_json: bool) -> None:
    settings = service.settings
    guard = ConnectionLimits(
        check_open_files(settings.server), settings.errors_url, service.metrics
    )
    async with service:
        facts = _facts(settings, await create_tenancy(service))

        def show(_sockets: list[socket.socket]) -> None:
            typer.echo(json.dumps(facts) if as_json else _text(facts))

        server = Server(service.app, guard, listening=show, stopping=service.begin_shutdown)
        await server.serve(sockets=[listener])


def base_url_of(listener: socket.socket) -> str:
    """The URL under which programs on this machine reach it."""
    host, port = listener.getsockname()[:2]
    if ip_address(host).is_unspecified:
        return f"http://localhost:{port}"
    return (
        f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
    )


def _facts(settings: Settings, tenancy: Tenancy) -> dict[str, Any]:
    """What a test needs to know."""
    base_url = settings.base_url
    webhooks = (settings.model_extra or {}).get("webhooks") or {}
    return {
        "base_url": base_url,
        "api_key": tenancy.api_key,
        "project_id": tenancy.project_id,
        "channels": list(settings.channels),
        "sandbox_url": f"{base_url}/sandbox",
        "clock_url": f"{base_url}/sandbox/api/clock",
        "webhooks": {
            "allow_http": bool(webhooks.get("allow_http", False)),
            "allow_cidrs": list(webhooks.get("allow_cidrs", ())),
        },
        "plugins": list(settings.loaded_plugins),
        "pid": os.getpid(),
    }


def _text(facts: dict[str, Any]) -> str:
    ranges = ", ".join(facts["webhooks"]["allow_cidrs"])
    return (
        f"msgsvc listens on {facts['base_url']}, in memory: all is gone when it ends\n"
        f"  API key    {facts['api_key']}\n"
        f"  project    {facts['project_id']}\n"
        f"  messenger  {facts['sandbox_url']}  ({', '.join(facts['channels'])})\n"
        f'  clock      POST {facts["clock_url"]} {{"advance_s": 600}}\n'
        f"  webhooks   also to {ranges or 'no private hosts'}\n"
        "Ctrl-C ends it"
    )
