"""The configuration of a command, and a service opened for one command."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.config.environment import FILE_SUFFIX
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs

#: The default file that commands read and `msgsvc init` writes.
DEFAULT_CONFIG = Path("msgsvc.toml")

#: Variables of which one is there if the environment has all settings: no other setting lacks a default.
_KEYS = ("MSGSVC_SECRET_KEYS", f"MSGSVC_SECRET_KEYS{FILE_SUFFIX}")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="MSGSVC_CONFIG",
        help=f"Configuration file (default: {DEFAULT_CONFIG} in this folder).",
    ),
]

QuarantineOption = Annotated[
    bool,
    typer.Option(
        "--quarantine",
        help="Send and receive nothing: jobs wait, messengers are not called. For a restored copy. The"
        " setting `quarantine` does the same for all processes.",
    ),
]


def quarantined(wanted: bool) -> dict[str, bool]:
    """The override of the settings for `--quarantine`: without it they decide."""
    return {"quarantine": True} if wanted else {}


def find_config(named: Path | None) -> Path | None:
    """The file to read. None if the environment has all settings, as in a container."""
    if named is None and not DEFAULT_CONFIG.exists() and any(name in os.environ for name in _KEYS):
        return None
    return named or DEFAULT_CONFIG


def read_settings(named: Path | None, **overrides: Any) -> Settings:
    """The settings of a command's `--config`. Raises `SettingsError`."""
    config = find_config(named)
    settings = load_settings(config, **overrides)
    if config is not None:
        _check_folder(config, settings.database_url)
    return settings


def _check_folder(config: Path, database_url: str) -> None:
    """Refuses to create an empty database in the current folder if one exists in the folder of `config`:
    that would look like a loss of data. Raises `SettingsError`."""
    if not database_url.startswith("sqlite:"):
        return
    path = sqlite_path(database_url)
    beside = config.absolute().parent / path
    try:
        is_elsewhere = not path.exists() and beside.exists()
    except OSError as error:
        raise SettingsError(f"database_url: {error.filename}: {error.strerror}") from None
    if is_elsewhere:
        raise SettingsError(
            f"database_url: {database_url} is relative to the current folder, which has no such file;"
            f" there is {beside}: run this in its folder, or write sqlite:///{beside}"
        )


def _check_file(database_url: str) -> None:
    path = sqlite_path(database_url)
    if not path.exists():
        raise SettingsError(
            f"database_url: there is no database {path.absolute()}; `msgsvc serve` or `msgsvc migrate`"
            " creates it"
        )


@asynccontextmanager
async def opened(named: Path | None, *, may_create: bool = False) -> AsyncIterator[Service]:
    """A service with only its database open: no requests, no jobs, no channels.

    It can run while a server uses the same database. Raises what `Service.start` raises, and `SettingsError`
    if there is no SQLite file, unless it `may_create` one: in another folder, or with a mistyped path, the
    command would work on an empty database and look as if all data were lost.
    """
    settings = read_settings(named)
    if not may_create and settings.database_url.startswith("sqlite:"):
        _check_file(settings.database_url)
    configure_logs(settings.log)
    service = Service(settings)
    try:
        await service.open_database()
        yield service
    finally:
        await service.channels.close()
        await service.db.disconnect()
