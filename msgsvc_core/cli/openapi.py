"""`msgsvc openapi`: prints the OpenAPI document of the API."""

import json
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.cli.reference import of_everything
from msgsvc_core.config.settings import load_settings
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
) -> None:
    """Print the OpenAPI document of the endpoints below /v1, for code generators and other tools."""
    text = document_text(Service(load_settings(config) if config else of_everything()))
    if file is None:
        typer.echo(text, nl=False)
    else:
        file.write_text(text, encoding="utf-8")
        typer.echo(str(file))


def document_text(service: Service) -> str:
    """The document as JSON."""
    document = service.openapi([each for each in service.endpoints if each.path.startswith(_API)])
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
