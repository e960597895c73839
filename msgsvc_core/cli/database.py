"""`msgsvc migrate`."""

import asyncio
from typing import Annotated

import typer

from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.db import Phase
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs


def migrate(
    config: ConfigOption = None,
    phase: Annotated[
        Phase | None,
        typer.Option(
            help="Only one half: expand, while processes of the earlier release run, or contract, when they"
            " have ended."
        ),
    ] = None,
) -> None:
    """Apply the migrations of the core and of every loaded plugin."""
    settings = read_settings(config)
    configure_logs(settings.log)
    applied = asyncio.run(_migrate(Service(settings), phase))
    for revision in applied:
        typer.echo(f"applied {revision}")
    if applied:
        typer.echo(f"{len(applied)} applied")
    elif phase:
        typer.echo(f"nothing to do: no step of this half ({phase}) is pending")
    else:
        typer.echo("nothing to do: the database is up to date")


async def _migrate(service: Service, phase: Phase | None) -> list[str]:
    return await service.migrate(phase)
