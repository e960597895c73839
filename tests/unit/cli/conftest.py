"""A folder and an environment of its own for each run of a command."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from msgsvc_core import service
from msgsvc_core.cli import checks
from msgsvc_core.cli.configuration import find_config
from msgsvc_core.cli.main import app
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import MigrationSource, Phase, migrate
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_devkit.images import shared_images

Run = Callable[..., Result]

#: Commands that need no database, and those that create one.
BEFORE_START = {
    (name,)
    for name in ("init", "serve", "migrate", "restore", "doctor", "plugins", "copy", "backup")
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with no setting in the environment. A new file is copied from an image instead of
    migrated, which takes a second; not by the command `migrate`."""
    for name in list(os.environ):
        if name.startswith("MSGSVC_") and not name.startswith("MSGSVC_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # Wherever the tests run.
    monkeypatch.setattr(checks, "CONTAINER_MARKS", ())
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(service, "migrate", from_image)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs `msgsvc` with these arguments, and lets an exception that it did not expect out. Unless it is
    `unstarted`, the service has run once: there is a database."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def invoke(*arguments: str, typed: str | None = None, unstarted: bool = False) -> Result:
        if not unstarted and arguments[:1] not in BEFORE_START:
            _start(arguments)
        with monkeypatch.context() as patch:
            if arguments[:1] == ("migrate",):
                patch.setattr(service, "migrate", migrate)
            return CliRunner().invoke(app, arguments, input=typed, catch_exceptions=False)

    yield invoke
    # Commands set up logging for a process of their own; here it is the tests'.
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _start(arguments: tuple[str, ...]) -> None:
    named = Path(arguments[arguments.index("--config") + 1]) if "--config" in arguments else None
    # What is wrong with a configuration is for the command to say.
    with suppress(SettingsError, PluginError, ValueError, OSError):
        made = service.Service(load_settings(find_config(named)))
        url = made.settings.database_url
        if made.db.dialect == "sqlite" and not sqlite_path(url).exists():
            asyncio.run(from_image(made.settings.database_url, made.migrations))


async def from_image(
    url: str,
    sources: Sequence[MigrationSource],
    phase: Phase | None = None,
    *,
    has_sessions: bool = False,
) -> list[str]:
    path = sqlite_path(url) if url.startswith("sqlite") else None
    if path is None or path.exists() or not path.parent.is_dir():
        return await migrate(url, sources, phase, has_sessions=has_sessions)
    await shared_images().copy_to(path, sources)
    return []


@pytest.fixture
def migrated(config: Path) -> Path:
    """The same configuration, with its database up to date and empty."""
    sources = service.Service(load_settings(config, env={})).migrations
    asyncio.run(shared_images().copy_to(config.with_name("msgsvc.db"), sources))
    return config


@pytest.fixture
def with_accounts(config: Path) -> Path:
    """The same configuration with the plugin that keeps accounts and the audit log."""
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["dashboard"]')
    config.write_text(text, encoding="utf-8")
    return config


@pytest.fixture
def config(folder: Path) -> Path:
    """A small, sound configuration in the working folder: no plugins, no messengers."""
    path = folder / "msgsvc.toml"
    path.write_text(
        'secret_keys = ["kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU"]\nplugins = []\nchannels = {}\n',
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path
