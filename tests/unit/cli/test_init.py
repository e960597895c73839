"""`msgsvc init`: what it writes can be used as it is, and tells every default truly."""

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.plugins import available_plugins
from msgsvc_core.settings import Settings, load_settings

#: A default as the file shows it: commented, with a value.
_DEFAULT = re.compile(r"^# (\w+ = .+)$", re.MULTILINE)


def _core_only(text: str) -> str:
    return text.split("\n# Plugin: ", 1)[0]


def test_the_written_file_can_be_loaded_and_changes_no_default(run: Any, folder: Path) -> None:
    assert run("init").exit_code == 0

    written = load_settings(folder / "msgsvc.toml", env={})
    plain = Settings.model_validate({"secret_keys": written.secret_keys})
    assert written.model_dump(include=set(Settings.model_fields)) == plain.model_dump()


def test_every_commented_default_can_be_uncommented(run: Any, folder: Path) -> None:
    run("init")
    path = folder / "msgsvc.toml"
    before = load_settings(path, env={})
    path.write_text(_DEFAULT.sub(r"\1", path.read_text("utf-8")), encoding="utf-8")

    after = load_settings(path, env={})
    core = set(Settings.model_fields)
    assert after.model_dump(include=core) == before.model_dump(include=core)


def test_every_setting_of_the_core_is_in_the_file(run: Any, folder: Path) -> None:
    run("init")
    text = _core_only((folder / "msgsvc.toml").read_text("utf-8"))

    for name, field in Settings.model_fields.items():
        assert re.search(rf"^(# )?\[?{name}\b", text, re.MULTILINE), name
        for nested in getattr(type(field.default), "model_fields", {}):
            assert re.search(rf"^# {nested} =", text, re.MULTILINE), f"{name}.{nested}"


def test_sections_of_installed_plugins_are_in_the_file(run: Any, folder: Path) -> None:
    run("init")

    assert "\n[webhooks]\n" in (folder / "msgsvc.toml").read_text("utf-8")


@pytest.mark.parametrize("installed", [[], ["auth"], ["webhooks", "auth"]])
def test_without_the_sandbox_a_fresh_file_names_only_what_is_there(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, installed: list[str]
) -> None:
    there = available_plugins()
    monkeypatch.setattr(
        "msgsvc_core.cli.init.available_plugins", lambda: {name: there[name] for name in installed}
    )
    run("init")
    written = load_settings(folder / "msgsvc.toml", env={})

    assert sorted(written.plugins) == sorted(installed)
    assert written.channels == {}
    assert "# [channels.messenger_a]" in (folder / "msgsvc.toml").read_text("utf-8")
    assert run("doctor").exit_code == 0


def test_two_files_never_have_the_same_key(run: Any, folder: Path) -> None:
    run("init", "--config", "a.toml")
    run("init", "--config", "b.toml")

    keys = {load_settings(folder / name, env={}).secret_keys for name in ("a.toml", "b.toml")}
    assert len(keys) == 2


def test_only_the_owner_can_read_the_file(run: Any, folder: Path) -> None:
    run("init")

    assert stat.S_IMODE((folder / "msgsvc.toml").stat().st_mode) == 0o600


def test_where_no_file_can_be_made_it_is_said_in_a_line(run: Any, folder: Path) -> None:
    (folder / "taken").write_text("")

    answer = run("init", "--config", str(folder / "taken" / "msgsvc.toml"))

    assert answer.exit_code == 1
    assert answer.stderr.startswith("msgsvc: ")
    assert len(answer.stderr.splitlines()) == 1


def test_an_existing_file_is_left_alone(run: Any, config: Path) -> None:
    before = config.read_text("utf-8")
    result = run("init")

    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert config.read_text("utf-8") == before


def test_force_keeps_the_old_keys_beside_the_new_file(run: Any, config: Path) -> None:
    before = config.read_text("utf-8")
    result = run("init", "--force")

    assert result.exit_code == 0
    assert config.with_name("msgsvc.toml.bak").read_text("utf-8") == before
    assert config.read_text("utf-8") != before


def test_forced_twice_all_old_keys_are_kept(run: Any, config: Path) -> None:
    texts = [config.read_text("utf-8")]
    for _ in range(3):
        assert run("init", "--force").exit_code == 0
        texts.append(config.read_text("utf-8"))

    names = ["msgsvc.toml.bak", "msgsvc.toml.bak2", "msgsvc.toml.bak3", "msgsvc.toml"]
    assert [config.with_name(name).read_text("utf-8") for name in names] == texts
