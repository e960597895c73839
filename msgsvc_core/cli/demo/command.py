"""The command: starts the parts, plays the tour, and serves until Ctrl-C."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from msgsvc_core.cli.demo.parts import DemoError, Parts, running_parts
from msgsvc_core.cli.demo.stage import StepFailed
from msgsvc_core.cli.demo.tour import play

#: Where an example site lies in a checkout, beside the package.
SITE = Path(__file__).parents[3] / "examples" / "login_site" / "app.py"


def demo(
    tour_only: Annotated[
        bool, typer.Option("--tour-only", help="End after the tour, even in a terminal.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the service; another if it is taken.")] = 8000,
    site_port: Annotated[int, typer.Option(help="Port of the example site, likewise.")] = 8090,
) -> None:
    """Show everything at work: two messengers in the browser, and a site that signs people in."""
    console = Console(highlight=False)
    if not SITE.exists():
        console.print("the demo shows examples/login_site, so it runs from a checkout of msgsvc")
        raise typer.Exit(1)
    stay = sys.stdout.isatty() and not tour_only
    try:
        asyncio.run(_demo(console, port, site_port, stay))
    except (DemoError, StepFailed) as error:
        console.print(f"[red]the demo stopped:[/red] {error}", markup=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("\nended; nothing is left behind")


async def _demo(console: Console, port: int, site_port: int, stay: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="msgsvc-demo-") as folder:
        async with running_parts(Path(folder), SITE, port, site_port) as parts:
            await play(console, parts)
            if stay:
                _print_addresses(console, parts)
                await parts.until_one_ends()


def _print_addresses(console: Console, parts: Parts) -> None:
    rows = {
        "The example site, to sign in": parts.site_url,
        "The messengers, in another window": f"{parts.service_url}/sandbox",
        "What the site heard by webhook": f"{parts.site_url}/events",
        "The API, described": f"{parts.service_url}/docs",
        "An API key of the demo's project": parts.api_key,
        "Logs": str(parts.folder),
    }
    console.print("\n[bold]Open it and try for yourself:[/bold]")
    for title, value in rows.items():
        console.print(f"  {title:<36}{value}", soft_wrap=True)
    console.print("\nCtrl-C ends the demo and removes everything it made.")
