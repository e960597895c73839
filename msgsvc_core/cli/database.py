"""`msgsvc migrate`."""

import asyncio

import typer

from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs


def migrate(config: ConfigOption = None) -> None:
    """Apply the migrations of the core and of every loaded plugin."""
    settings = read_settings(config)
    configure_logs(settings.log)
    applied = asyncio.run(_migrate(Service(settings)))
    for revision in applied:
        typer.echo(f"applied {revision}")
    typer.echo(
        f"{len(applied)} applied" if applied else "nothing to do: the database is up to date"
    )


async def _migrate(service: Service) -> list[str]:
    return await service.migrate()
