"""The command, as `msgsvc --help` shows it."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

#: Where an example site lies in a checkout, which holds this package too.
SITE = Path(__file__).parents[4] / "examples" / "login_site" / "app.py"

app = typer.Typer(add_completion=False)


@app.command()
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
    from msgsvc_devkit.demo.show import show  # noqa: PLC0415 - its HTTP client is the demo's alone

    show(console, SITE, port, site_port, stay)
