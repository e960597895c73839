"""`msgsvc openapi`: prints the OpenAPI document of the API."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.cli.reference import of_everything
from msgsvc_core.config.settings import load_settings
from msgsvc_core.http.openapi import shared
from msgsvc_core.service import Service

#: What clients call. Elsewhere plugins have pages, and what their own pages and tests ask for.
_API = "/v1/"


def openapi_command(
    file: Annotated[Path | None, typer.Argument(help="Output file (default: print it).")] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Describe the plugins of this configuration (default: all installed).",
        ),
    ] = None,
    area: Annotated[
        list[str] | None,
        typer.Option(help="Describe the operations of this area only; can be repeated."),
    ] = None,
) -> None:
    """Print the OpenAPI document of the endpoints below /v1, for code generators and other tools."""
    service = Service(load_settings(config) if config else of_everything())
    if unknown := set(area or ()) - {each.area for each in _published(service)}:
        areas = ", ".join(sorted({each.area for each in _published(service)}))
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} is not one of {areas}")
    text = document_text(service, area)
    if file is None:
        typer.echo(text, nl=False)
    else:
        file.write_text(text, encoding="utf-8")
        typer.echo(str(file))


def document_text(service: Service, areas: Collection[str] | None = None) -> str:
    """The document as JSON, of all areas or of these. A part of the areas comes without the events."""
    document = service.openapi(
        [each for each in _published(service) if areas is None or each.area in areas],
        with_events=areas is None,
    )
    return json.dumps(shared(document), indent=1, ensure_ascii=False) + "\n"


def _published(service: Service) -> list[Endpoint]:
    return [each for each in service.endpoints if each.path.startswith(_API)]
