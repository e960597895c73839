"""`msgsvc outbox`: what waits to be sent, and taking away what the original of a restored copy has sent."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.db import Tx
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.inspection import Waiting
from msgsvc_core.kernel.clock import from_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.service import Service

#: Withdrawn per transaction: each job settles its message and writes an event, some 100 ms together.
CHUNK = 100

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show what waits to be sent, and withdraw what a restored copy must not send again.",
)


def _parse_time(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return from_rfc3339(text)
    except ValueError:
        raise typer.BadParameter("is a time such as 2026-11-26T09:00:00Z") from None


TIME_HELP = "For example 2026-11-26T09:00:00Z."


@app.command("list")
def list_(
    due_before: Annotated[
        str | None, typer.Option("--due-before", help=f"Only what was due before. {TIME_HELP}")
    ] = None,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Count what waits to be sent to people and other hosts, by kind, and when it is due."""
    found = asyncio.run(_list(config, _parse_time(due_before)))
    if as_json:
        typer.echo(json.dumps({"data": [_plain(*each) for each in found]}, ensure_ascii=False))
    elif not found:
        typer.echo("nothing waits to be sent")
    else:
        columns = ["kind", "waiting", "claimed", "first due", "last due", "cancel", "what"]
        show_table(columns, [_row(*each) for each in found])
        _warn_of_claimed(sum(waiting.claimed for waiting, _, _ in found))


@app.command()
def cancel(
    due_before: Annotated[
        str, typer.Option("--due-before", help=f"When the original stopped. {TIME_HELP}")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Withdraw what was due before a time: the original has most likely sent it. Do it in quarantine.

    Messages end as `unknown`, and their projects are told so; broadcasts are paused; scheduled messages and
    steps of drip campaigns are skipped. What a process had claimed when the backup was made is withdrawn too,
    unless a process still has a lease on it.
    """
    before_ms = _parse_time(due_before)
    assert before_ms is not None, "it is required"
    if not yes:
        found = asyncio.run(_list(config, before_ms))
        withdrawable = [waiting for waiting, _, can_cancel in found if can_cancel]
        count = sum(each.count + each.claimed for each in withdrawable)
        _warn_of_claimed(sum(each.claimed for each in withdrawable))
        typer.confirm(f"withdraw {count} that were due before {to_rfc3339(before_ms)}?", abort=True)
    withdrawn, refused = asyncio.run(_cancel(config, before_ms))
    if as_json:
        typer.echo(json.dumps({"withdrawn": withdrawn, "refused": refused}, ensure_ascii=False))
    else:
        for name, count in withdrawn.items():
            typer.echo(f"{name}: {count} withdrawn")
        typer.echo(f"{withdrawn.total()} withdrawn")
    for why, count in refused.items():
        typer.echo(f"msgsvc: {count} refused: {why}", err=True)
    if refused:
        raise typer.Exit(1)


def _warn_of_claimed(count: int) -> None:
    """Says what the column "claimed" means, if there is something in it."""
    if count:
        typer.echo(
            f"{count} claimed: a process is sending them, or was when the backup was made. They may have"
            " arrived. Withdrawn ones are not sent again."
        )


async def _list(config: Path | None, before_ms: int | None) -> list[tuple[Waiting, str, bool]]:
    """Each kind that sends something, with what it sends, and whether it can be withdrawn."""
    async with opened(config) as service:
        specs = {spec.name: spec for spec in service.job_specs}
        async with service.db.read() as tx:
            found = await inspection.count_waiting(tx, before_ms)
            planned = [
                (await each.count(tx, before_ms), each.sends) for each in service.planned_messages
            ]
        return [
            *(
                (each, specs[each.name].sends, specs[each.name].on_withdrawn is not None)
                for each in found
                if each.name in specs and specs[each.name].sends
            ),
            *((waiting, sends, True) for waiting, sends in planned if waiting is not None),
        ]


async def _cancel(config: Path | None, before_ms: int) -> tuple[Counter[str], Counter[str]]:
    async with opened(config) as service:
        return await withdraw_due(service, before_ms)


async def withdraw_due(service: Service, before_ms: int) -> tuple[Counter[str], Counter[str]]:
    """Withdraws all that can be and was due before a time: how many of each kind, and refusals by reason."""
    withdrawn: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for spec in service.job_specs:
        after = ""
        while spec.on_withdrawn is not None:
            async with service.db.transaction() as tx:
                ids = await inspection.list_due(tx, spec.name, before_ms, after, CHUNK)
                reasons = [await _withdraw(service, tx, job_id) for job_id in ids]
            if not ids:
                break
            after = ids[-1]
            withdrawn[spec.name] += reasons.count(None)
            refused.update(reason for reason in reasons if reason is not None)
    for planned in service.planned_messages:
        some = CHUNK
        while some:
            async with service.db.transaction() as tx:
                some = await planned.withdraw(tx, before_ms, CHUNK)
            withdrawn[planned.name] += some
    return +withdrawn, refused


async def _withdraw(service: Service, tx: Tx, job_id: str) -> str | None:
    """Why it was refused; None if it was not."""
    try:
        async with tx.savepoint():
            await service.job_admin.withdraw(tx, job_id)
    except ApiError as error:
        return error.message
    return None


def _plain(waiting: Waiting, sends: str, can_cancel: bool) -> dict[str, Any]:
    return {
        "kind": waiting.name,
        "waiting": waiting.count,
        "claimed": waiting.claimed,
        "first_due_at": to_rfc3339(waiting.first_due_ms),
        "last_due_at": to_rfc3339(waiting.last_due_ms),
        "can_cancel": can_cancel,
        "what": sends,
    }


def _row(waiting: Waiting, sends: str, can_cancel: bool) -> list[str]:
    return [
        waiting.name,
        str(waiting.count),
        str(waiting.claimed),
        to_rfc3339(waiting.first_due_ms),
        to_rfc3339(waiting.last_due_ms),
        "yes" if can_cancel else "no",
        sends,
    ]
