"""`msgsvc serve`: the service behind uvicorn, until a signal ends it."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import uvicorn
import uvloop

from msgsvc_core.cli.checks import check_addresses, check_jobs, check_sandbox
from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.logs import configure_logs
from msgsvc_core.service import Service
from msgsvc_core.settings import ServerSettings, Settings, SettingsError

#: Seconds that open requests get at shutdown; live pages and long polls would stay for good.
GRACEFUL_S = 5

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Instead of server.host.")] = None,
    port: Annotated[int | None, typer.Option(help="Instead of server.port; 0: any free.")] = None,
) -> None:
    """Serve the API and the pages, and do the work behind them, until Ctrl-C."""
    named: dict[str, Any] = {"host": host, "port": port}
    overrides = {name: value for name, value in named.items() if value is not None}
    settings = read_settings(config, server=overrides)
    configure_logs(settings.log, for_good=True)
    _warn(settings)
    try:
        uvloop.run(_serve(settings))
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first was still being obeyed.
        raise typer.Exit(130) from None


def _warn(settings: Settings) -> None:
    """Says what `msgsvc doctor` would say of where and how this process serves."""
    findings = [*check_addresses(settings), *check_sandbox(settings), *check_jobs(settings)]
    for finding in findings:
        if finding.level != "ok":
            typer.echo(f"{finding.level}: {finding.text}; {finding.mend}", err=True)


async def _serve(settings: Settings) -> None:
    service = Service(settings)
    listener = bind(settings.server)
    try:
        async with service:
            await Server(service).serve(sockets=[listener])
    finally:
        listener.close()


def bind(server: ServerSettings) -> socket.socket:
    """A socket that holds the port but doesn't listen yet: who comes too early is refused at once.

    Raises `SettingsError` when the address can't be had.
    """
    try:
        found = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, proto, _, address = found[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise SettingsError(
            f"server: can't listen on {server.host}, port {server.port}: {error.strerror}; "
            "--host and --port, or [server], name another"
        ) from error
    return listener


class Server(uvicorn.Server):
    """uvicorn's server around a started service, whose end it doesn't cut short."""

    def __init__(self, service: Service) -> None:
        config = uvicorn.Config(
            service.app,
            loop="uvloop",
            http="httptools",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # Anybody on this machine could name another caller with X-Forwarded-For.
            proxy_headers=False,
            timeout_graceful_shutdown=GRACEFUL_S,
        )
        super().__init__(config)
        self._base_url = service.settings.base_url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            typer.echo(f"msgsvc listens on {_url(listener)}, known as {self._base_url}")
        typer.echo("Ctrl-C ends it")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn raises a signal anew when it is done, and that would end the process at once,
        with jobs and leases of the service in the middle."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return (
        f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
    )
