"""`msgsvc demo`: options and help."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

#: The example site, in a checkout of the repository.
SITE = Path(__file__).parents[4] / "examples" / "login_site" / "app.py"

#: Days of the past that somebody finds who looks around.
PAST_DAYS = 30

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    tour_only: Annotated[
        bool, typer.Option("--tour-only", help="Exit after the tour, even in a terminal.")
    ] = False,
    port: Annotated[
        int, typer.Option(help="Port of the service; a free one if it is in use.")
    ] = 8000,
    site_port: Annotated[
        int, typer.Option(help="Port of the example site; a free one if it is in use.")
    ] = 8090,
    days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=90,
            help="Days of a library's past for the dashboard; by default 30 if the demo stays, else none.",
        ),
    ] = None,
) -> None:
    """Run a demo: the service, two messengers in the browser, and a site with sign-in."""
    console = Console(highlight=False)
    if not SITE.exists():
        console.print("the demo needs examples/login_site: run it in a checkout of the repository")
        raise typer.Exit(1)
    stay = sys.stdout.isatty() and not tour_only
    from msgsvc_devkit.demo.show import show  # noqa: PLC0415 - its HTTP client is the demo's alone

    past_days = days if days is not None else PAST_DAYS if stay else 0
    show(console, SITE, port, site_port, stay=stay, days=past_days)
