"""`msgsvc jobs`: waiting and running jobs, and dead letters."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.db import Tx
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.inspection import Filter, JobView
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import ApiError, NotFound
from msgsvc_core.service import Service

#: Default maximum of rows of `list`.
LIST_LIMIT = 100

#: Jobs per transaction when many are retried or discarded.
CHUNK = 500

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List, show, retry and discard jobs and dead letters.",
)


def _check_state(state: str | None) -> str | None:
    if state is not None and state not in get_args(inspection.State):
        raise typer.BadParameter(f"is one of {', '.join(get_args(inspection.State))}")
    return state


State = Annotated[
    str | None,
    typer.Option("--state", callback=_check_state, help="ready, running or dead."),
]
Lane = Annotated[str | None, typer.Option("--lane", help="For example channel:messenger_a.")]
Name = Annotated[str | None, typer.Option("--name", help="For example message.deliver.")]
JobIds = Annotated[
    list[str] | None, typer.Argument(metavar="[JOB_ID]...", help="For example job_02Yz...")
]


@app.command("list")
def list_(
    state: State = None,
    lane: Lane = None,
    name: Name = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Maximum number of rows.")
    ] = LIST_LIMIT,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """List jobs, oldest first. Completed jobs are not kept."""
    found = asyncio.run(_list(config, _filter(state, lane, name), limit))
    if as_json:
        typer.echo(json.dumps({"data": [*map(_plain, found)]}, ensure_ascii=False))
    elif not found:
        typer.echo("there are no such jobs")
    else:
        columns = ["id", "name", "lane", "state", "attempts", "due", "last error"]
        show_table(columns, [*map(_row, found)])
        if len(found) == limit:
            typer.echo(f"only the first {limit} are shown; --limit shows more", err=True)


@app.command()
def show(
    job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="For example job_02Yz...")],
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Show a job, without encrypted and secret values."""
    plain = _plain(asyncio.run(_show(config, job_id)))
    if as_json:
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    width = max(map(len, plain))
    for field, value in plain.items():
        text = json.dumps(value, ensure_ascii=False) if field == "payload" else value
        typer.echo(f"{field:{width}}  {'' if text is None else text}".rstrip())


@app.command()
def retry(
    job_ids: JobIds = None,
    lane: Lane = None,
    name: Name = None,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Retry dead letters: by id, or all of a lane or a name. A runner picks them up within a second or two.
    Jobs that can't be retried are listed with the reason: some have already recorded a final result."""
    dead = Filter("dead", lane, name)
    _change(config, job_ids, dead, _retry, "retried", as_json=as_json)


@app.command()
def discard(
    job_ids: JobIds = None,
    lane: Lane = None,
    name: Name = None,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Delete jobs without running them: by id, or all dead letters of a lane or a name.
    Whatever waits for a discarded job is recorded as failed, for example its message."""
    dead = Filter("dead", lane, name)
    _change(config, job_ids, dead, _discard, "discarded", as_json=as_json)


#: Changes one job. Raises `ApiError` with the reason if it can't.
Act = Callable[[Service, Tx, str], Awaitable[None]]


async def _retry(service: Service, tx: Tx, job_id: str) -> None:
    await service.job_admin.retry(tx, job_id)


async def _discard(service: Service, tx: Tx, job_id: str) -> None:
    await service.job_admin.discard(tx, job_id)


def _change(
    config: Path | None,
    job_ids: Sequence[str] | None,
    dead: Filter,
    act: Act,
    done: str,
    *,
    as_json: bool,
) -> None:
    named = dead.lane is not None or dead.name is not None
    if bool(job_ids) == named:
        raise typer.BadParameter("name jobs by their ids, or all dead ones by --name or --lane")
    changed, refused = asyncio.run(_apply(config, job_ids, dead, act))
    if as_json:
        typer.echo(json.dumps({done: changed, "refused": refused}, ensure_ascii=False))
    else:
        others = f", {len(refused)} refused" if refused else ""
        typer.echo(f"{len(changed)} {done}{others}")
    if not job_ids:
        # There may be thousands of jobs with the same few reasons.
        counts = Counter(refused.values())
        refused = {f"{count} refused": why for why, count in counts.items()}
    for which, why in refused.items():
        typer.echo(f"msgsvc: {which}: {why}", err=True)
    if refused:
        raise typer.Exit(1)


async def _apply(
    config: Path | None, job_ids: Sequence[str] | None, dead: Filter, act: Act
) -> tuple[list[str], dict[str, str]]:
    changed: list[str] = []
    refused: dict[str, str] = {}
    async with opened(config) as service:
        async for chunk in _chunks(service, job_ids, dead):
            async with service.db.transaction() as tx:
                for job_id in chunk:
                    try:
                        async with tx.savepoint():
                            await act(service, tx, job_id)
                    except ApiError as error:
                        refused[job_id] = error.message
                    else:
                        changed.append(job_id)
    return changed, refused


async def _chunks(service: Service, job_ids: Sequence[str] | None, dead: Filter) -> Any:
    if job_ids:
        # One per transaction: a batch that waits for several jobs can be notified only once in each.
        for job_id in dict.fromkeys(job_ids):
            yield [job_id]
        return
    seen: set[str] = set()
    while True:
        async with service.db.read() as tx:
            # Refused jobs stay dead and must not be tried again.
            found = await inspection.list_jobs(tx, dead, CHUNK + len(seen))
        chunk = [letter.job_id for letter in found if letter.job_id not in seen]
        if not chunk:
            return
        yield chunk
        seen.update(chunk)


async def _list(config: Path | None, wanted: Filter, limit: int) -> list[JobView]:
    async with opened(config) as service, service.db.read() as tx:
        return await inspection.list_jobs(tx, wanted, limit)


async def _show(config: Path | None, job_id: str) -> JobView:
    async with opened(config) as service, service.db.read() as tx:
        found = await inspection.find(tx, job_id)
    if found is None:
        raise NotFound("there is no job {job_id!r}; what is done is not kept", job_id=job_id)
    return found


def _filter(state: str | None, lane: str | None, name: str | None) -> Filter:
    known: Any = state
    return Filter(known, lane, name)


def _plain(letter: JobView) -> dict[str, Any]:
    return {
        "job_id": letter.job_id,
        "name": letter.name,
        "lane": letter.lane,
        "state": letter.state,
        "priority": letter.priority,
        "attempts": letter.attempts,
        "deliveries": letter.deliveries,
        "due_at": to_rfc3339(letter.run_at_ms),
        "created_at": to_rfc3339(letter.created_at_ms),
        "project_id": letter.project_id,
        "key": letter.key,
        "leased_by": letter.leased_by,
        "leased_until": optional_rfc3339(letter.leased_until_ms),
        "last_error": letter.last_error,
        "payload": letter.payload,
    }


def _row(letter: JobView) -> list[str]:
    return [
        letter.job_id,
        letter.name,
        letter.lane,
        letter.state,
        str(letter.attempts),
        to_rfc3339(letter.run_at_ms),
        (letter.last_error or "").partition("\n")[0],
    ]
