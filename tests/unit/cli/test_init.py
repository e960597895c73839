"""`msgsvc init`: what it writes can be used as it is, and tells every default truly."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.settings_file import to_toml
from msgsvc_core.config.defaults import default_plugins
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.config.sections import own_users_value
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.plugins.loading import available_plugins, load_plugins
from tests.terminal import on_a_terminal

#: What BotFather's tokens look like.
TOKEN = f"123456:{'A' * 35}"

#: A default as the file shows it: commented, with a value.
_DEFAULT = re.compile(r"^# (\w+ = .+)$", re.MULTILINE)


def _core_only(text: str) -> str:
    return text.split("\n# Plugin: ", 1)[0]


@pytest.mark.parametrize("arguments", [(), ("--full",)])
def test_the_written_file_changes_no_default_but_the_profile(
    run: Any, folder: Path, arguments: tuple[str, ...]
) -> None:
    assert run("init", *arguments).exit_code == 0

    written = load_settings(folder / "msgsvc.toml", env={})
    plain = Settings.model_validate({"secret_keys": written.secret_keys, "profile": "own_users"})
    assert written.model_dump(include=set(Settings.model_fields)) == plain.model_dump()
    assert (written.limits.tags, written.limits.requests_per_minute) == (500, 3000)


def test_the_file_is_short(run: Any, folder: Path) -> None:
    run("init")

    lines = (folder / "msgsvc.toml").read_text("utf-8").splitlines()
    assert len(lines) < 40
    assert 'profile = "own_users"' in lines


def test_the_full_file_shows_the_limits_of_both_profiles(run: Any, folder: Path) -> None:
    run("init", "--full")
    text = (folder / "msgsvc.toml").read_text("utf-8")

    for line in (
        "`tenants`: 20.\n# tags = 500",
        "`tenants`: 5.\n# sessions_per_hour = 3600",
        "`tenants`: 5.\n# endpoints_per_project = 50",
        "`tenants`: 100.\n# open_records = 10000",
        "`tenants`: false.\n# retry_timeouts_and_throttling = true",
        "`tenants`: false.\n# disable_failing = true",
    ):
        assert line in text


def test_the_page_on_installing_has_every_figure() -> None:
    page = Path(__file__).parents[3] / "docs" / "install.md"
    section = page.read_text("utf-8").split("\n## Limits for your own users\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    sections = load_plugins(sorted(available_plugins())).hook.register_settings()
    models = {"limits": LimitSettings, **{each.name: each.model for each in sections}}

    assert sorted(rows) == sorted(
        f"| `{section}.{name}` | {to_toml(field.default)} | {to_toml(value)} |"
        for section, model in models.items()
        for name, field in model.model_fields.items()
        if (value := own_users_value(field)) is not None
    )


def test_every_commented_default_can_be_uncommented(run: Any, folder: Path) -> None:
    run("init", "--full")
    path = folder / "msgsvc.toml"
    before = load_settings(path, env={})
    path.write_text(_DEFAULT.sub(r"\1", path.read_text("utf-8")), encoding="utf-8")

    after = load_settings(path, env={})
    core = set(Settings.model_fields)
    assert after.model_dump(include=core) == before.model_dump(include=core)


def test_every_setting_of_the_core_is_in_the_full_file(run: Any, folder: Path) -> None:
    run("init", "--full")
    text = _core_only((folder / "msgsvc.toml").read_text("utf-8"))

    for name, field in Settings.model_fields.items():
        assert re.search(rf"^(# )?\[?{name}\b", text, re.MULTILINE), name
        for nested in getattr(type(field.default), "model_fields", {}):
            assert re.search(rf"^(# )?{nested} =", text, re.MULTILINE), f"{name}.{nested}"


def test_sections_of_installed_plugins_are_in_the_full_file(run: Any, folder: Path) -> None:
    run("init", "--full")

    assert "\n[webhooks]\n" in (folder / "msgsvc.toml").read_text("utf-8")


@pytest.mark.parametrize("installed", [[], ["auth"], ["webhooks", "auth"]])
def test_without_the_sandbox_a_fresh_file_names_only_what_is_there(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, installed: list[str]
) -> None:
    there = available_plugins()
    monkeypatch.setattr(
        "msgsvc_core.cli.choices.available_plugins",
        lambda: {name: there[name] for name in installed},
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


def test_by_default_the_sandbox_and_all_areas_are_loaded(run: Any, folder: Path) -> None:
    result = run("init")

    assert load_settings(folder / "msgsvc.toml", env={}).plugins == default_plugins()
    listed = result.stdout.partition("installed, and not loaded: ")[2].partition(";")[0]
    assert {"telegram", "max", "email", "whatsapp"} <= set(listed.split(", "))


def test_options_name_plugins_and_the_address(run: Any, folder: Path) -> None:
    address = "https://msgsvc.example"
    result = run("init", "--with", "auth, webhooks", "--base-url", f"{address}/")
    written = load_settings(folder / "msgsvc.toml", env={})

    assert result.exit_code == 0
    assert written.plugins == ("auth", "webhooks")
    assert written.channels == {}
    assert written.base_url == address


def test_all_loads_every_installed_plugin(run: Any, folder: Path) -> None:
    run("init", "--all")
    written = load_settings(folder / "msgsvc.toml", env={})

    assert set(written.plugins) == set(available_plugins())
    assert {channel.plugin for channel in written.channels.values()} == {"sandbox"}


@pytest.mark.parametrize("way", ["stdin", "environment"])
def test_a_token_comes_by_standard_input_or_the_environment(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    pytest.importorskip("msgsvc_telegram")
    if way == "stdin":
        result = run("init", "--messenger", "telegram", "--token", "-", typed=f"{TOKEN}\n")
    else:
        monkeypatch.setenv("MSGSVC_INIT_TOKEN", TOKEN)
        result = run("init", "--messenger", "telegram")
    written = load_settings(folder / "msgsvc.toml")

    assert result.exit_code == 0, result.output
    assert written.channels["telegram"].options == {"token": TOKEN}
    assert list(written.channels) == ["telegram"]
    assert written.plugins == ("telegram", *default_plugins()[1:])
    assert TOKEN not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--messenger", "telegram"], "--token -"),
        (["--messenger", "telegram", "--token", "nonsense"], "token"),
        (["--messenger", "pigeon"], "'pigeon'; there are sandbox"),
        (["--messenger", "pigeon"], "Install the package"),
        (["--token", TOKEN], "sandbox takes none"),
        (["--with", "form"], "did you mean forms?"),
        (["--with", "auth", "--owner", "ann@example.com"], "which is left out"),
        (["--owner", "ann"], "--owner"),
        (["--base-url", "msgsvc.example"], "base_url"),
        (["--with", "auth", "--all"], "one of them"),
    ],
)
def test_what_can_not_be_followed_is_refused_and_nothing_written(
    run: Any, folder: Path, arguments: list[str], says: str
) -> None:
    pytest.importorskip("msgsvc_telegram")
    result = run("init", *arguments)

    assert result.exit_code == 1
    assert says in result.stderr
    assert TOKEN not in result.output
    assert not (folder / "msgsvc.toml").exists()


def test_a_wrong_option_leaves_the_old_file_where_it_is(run: Any, config: Path) -> None:
    before = config.read_text("utf-8")

    assert run("init", "--force", "--with", "nonsense").exit_code == 1
    assert config.read_text("utf-8") == before


def test_the_first_account_runs_the_installation(run: Any, folder: Path) -> None:
    result = run("init", "--owner", "Ann@Example.com")

    assert result.exit_code == 0
    assert "http://127.0.0.1:8000/dashboard/link/" in result.stdout
    assert "ann@example.com" in run("account", "list").stdout
    assert "operator" in run("account", "list").stdout


def test_on_a_terminal_it_asks_again_what_it_can_not_take(run: Any, folder: Path) -> None:
    pytest.importorskip("msgsvc_telegram")
    typed = [
        *("pigeon", "telegram"),
        *("nonsense", TOKEN),
        *("msgsvc.example", "https://msgsvc.example"),
        *("auth, form", "auth, dashboard"),
        *("ann", "ann@example.com"),
    ]
    status, shown = _on_a_terminal(folder, typed)
    written = load_settings(folder / "msgsvc.toml", env={})

    assert status == 0, shown
    assert written.plugins == ("telegram", "auth", "dashboard")
    assert written.channels["telegram"].options == {"token": TOKEN}
    assert written.base_url == "https://msgsvc.example"
    assert "https://msgsvc.example/dashboard/link/" in shown
    assert TOKEN not in shown
    assert "did you mean forms?" in shown


def test_on_a_terminal_return_is_the_default_and_yes_asks_nothing(run: Any, folder: Path) -> None:
    asked, _ = _on_a_terminal(folder, ["", "", "", ""])
    unasked, _ = _on_a_terminal(folder, [], "--yes", "--config", "other.toml")
    files = [(folder / name).read_text("utf-8") for name in ("msgsvc.toml", "other.toml")]

    assert (asked, unasked) == (0, 0)
    assert _without_keys(files[0]) == _without_keys(files[1])


def _without_keys(text: str) -> str:
    return re.sub(r"^secret_keys = .*$", "", text, flags=re.MULTILINE)


def _on_a_terminal(folder: Path, lines: list[str], *arguments: str) -> tuple[int, str]:
    return on_a_terminal(["init", *arguments], folder, lines, os.environ)


def test_a_file_in_another_folder_names_the_database_by_its_whole_path(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = folder / "etc" / "msgsvc.toml"
    assert run("init", "--yes", "--config", str(there)).exit_code == 0
    run("init", "--yes")

    assert load_settings(there, env={}).database_url == f"sqlite:///{folder / 'msgsvc.db'}"
    assert load_settings(folder / "msgsvc.toml", env={}).database_url == "sqlite:///msgsvc.db"

    run("migrate", "--config", str(there))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    listed = run("project", "list", "--config", str(there), unstarted=True)

    assert listed.exit_code == 0
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("base_url", "port"),
    [
        ("http://127.0.0.1:9000", 9000),
        ("http://10.0.0.7:9000", 9000),
        ("http://127.0.0.1:8000", 8000),
        ("https://msgsvc.example:8443", 8000),
    ],
)
def test_the_port_of_an_http_address_is_the_one_to_listen_on(
    run: Any, folder: Path, base_url: str, port: int
) -> None:
    run("init", "--yes", "--base-url", base_url)

    assert load_settings(folder / "msgsvc.toml", env={}).server.port == port
