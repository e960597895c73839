"""`msgsvc migrate`, `msgsvc plugins`, and what holds for every command."""

import os
import re
import stat
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli import main


def test_migrate_names_what_it_applied_and_then_has_nothing_to_do(run: Any, config: Path) -> None:
    assert re.match(r"applied core \d+\n\d+ applied\n", run("migrate").stdout)

    assert "nothing to do" in run("migrate").stdout


def test_a_database_in_a_folder_that_is_not_there_is_refused(run: Any, config: Path) -> None:
    text = config.read_text("utf-8")
    config.write_text(f'database_url = "sqlite:///data/x/msgsvc.db"\n{text}', encoding="utf-8")
    result = run("migrate")

    assert result.exit_code == 2
    assert f"there is no folder {config.parent / 'data' / 'x'}" in result.stderr
    assert not (config.parent / "data").exists()


def test_a_new_database_is_its_owners_alone_and_spoken_of_once(run: Any, config: Path) -> None:
    before = os.umask(0o022)
    try:
        first, second = run("migrate"), run("migrate")
    finally:
        os.umask(before)

    assert stat.S_IMODE((config.parent / "msgsvc.db").stat().st_mode) == 0o600
    assert "database_made" in first.stderr
    assert "database_made" not in second.stderr


def test_plugins_tells_loaded_ones_from_installed_ones(run: Any, config: Path) -> None:
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["webhooks", "nonsense"]')
    config.write_text(text, encoding="utf-8")
    rows = {
        words[0]: line for line in run("plugins").stdout.splitlines() if (words := line.split())
    }

    assert " yes " in rows["webhooks"]
    assert " no " in rows["auth"]
    assert "not installed" in rows["nonsense"]


def test_plugins_lists_those_of_plugins_dir_with_their_faults(
    run: Any, config: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "own_plugins"
    run("plugin", "new", "area", "feedback", "--minimal", "--into", str(folder))
    (folder / "broken.py").write_text("1 / 0")
    text = f'plugins_dir = "{folder}"\nextra_plugins = ["auth"]\n' + config.read_text("utf-8")
    config.write_text(text, encoding="utf-8")
    rows = {
        words[0]: line for line in run("plugins").stdout.splitlines() if (words := line.split())
    }

    assert "feedback.py" in rows["feedback"]
    assert " yes " in rows["feedback"]
    assert "register_endpoints, register_events" in rows["feedback"]
    assert " no " in rows["broken"]
    assert "ZeroDivisionError" in rows["broken"]
    assert " yes " in rows["auth"]


def test_plugins_works_without_a_configuration(run: Any) -> None:
    result = run("plugins")

    assert result.exit_code == 0
    assert "create_plugin" in result.stdout


def test_the_configuration_is_named_by_option_or_environment(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = config.rename(config.with_name("other.toml"))
    assert run("project", "list").exit_code == 2
    assert run("project", "list", "--config", str(elsewhere)).exit_code == 0
    monkeypatch.setenv("MSGSVC_CONFIG", str(elsewhere))

    assert run("project", "list").exit_code == 0


def test_the_environment_alone_may_be_the_configuration(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGSVC_SECRET_KEYS", '["kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU"]')

    assert run("project", "list").exit_code == 0


def test_the_environment_may_name_files_with_the_secrets(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU\n")
    monkeypatch.setenv("MSGSVC_SECRET_KEYS__FILE", str(tmp_path / "keys"))

    assert run("project", "list").exit_code == 0


def test_every_command_and_group_explains_itself(run: Any) -> None:
    assert run("--version").stdout.startswith("msgsvc ")
    for command in ("init", "serve", "migrate", "doctor", "plugins", "project", "key", "demo"):
        assert run(command, "--help").exit_code == 0


@pytest.mark.parametrize("command", ["demo", "plugin"])
def test_a_command_of_a_distribution_that_is_missing_names_it(
    run: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def nothing(**_filters: str) -> EntryPoints:
        return EntryPoints()

    monkeypatch.setattr(main, "entry_points", nothing)
    result = run(command, "--help")

    assert result.exit_code == 2
    assert result.stderr == f"msgsvc: `msgsvc {command}` comes with msgsvc-devkit: pip install it\n"
