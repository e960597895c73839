"""`msgsvc migrate`."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.cli.projects import Json
from msgsvc_core.db import Phase
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from msgsvc_core.db.planning import Plan, PlannedStatement, PlannedStep

#: Steps that are named each; of more, those of a new database, each owner's are counted.
MOST_NAMED = 10

#: Seconds from which an estimate is given in minutes.
MINUTES_FROM_S = 120


def migrate(
    config: ConfigOption = None,
    phase: Annotated[
        Phase | None,
        typer.Option(
            help="Only one half: expand, while processes of the earlier release run, or contract, when they"
            " have ended."
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Print what would be applied, with the locks of each statement and about how long it"
            " takes, and change nothing.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Apply the migrations of the core and of every loaded plugin."""
    if as_json and not plan:
        raise typer.BadParameter("belongs to --plan", param_hint="--json")
    settings = read_settings(config)
    configure_logs(settings.log)
    if plan:
        _print_plan(Service(settings), phase, as_json=as_json)
        return
    applied = asyncio.run(_migrate(Service(settings), phase))
    if len(applied) > MOST_NAMED:
        by_owner = Counter(revision.partition(":")[0] for revision in applied)
        typer.echo("applied " + ", ".join(f"{owner} {count}" for owner, count in by_owner.items()))
    else:
        for revision in applied:
            typer.echo(f"applied {revision}")
    if applied:
        typer.echo(f"{len(applied)} applied")
    elif phase:
        typer.echo(f"nothing to do: no step of this half ({phase}) is pending")
    else:
        typer.echo("nothing to do: the database is up to date")


async def _migrate(service: Service, phase: Phase | None) -> list[str]:
    return await service.migrate(phase)


def _print_plan(service: Service, phase: Phase | None, *, as_json: bool) -> None:
    from msgsvc_core.db import planning  # noqa: PLC0415 - loads Alembic

    found = asyncio.run(
        planning.plan(service.settings.database_url, service.migrations, phase=phase)
    )
    lines = [json.dumps(_as_json(found), indent=2)] if as_json else _as_text(found)
    for line in lines:
        typer.echo(line)


def _as_text(plan: "Plan") -> Iterator[str]:
    for each in plan.steps:
        outside = "" if each.step.transactional else ", not in a transaction"
        yield f"{each.step.name} ({each.step.phase}{outside})"
        yield from _step_as_text(each)
    contracting = [
        each for each in plan.steps if each.step.phase == "contract" and not each.creates
    ]
    if contracting and plan.others:
        yield (
            f"the second half (contract) is refused now, since processes of another release run:"
            f" {', '.join(plan.others)}"
        )
    if plan.steps:
        yield f"{len(plan.steps)} pending; nothing was changed"
    else:
        yield "nothing is pending"


def _step_as_text(step: "PlannedStep") -> Iterator[str]:
    if step.creates:
        yield "  creates tables, which nobody uses yet: instant"
        return
    from msgsvc_core.db.planning import in_short  # noqa: PLC0415 - loads Alembic

    for planned in step.statements:
        yield f"  {in_short(planned.statement.sql)}"
        yield f"      {_effect(planned)}"
    if step.unread:
        yield f"  what else it does is not known before: {step.unread}"


def _effect(planned: "PlannedStatement") -> str:
    from msgsvc_core.db.ddl import WAITING  # noqa: PLC0415 - only for a plan

    locks = [
        f"locks {'the file' if lock.mode == 'file' else f'{lock.table} ({lock.mode})'}: {WAITING[lock.mode]}"
        for lock in planned.statement.locks
    ]
    size = planned.size
    of = f" for about {size.rows:,} rows, {size.bytes / 2**20:,.0f} MiB" if size else ""
    return "; ".join([*(locks or ["locks nothing in use"]), f"{_time(planned.seconds)}{of}"])


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "takes an unknown time"
    if seconds == 0:
        return "instant"
    if seconds < 1:
        return "less than a second"
    if seconds < MINUTES_FROM_S:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min"


def _as_json(plan: "Plan") -> dict[str, Any]:
    return {
        "steps": [
            {
                "owner": each.step.owner,
                "revision": each.step.revision,
                "phase": each.step.phase,
                "transactional": each.step.transactional,
                "creates": each.creates,
                "statements": [
                    {
                        "sql": planned.statement.sql,
                        "locks": [
                            {"table": lock.table, "mode": lock.mode}
                            for lock in planned.statement.locks
                        ],
                        "work": planned.statement.work,
                        "seconds": planned.seconds,
                        "rows": planned.size.rows if planned.size else None,
                        "bytes": planned.size.bytes if planned.size else None,
                    }
                    for planned in each.statements
                ],
                "unread": each.unread,
            }
            for each in plan.steps
        ],
        "other_processes": list(plan.others),
    }
