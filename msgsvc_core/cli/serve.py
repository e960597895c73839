"""`msgsvc serve`: runs the service on uvicorn until a signal."""

import socket
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer
import uvloop

from msgsvc_core.cli.checks import (
    check_addresses,
    check_jobs,
    check_proxies,
    check_quarantine,
    check_with_plugins,
)
from msgsvc_core.cli.configuration import (
    ConfigOption,
    QuarantineOption,
    quarantined,
    read_settings,
)
from msgsvc_core.cli.process import collect_less_often
from msgsvc_core.cli.tracing import exporting_spans
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import ConnectionLimits, Server, check_open_files, listener_of
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs
from msgsvc_core.telemetry.loop_watchdog import watched_loop

#: Entry point group of other ways to serve: `ephemeral`, a function of host, port and `as_json`.
SERVE_GROUP = "msgsvc.serve"

log = structlog.get_logger(__name__)


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Overrides server.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Overrides server.port; 0 picks a free port.")
    ] = None,
    uds: Annotated[
        Path | None, typer.Option(help="Overrides server.uds: the path of a unix socket.")
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option(
            "--ephemeral",
            help="For tests: needs no configuration, creates a project and an API key, keeps everything"
            " in memory and forgets it at the end.",
        ),
    ] = False,
    quarantine: QuarantineOption = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="With --ephemeral: once it is ready, print its addresses and key as JSON.",
        ),
    ] = False,
) -> None:
    """Run the API, the pages and the background jobs until Ctrl-C."""
    if uds is not None and (ephemeral or host is not None or port is not None):
        raise typer.BadParameter(
            "does not go with --host, --port or --ephemeral", param_hint="--uds"
        )
    if ephemeral:
        _serve_ephemeral(config, host, port, as_json=as_json)
        return
    if as_json:
        raise typer.BadParameter("belongs to --ephemeral", param_hint="--json")
    named: dict[str, Any] = {"host": host, "port": port, "uds": uds}
    overrides = {name: value for name, value in named.items() if value is not None}
    if host is not None or port is not None:
        overrides["uds"] = None
    settings = read_settings(config, server=overrides, **quarantined(quarantine))
    configure_logs(settings.log, for_good=True)
    _warn(settings)
    collect_less_often()
    try:
        with exporting_spans(settings):
            uvloop.run(_serve(settings))
    except KeyboardInterrupt:
        # A second Ctrl-C during the shutdown.
        raise typer.Exit(130) from None


def _serve_ephemeral(
    config: Path | None, host: str | None, port: int | None, *, as_json: bool
) -> None:
    """What moves a service's clock is not in this distribution: a service with data can't be made to."""
    if config is not None:
        raise SettingsError(
            f"--ephemeral: reads no configuration, and {config} is named (--config or MSGSVC_CONFIG):"
            " one of them"
        )
    for point in entry_points(group=SERVE_GROUP, name="ephemeral"):
        point.load()(host, port, as_json=as_json)
        return
    raise SettingsError("--ephemeral: pip install 'msgsvc-core[testing]' brings it")


def _warn(settings: Settings) -> None:
    """Prints the warnings of `msgsvc doctor` about how this process serves."""
    findings = [
        *check_addresses(settings),
        *check_proxies(settings),
        *check_with_plugins(settings),
        *check_quarantine(settings),
        *check_jobs(settings),
    ]
    for finding in findings:
        if finding.level == "ok":
            continue
        if settings.log.format == "json":
            log.warning("configuration_doubtful", detail=finding.text, remedy=finding.fix)
        else:
            typer.echo(f"{finding.level}: {finding.text}; {finding.fix}", err=True)


async def _serve(settings: Settings) -> None:
    service = Service(settings)
    allowed = check_open_files(settings.server)
    guard = ConnectionLimits(allowed, settings.errors_url, service.metrics)
    listener = listener_of(settings.server)

    def say_where(sockets: list[socket.socket]) -> None:
        if settings.log.format == "json":
            for known in sockets:
                log.info("listening", url=_url(known), base_url=settings.base_url)
            return
        for known in sockets:
            typer.echo(f"msgsvc listens on {_url(known)}, known as {settings.base_url}")
        typer.echo("Ctrl-C ends it")

    def stopping() -> None:
        log.info("stopping")
        service.begin_shutdown()

    try:
        async with service, watched_loop(service.metrics.registry):
            server = Server(
                service.app,
                guard,
                listening=say_where,
                draining=service.begin_drain,
                stopping=stopping,
                drain_s=settings.server.drain_s,
            )
            await server.serve(sockets=[listener])
        log.info("stopped")
    finally:
        listener.close()


def _url(listener: socket.socket) -> str:
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return (
        f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
    )
