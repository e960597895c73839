"""What the command does: starts the parts, plays the tour, and serves until Ctrl-C."""

import asyncio
import signal
import tempfile
from pathlib import Path

import typer
from rich.console import Console

from msgsvc_devkit.demo.parts import DemoError, Parts, running_parts, sign_in_link
from msgsvc_devkit.demo.stage import StepFailed
from msgsvc_devkit.demo.tour import play

#: What ends the demo as Ctrl-C does.
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def show(console: Console, site: Path, port: int, site_port: int, stay: bool) -> None:
    """The whole demo; with `stay` it ends at Ctrl-C. Raises `typer.Exit` when it stopped early."""
    try:
        asyncio.run(_demo(console, site, port, site_port, stay))
    except (DemoError, StepFailed) as error:
        console.print(f"[red]the demo stopped:[/red] {error}", markup=True)
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("\nended; nothing is left behind")


async def _demo(console: Console, site: Path, port: int, site_port: int, stay: bool) -> None:
    # A terminal that is closed, or a kill, ends the parts too: they have sessions of their own.
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for ending in ENDINGS:
        loop.add_signal_handler(ending, task.cancel)
    with tempfile.TemporaryDirectory(prefix="msgsvc-demo-") as folder:
        async with running_parts(Path(folder), site, port, site_port) as parts:
            await play(console, parts)
            if stay:
                _print_addresses(console, parts, await sign_in_link(parts))
                await parts.until_one_ends()


def _print_addresses(console: Console, parts: Parts, sign_in: str) -> None:
    rows = {
        "The example site, to sign in": parts.site_url,
        "The messengers, in another window": f"{parts.service_url}/sandbox",
        "The dashboard": f"{parts.service_url}/dashboard",
        "Its sign-in, once, within an hour": sign_in,
        "What the site heard by webhook": f"{parts.site_url}/events",
        "The API, described": f"{parts.service_url}/docs",
        "An API key of the demo's project": parts.api_key,
        "Logs": str(parts.folder),
    }
    console.print("\n[bold]Open it and try for yourself:[/bold]")
    for title, value in rows.items():
        console.print(f"  {title:<36}{value}", soft_wrap=True)
    console.print("\nCtrl-C ends the demo and removes everything it made.")
