"""`msgsvc broadcast`: progress and control of broadcasts, for the operator.

This includes scheduled and recurring messages to an audience, and form routes to a tag.
"""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.mailings import Mailing
from msgsvc_core.service import Service

#: Seconds between two refreshes of `watch`.
LOOK_S = 0.5

#: Default maximum of rows of `list`.
LIST_LIMIT = 50

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List, watch, pause, resume and cancel broadcasts, including scheduled ones.",
)

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="For example job_02Yz...")]


@app.command("list")
def list_(
    ended: Annotated[bool, typer.Option("--all", help="Include finished ones.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Maximum number of rows.")
    ] = LIST_LIMIT,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """List unfinished broadcasts of all projects, newest first."""
    found = asyncio.run(_list(config, ended=ended, limit=limit))
    if as_json:
        data = [_plain(mailing) for mailing in found]
        typer.echo(json.dumps({"data": data}, ensure_ascii=False))
    elif not found:
        typer.echo("there are no broadcasts" if ended else "no broadcast is pending or in progress")
    else:
        rows = [
            [
                each.job_id,
                each.project_id,
                each.status,
                f"{each.done}/{each.total}",
                each.error or "",
            ]
            for each in found
        ]
        show_table(["id", "project", "status", "done", "error"], rows)


@app.command()
def pause(job_id: JobId, config: ConfigOption = None) -> None:
    """Pause a broadcast. Deliveries already in progress are completed."""
    typer.echo(_line(asyncio.run(_change(config, job_id, "pause"))))


@app.command()
def resume(job_id: JobId, config: ConfigOption = None) -> None:
    """Resume a paused broadcast."""
    typer.echo(_line(asyncio.run(_change(config, job_id, "resume"))))


@app.command()
def cancel(job_id: JobId, config: ConfigOption = None) -> None:
    """Cancel a broadcast. Remaining recipients are skipped."""
    typer.echo(_line(asyncio.run(_change(config, job_id, "cancel"))))


@app.command()
def watch(
    job_id: JobId,
    once: Annotated[bool, typer.Option("--once", help="Print the progress once and exit.")] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Show the progress of a broadcast until it finishes."""
    console = Console()
    mailing = asyncio.run(_watch(config, job_id, console, once=once, quiet=as_json))
    if as_json:
        typer.echo(json.dumps(_plain(mailing), ensure_ascii=False))
    else:
        typer.echo(_line(mailing))


async def _list(config: Path | None, *, ended: bool, limit: int) -> list[Mailing]:
    async with opened(config) as service, service.db.read() as tx:
        return await service.mailings.list_any(tx, ended=ended, limit=limit)


async def _change(
    config: Path | None, job_id: str, what: Literal["pause", "resume", "cancel"]
) -> Mailing:
    async with opened(config) as service, service.db.transaction() as tx:
        mailing = await service.mailings.find_any(tx, job_id)
        change = getattr(service.mailings, what)
        changed: Mailing = await change(tx, *mailing.key)
        project_id, target = mailing.key
        await service.audit.write_command(tx, f"broadcast.{what}", project_id, target)
        return changed


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
    doubt = f" ({mailing.unknown} of them with an unknown outcome)" if mailing.unknown else ""
    line = (
        f"{mailing.status}: {mailing.sent} sent, {mailing.failed} failed{doubt},"
        f" {mailing.skipped} skipped of {mailing.total}"
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
