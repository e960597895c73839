"""`msgsvc init`: writes a first configuration."""

import asyncio
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from msgsvc_core.cli.choices import (
    Choice,
    Installed,
    Options,
    WrongChoice,
    choose,
    installed_plugins,
)
from msgsvc_core.cli.configuration import DEFAULT_CONFIG
from msgsvc_core.cli.settings_file import settings_file, short_file
from msgsvc_core.config.sections import OWN_USERS, ServerSettings
from msgsvc_core.config.settings import Settings, SettingsSection
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.plugins.loading import load_plugins

#: Bits of a new secret key; 43 characters of base62.
SECRET_KEY_BITS = 256


def init(
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="MSGSVC_CONFIG", help="The file to write.")
    ] = DEFAULT_CONFIG,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing file; a copy is kept as *.bak."),
    ] = False,
    messenger: Annotated[
        str | None,
        typer.Option("--messenger", help="The first messenger: its kind, or none."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="MSGSVC_INIT_TOKEN",
            help="The messenger's token; `-` reads it from standard input. Other users of this machine"
            " can read a command line.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="Public URL of the service."),
    ] = None,
    areas: Annotated[
        str | None,
        typer.Option("--with", metavar="A,B", help="Load only these plugins (default: all areas)."),
    ] = None,
    all_plugins: Annotated[
        bool, typer.Option("--all", help="Load every installed plugin, including messengers.")
    ] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", help="Email of the first account, the operator of the installation."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Write every setting, with its default as a comment.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Ask no questions; use defaults for what no option sets."),
    ] = False,
) -> None:
    """Write a configuration with a fresh secret key.

    In a terminal it prompts for what no option sets; otherwise the sandbox messenger and all
    installed areas are loaded.
    """
    options = Options(messenger, token, base_url, areas, all_plugins, owner)
    asking = not yes and sys.stdin.isatty()
    try:
        _init(config, options, force=force, asking=asking, full=full)
    except WrongChoice as error:
        typer.echo(f"msgsvc: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"msgsvc: {error.filename or config}: {error.strerror}", err=True)
        raise typer.Exit(1) from None


def _init(config: Path, options: Options, *, force: bool, asking: bool, full: bool) -> None:
    if config.exists() and not force:
        typer.echo(f"msgsvc: {config} exists already; --force replaces it", err=True)
        raise typer.Exit(1)
    if options.all_plugins and options.areas is not None:
        raise WrongChoice("--all and --with: one of them")
    installed = installed_plugins()
    choice = choose(installed, options, asking=asking)
    if config.exists():
        # Without its secret keys, encrypted values in the database are lost.
        backup = _free_name(config)
        config.replace(backup)
        typer.echo(f"kept the old file as {backup}: its database needs the secret keys in it")
    _write_private(config, _text(choice, database_url=_database_url(config), full=full))
    typer.echo(f"wrote {config}")
    _tell_plugins(installed, choice)
    named = "" if config == DEFAULT_CONFIG else f" --config {config}"
    if choice.owner is not None and choice.first_account is not None:
        typer.echo(asyncio.run(choice.first_account.create(config, choice.owner)))
    typer.echo(f"next: msgsvc doctor{named}, then msgsvc serve{named}")


def _database_url(config: Path) -> str:
    """An absolute path if the file is in another folder: commands that name it may run in any."""
    url: str = Settings.model_fields["database_url"].default
    if config.resolve().parent == Path.cwd():
        return url
    return f"sqlite:///{sqlite_path(url).absolute()}"


def _text(choice: Choice, *, database_url: str, full: bool) -> str:
    values = {
        "base_url": choice.base_url,
        "database_url": database_url,
        "secret_keys": [new_token(SECRET_KEY_BITS)],
        "plugins": choice.plugins,
        "profile": OWN_USERS,
    }
    port = _port(choice.base_url)
    in_sections = {} if port is None else {"server": {"port": port}}
    if full:
        sections = _plugin_sections(choice.plugins)
        return settings_file(values, choice.channels, sections, in_sections)
    return short_file(values, choice.channels, in_sections)


def _port(base_url: str) -> int | None:
    """The port to listen on, if the address tells it; an https address is that of a proxy."""
    url = urlsplit(base_url)
    return url.port if url.scheme == "http" and url.port != ServerSettings().port else None


def _tell_plugins(installed: Installed, choice: Choice) -> None:
    typer.echo(f"loads {', '.join(choice.plugins) or 'no plugins'}")
    if left := [name for name in installed.plugins if name not in choice.plugins]:
        typer.echo(f"installed, and not loaded: {', '.join(left)}; `plugins` in the file adds them")


def _free_name(config: Path) -> Path:
    """A path beside `config` that does not exist: `.bak`, `.bak2`, `.bak3` and so on."""
    names = (f"{config.name}.bak{number if number > 1 else ''}" for number in itertools.count(1))
    return next(path for path in map(config.with_name, names) if not path.exists())


def _plugin_sections(plugins: Sequence[str]) -> list[SettingsSection]:
    return list(load_plugins(plugins).hook.register_settings())


def _write_private(path: Path, text: str) -> None:
    """Writes a new file that only its owner can read, since it contains the secret key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
