"""`msgsvc init`: the first configuration."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.cli.configuration import DEFAULT_CONFIG
from msgsvc_core.cli.settings_file import settings_file
from msgsvc_core.ids import new_token
from msgsvc_core.plugins import available_plugins, load_plugins
from msgsvc_core.settings import Settings, SettingsSection

#: Bits of a new secret key; 43 characters of base62.
SECRET_KEY_BITS = 256


def init(
    config: Annotated[
        Path, typer.Option("--config", "-c", envvar="MSGSVC_CONFIG", help="The file to write.")
    ] = DEFAULT_CONFIG,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an existing file; it is kept beside, as *.bak."),
    ] = False,
) -> None:
    """Write a commented configuration with a fresh secret key."""
    try:
        _init(config, force=force)
    except OSError as error:
        typer.echo(f"msgsvc: {error.filename or config}: {error.strerror}", err=True)
        raise typer.Exit(1) from None


def _init(config: Path, *, force: bool) -> None:
    if config.exists():
        if not force:
            typer.echo(f"msgsvc: {config} exists already; --force replaces it", err=True)
            raise typer.Exit(1)
        # Its secret keys open what the database holds: to lose them is to lose that.
        backup = _free_name(config)
        config.replace(backup)
        typer.echo(f"kept the old one as {backup}, with the keys that its database needs")
    plugins = _installed_defaults()
    text = settings_file(new_token(SECRET_KEY_BITS), plugins, _plugin_sections(plugins))
    _write_private(config, text)
    typer.echo(f"wrote {config}")
    named = "" if config == DEFAULT_CONFIG else f" --config {config}"
    typer.echo(f"next: msgsvc doctor{named}, then msgsvc serve{named}")


def _free_name(config: Path) -> Path:
    """Beside it: `.bak`, or the first `.bak2`, `.bak3` that no older one has."""
    names = (f"{config.name}.bak{number if number > 1 else ''}" for number in itertools.count(1))
    return next(path for path in map(config.with_name, names) if not path.exists())


def _installed_defaults() -> list[str]:
    """The default plugins that are installed: with another one the service would not start."""
    installed = available_plugins()
    return [name for name in Settings.model_fields["plugins"].default if name in installed]


def _plugin_sections(plugins: Sequence[str]) -> list[SettingsSection]:
    return list(load_plugins(plugins).hook.register_settings())


def _write_private(path: Path, text: str) -> None:
    """Writes a new file that only its owner can read: it holds the secret key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
