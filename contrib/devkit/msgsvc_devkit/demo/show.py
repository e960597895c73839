"""Runs the demo: starts its processes, runs the tour, and serves until Ctrl-C."""

import asyncio
import signal
import tempfile
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from msgsvc_devkit.demo.history import play_history
from msgsvc_devkit.demo.parts import DemoError, Parts, running_parts, sign_in_link
from msgsvc_devkit.demo.stage import StepFailed
from msgsvc_devkit.demo.tour import play

#: Signals that end the demo, like Ctrl-C.
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def show(console: Console, site: Path, port: int, site_port: int, *, stay: bool, days: int) -> None:
    """Runs the demo; with `stay` until Ctrl-C. `days` of a library's past are played before. Raises
    `typer.Exit` if a process or step fails."""
    try:
        asyncio.run(_demo(console, site, port, site_port, stay, days))
    except (DemoError, StepFailed) as error:
        console.print(f"[red]the demo stopped:[/red] {error}", markup=True)
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("\nThe demo has ended; its files are removed.")


async def _demo(
    console: Console, site: Path, port: int, site_port: int, stay: bool, days: int
) -> None:
    # The processes run in sessions of their own: the terminal's signals don't reach them.
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for ending in ENDINGS:
        loop.add_signal_handler(ending, task.cancel)
    with tempfile.TemporaryDirectory(prefix="msgsvc-demo-") as folder:
        before = partial(_play_past, console, days) if days else None
        async with running_parts(Path(folder), site, port, site_port, before=before) as parts:
            await play(console, parts)
            if stay:
                _print_addresses(console, parts, await sign_in_link(parts))
                await parts.until_one_ends()


async def _play_past(console: Console, days: int, parts: Parts) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Days of a library's life", total=days)
        await play_history(
            parts.config, parts.api_key, days, lambda day: progress.update(task, completed=day)
        )


def _print_addresses(console: Console, parts: Parts, sign_in: str) -> None:
    rows = {
        "Example site with sign-in": parts.site_url,
        "Messengers (in another window)": f"{parts.service_url}/sandbox",
        "Dashboard": f"{parts.service_url}/dashboard",
        "One-time sign-in link, for an hour": sign_in,
        "Webhooks received by the site": f"{parts.site_url}/events",
        "API documentation": f"{parts.service_url}/docs",
        "API key of the demo's project": parts.api_key,
        "Logs": str(parts.folder),
    }
    own_bot = (
        f"{parts.service_url}/dashboard/projects/{parts.project_id}/channels/new?kind=telegram"
    )
    console.print("\n[bold]Try it yourself:[/bold]")
    for title, value in rows.items():
        console.print(f"  {title:<36}{value}", soft_wrap=True)
    console.print(
        "\n[bold]What next?[/bold] Your own Telegram bot: get a token from @BotFather, and paste it here,"
        f" signed in by the link above:\n  {own_bot}",
        soft_wrap=True,
    )
    console.print("\nCtrl-C ends the demo and removes its files.")
