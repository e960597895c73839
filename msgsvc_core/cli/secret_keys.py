"""`msgsvc secrets`: which keys the values of the database are under, and their rotation."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.progress import OnProgress, progress_bar
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.security.rotation import KeyRotation, Rotated
from msgsvc_core.security.sealed import KeyUse, LostValues, SealedColumn
from msgsvc_core.service import Service

#: Where values are counted whose key is not named.
UNNAMED = "not named"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show which secret keys the database needs, and rotate them.",
)


@app.command()
def status(config: ConfigOption = None, as_json: Json = False) -> None:
    """Show how many values of each table are under which key. Exits with 1 if a key is missing."""
    ids, uses, lost = asyncio.run(_status(config))
    if as_json:
        typer.echo(
            json.dumps({"keys": ids, "values": _plain_uses(uses), "lost": _plain_lost(lost)})
        )
    else:
        _show_uses(ids, uses)
        for each in lost:
            typer.echo(f"msgsvc: {each.text}\n-> {each.column.if_lost}", err=True)
    if lost:
        raise typer.Exit(1)


@app.command()
def rotate(
    skip_lost: Annotated[
        bool,
        typer.Option("--skip-lost", help="Leave values whose key is lost as they are."),
    ] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Re-encrypt every value that is not under the first key of secret_keys, while services run.

    Put the new key behind the others and restart all processes; then put it first and restart them again. Run
    this again after an interruption: it goes on. In the end it says which keys no value needs any more.
    """
    ids, lacking, lost, rotated = asyncio.run(_rotate(config, skip_lost=skip_lost, quiet=as_json))
    if lacking:
        typer.echo(
            f"msgsvc: nothing was changed: running processes do not know key {ids[0]}:"
            f" {', '.join(lacking)}\n"
            "-> restart them with it in secret_keys, so that they can read what is written under it",
            err=True,
        )
        raise typer.Exit(1)
    if rotated is None:
        typer.echo("msgsvc: nothing was changed: a key is missing in secret_keys", err=True)
        for each in lost:
            typer.echo(f"  {each.text}", err=True)
        typer.echo(
            "-> put the key back behind the first one; if it is lost, --skip-lost rotates the rest",
            err=True,
        )
        raise typer.Exit(1)
    remaining = _total(rotated.uses)
    unused = [key_id for key_id in ids[1:] if not remaining[key_id] and not remaining[UNNAMED]]
    unreadable = {name: count for name, count in rotated.unreadable.items() if count}
    older = {key_id: remaining[key_id] for key_id in ids[1:] if remaining[key_id]}
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "keys": ids,
                    "renewed": {name: n for name, n in rotated.renewed.items() if n},
                    "unreadable": unreadable,
                    "values": _plain_uses(rotated.uses),
                    "unused_keys": unused,
                }
            )
        )
    else:
        _show_rotated(ids, rotated, unused)
    for name, count in unreadable.items():
        typer.echo(f"msgsvc: {name}: {count} value(s) are read by none of the keys", err=True)
    for key_id, count in older.items():
        typer.echo(
            f"msgsvc: {count} value(s) were written under key {key_id} meanwhile: restart every process that"
            " has another first key, and run this again",
            err=True,
        )
    if older or (unreadable and not skip_lost):
        raise typer.Exit(1)


async def _status(config: Path | None) -> tuple[list[str], list[KeyUse], list[LostValues]]:
    async with opened(config) as service:
        rotation = rotation_of(service)
        uses = await rotation.uses()
        return service.secrets.key_ids, uses, await rotation.lost(uses)


async def _rotate(
    config: Path | None, *, skip_lost: bool, quiet: bool
) -> tuple[list[str], list[str], list[LostValues], Rotated | None]:
    """The ids of the keys, the running processes without the first of them, what no key reads, and what was
    done if nothing kept it from being done."""
    async with opened(config) as service:
        rotation, ids = rotation_of(service), service.secrets.key_ids
        async with service.db.read() as tx:
            lacking = await service.jobs.runners_without_key(tx, ids[0])
        if lacking:
            return ids, lacking, [], None
        uses = await rotation.uses()
        lost = await rotation.lost(uses)
        if lost and not skip_lost:
            return ids, [], lost, None
        counts = _total(uses)
        with progress_bar(quiet=quiet) as on_progress:
            step = _Steps(on_progress, counts.total() - counts[ids[0]])
            return ids, [], lost, await rotation.run(step)


def rotation_of(service: Service) -> KeyRotation:
    """The rotation of everything that the core and the loaded plugins have declared."""
    return KeyRotation(
        secrets=service.secrets,
        columns=service.declared.sealed,
        read=service.db.read,
        transaction=service.db.transaction,
    )


class _Steps:
    """Adds up the values of the steps for the progress bar."""

    def __init__(self, on_progress: OnProgress, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = 0

    def __call__(self, column: SealedColumn, count: int) -> None:
        self._done += count
        # What is written under an older key meanwhile comes on top.
        self._on_progress(
            f"re-encrypting {column.table}", min(self._done, self._total), self._total
        )


def _total(uses: Sequence[KeyUse]) -> Counter[str]:
    total: Counter[str] = Counter()
    for use in uses:
        total.update(use.by_key)
        total[UNNAMED] += use.unnamed
    return total


def _show_uses(ids: Sequence[str], uses: Sequence[KeyUse]) -> None:
    total = _total(uses)
    shown = [*ids, *sorted(total.keys() - {*ids, UNNAMED})]
    if total[UNNAMED]:
        shown.append(UNNAMED)
    titles = {key_id: f"key {number} ({key_id})" for number, key_id in enumerate(ids, start=1)}
    rows = [
        [use.column.name, *(str(_in(use, key_id)) for key_id in shown)]
        for use in uses
        if use.by_key or use.unnamed
    ]
    columns = [titles.get(each, each if each == UNNAMED else f"missing ({each})") for each in shown]
    show_table(["values", *columns], rows)


def _in(use: KeyUse, key_id: str) -> int:
    return use.unnamed if key_id == UNNAMED else use.by_key[key_id]


def _show_rotated(ids: Sequence[str], rotated: Rotated, unused: Sequence[str]) -> None:
    for name, count in rotated.renewed.items():
        if count:
            typer.echo(f"{name}: {count} re-encrypted")
    current = _total(rotated.uses)[ids[0]]
    typer.echo(
        f"{rotated.renewed.total()} value(s) re-encrypted, {current} are under key 1 ({ids[0]})"
    )
    for key_id in unused:
        typer.echo(
            f"no value is under key {ids.index(key_id) + 1} ({key_id}) any more: it can be removed from"
            " secret_keys once what it signed has expired (docs/run.md)"
        )


def _plain_uses(uses: Sequence[KeyUse]) -> dict[str, Any]:
    return {
        use.column.name: {**use.by_key, **({UNNAMED: use.unnamed} if use.unnamed else {})}
        for use in uses
        if use.by_key or use.unnamed
    }


def _plain_lost(lost: Sequence[LostValues]) -> list[dict[str, Any]]:
    return [
        {"column": each.column.name, "count": each.count, "key_ids": [*each.key_ids]}
        for each in lost
    ]
