"""`msgsvc broadcast`: how far a mass send is, for who runs the service."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.mailings import Mailing
from msgsvc_core.service import Service

#: Seconds between two looks.
LOOK_S = 0.5

app = typer.Typer(no_args_is_help=True, help="Watch broadcasts and other mass sends.")


@app.command()
def watch(
    job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="For example job_02Yz...")],
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Show how far a broadcast is, until it has ended."""
    console = Console()
    mailing = asyncio.run(_watch(config, job_id, console, once=once, quiet=as_json))
    if as_json:
        typer.echo(json.dumps(_plain(mailing), ensure_ascii=False))
    else:
        typer.echo(_line(mailing))


async def _watch(
    config: Path | None, job_id: str, console: Console, *, once: bool, quiet: bool
) -> Mailing:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    async with opened(config) as service:
        mailing = await _find(service, job_id)
        unseen = once or quiet or not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=unseen) as progress:
            bar = progress.add_task("", left="")
            while mailing.finished_at_ms is None and not once:
                progress.update(
                    bar,
                    description=mailing.status,
                    completed=mailing.done,
                    total=mailing.total,
                    left=_left(service, mailing),
                )
                await asyncio.sleep(LOOK_S)
                mailing = await _find(service, job_id)
    return mailing


async def _find(service: Service, job_id: str) -> Mailing:
    async with service.db.read() as tx:
        return await service.mailings.find_any(tx, job_id)


def _left(service: Service, mailing: Mailing) -> str:
    seconds = mailing.eta_seconds(service.clock.now_ms())
    if seconds is None:
        return ""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}:{rest:02d} left"


def _line(mailing: Mailing) -> str:
    line = (
        f"{mailing.status}: {mailing.sent} sent, {mailing.failed} failed, {mailing.skipped} skipped"
        f" of {mailing.total}"
    )
    return f"{line}\n{mailing.error}" if mailing.error else line


def _plain(mailing: Mailing) -> dict[str, Any]:
    return {
        **mailing.event_fields(),
        "status": mailing.status,
        "source": mailing.source,
        "project_id": mailing.project_id,
        "progress": mailing.progress(),
        "error": mailing.error,
    }
