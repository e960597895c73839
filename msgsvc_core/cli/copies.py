"""`msgsvc copy`, `backup` and `restore`: the whole database, elsewhere and back."""

import asyncio
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.cli.configuration import ConfigOption, find_config, read_settings
from msgsvc_core.cli.progress import progress_bar
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Copied, Scope, backup, copy, restore
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON, with each table's rows and checksum."),
]


def copy_command(
    to: Annotated[
        str,
        typer.Option(
            envvar="MSGSVC_COPY_TO",
            help="Database to copy to: postgresql://... or sqlite:///file.db, empty or new.",
        ),
    ],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy everything to another, empty database; run it again to continue after an interruption.

    Stop the service first. Rows and checksums of all tables are compared in the end.
    """
    settings = _settings(config)
    target = _target(config, to)
    with progress_bar(quiet=as_json) as on_progress:
        began_s = time.monotonic()
        copied = asyncio.run(copy(settings.own_database_url, target, _scope(settings), on_progress))
    _show(copied, time.monotonic() - began_s, "copied, and the same in both", as_json=as_json)
    if not as_json:
        typer.echo("set database_url to the new database, and start the service")


def backup_command(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write everything to a file, as of now; services may go on meanwhile.

    It is one SQLite file, whichever database it is from, and can be restored into either.
    """
    settings = _settings(config)
    with progress_bar(quiet=as_json) as on_progress:
        began_s = time.monotonic()
        written = asyncio.run(
            backup(
                settings.own_database_url,
                file,
                _scope(settings),
                on_progress,
                release=version("msgsvc-core"),
                created_at=to_rfc3339(round(time.time() * 1000)),
            )
        )
    _show(written, time.monotonic() - began_s, f"written to {file}", as_json=as_json)
    if not as_json:
        typer.echo("keep secret_keys too, and elsewhere: without them much of it can't be read")


def restore_command(
    file: Annotated[Path, typer.Argument(help="A file that `msgsvc backup` has written.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fill the configured database, which must be empty or new, from a backup.

    Run it again to continue after an interruption.
    """
    settings = _settings(config)
    with progress_bar(quiet=as_json) as on_progress:
        began_s = time.monotonic()
        restored = asyncio.run(
            restore(file, settings.own_database_url, _scope(settings), on_progress)
        )
    _show(restored, time.monotonic() - began_s, "restored, and as written", as_json=as_json)
    if not as_json:
        typer.echo(
            "messages that waited then are sent when the service starts, some a second time;"
            " with `msgsvc serve --quarantine` nothing is sent"
        )


def _settings(config: Path | None) -> Settings:
    settings = read_settings(config)
    configure_logs(settings.log)
    return settings


def _target(config: Path | None, url: str) -> str:
    """`url`, checked like the setting."""
    try:
        settings = load_settings(find_config(config), database_url=url, database_direct_url=None)
        return settings.database_url
    except SettingsError as error:
        raise SettingsError(str(error).replace("database_url", "--to")) from None


def _scope(settings: Settings) -> Scope:
    has_sessions = settings.database_direct_url is not None
    return Scope(Service(settings).migrations, CORE_NOT_COPIED, has_sessions)


def _show(copied: Copied, seconds: float, what: str, *, as_json: bool) -> None:
    if as_json:
        tables = {
            name: {"rows": each.rows, "checksum": each.checksum}
            for name, each in copied.tables.items()
        }
        typer.echo(
            json.dumps({"rows": copied.rows, "seconds": round(seconds, 1), "tables": tables})
        )
    else:
        typer.echo(f"{copied.rows} rows of {len(copied.tables)} tables {what} ({seconds:.1f} s)")
