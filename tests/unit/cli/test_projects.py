"""`msgsvc project` and `msgsvc key`, and that what they make opens the API."""

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.tables import show_table
from msgsvc_core.config.settings import load_settings
from msgsvc_core.kernel.errors import InvalidApiKey, ProjectInactive
from msgsvc_core.projects.models import ApiKey, Project
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Audit
from msgsvc_dashboard.accounts.models import AuditEntry, AuditFilters


async def _authenticate(config: Path, secret: str) -> tuple[Project, ApiKey]:
    service = Service(load_settings(config, env={}))
    await service.open_database()
    try:
        project, key = await service.projects.authenticate(secret)
        service.projects.check_active(project)
        return project, key
    finally:
        await service.db.disconnect()


@pytest.fixture
def project_id(run: Any, config: Path) -> str:
    """The id of a project that was made on the command line."""
    answer: dict[str, str] = json.loads(run("project", "create", "Shop", "--json").stdout)
    return answer["project_id"]


@pytest.fixture
def key(run: Any, project_id: str) -> dict[str, Any]:
    """A key of that project, as `key create --json` answers it."""
    answer: dict[str, Any] = json.loads(run("key", "create", project_id, "--json").stdout)
    return answer


def test_a_new_project_is_listed_and_active(run: Any, project_id: str) -> None:
    listed = json.loads(run("project", "list", "--json").stdout)["data"]

    assert [(row["project_id"], row["name"], row["status"]) for row in listed] == [
        (project_id, "Shop", "active")
    ]


def test_the_table_of_projects_shows_whole_ids(run: Any, project_id: str) -> None:
    assert project_id in run("project", "list").stdout


def test_a_project_needs_a_name(run: Any, config: Path) -> None:
    assert run("project", "create", "  ").exit_code == 2


@pytest.mark.parametrize(
    "name",
    ["x" * 65, "Shop\nsays hello", "Shop\u202epohS", "Shop\u2066", "Shop\x00", "\x1b[31mShop"],
)
def test_a_name_that_could_deceive_is_refused(run: Any, config: Path, name: str) -> None:
    result = run("project", "create", name)

    assert result.exit_code == 1
    assert result.stderr.endswith(
        "name: must be 1-64 printable characters without spaces at its ends\n"
    )
    assert json.loads(run("project", "list", "--json").stdout) == {"data": []}


@pytest.mark.parametrize("name", ["x" * 64, "Кофейня «Угол»", "カフェ ☕"])
def test_a_name_may_be_in_any_script(run: Any, config: Path, name: str) -> None:
    assert json.loads(run("project", "create", name, "--json").stdout)["name"] == name


def test_a_new_key_opens_its_project(config: Path, project_id: str, key: dict[str, Any]) -> None:
    project, found = asyncio.run(_authenticate(config, key["key"]))

    assert project.project_id == project_id
    assert found.key_id == key["key_id"]
    assert found.scopes == ("*",)


def test_the_secret_is_shown_without_json_too(run: Any, project_id: str) -> None:
    result = run("key", "create", project_id, "--name", "site", "--scope", "messages")

    assert result.stdout.splitlines()[-1].startswith("msk_")
    assert "messages" in result.stdout


def test_keys_are_listed_with_when_they_were_made_and_revoked(
    run: Any, project_id: str, key: dict[str, Any]
) -> None:
    run("key", "create", project_id, "--name", "site", "--scope", "messages")
    run("key", "revoke", project_id, key["key_id"])
    first, second = json.loads(run("key", "list", project_id, "--json").stdout)["data"]

    assert (first["key_id"], first["scopes"]) == (key["key_id"], ["*"])
    assert key["key"].startswith(first["prefix"])
    assert first["created_at"] <= first["revoked_at"]
    assert (second["name"], second["scopes"], second["revoked_at"]) == ("site", ["messages"], None)


@pytest.mark.parametrize("expires", ["30", "2099-12-31T23:00:00+03:00"])
def test_a_key_is_made_and_listed_with_its_expiry(
    run: Any, project_id: str, key: dict[str, Any], expires: str
) -> None:
    made = json.loads(run("key", "create", project_id, "--expires", expires, "--json").stdout)
    forever, listed = json.loads(run("key", "list", project_id, "--json").stdout)["data"]

    assert (key["expires_at"], forever["expires_at"]) == (None, None)
    assert made["expires_at"] == listed["expires_at"] > listed["created_at"]
    assert listed["expires_at"] in run("key", "list", project_id).stdout


@pytest.mark.parametrize(
    "expires", ["soon", "-1", "0", "2020-01-01T00:00:00Z", "99999999", "9" * 30]
)
def test_an_expiry_that_is_no_time_ahead_is_refused(
    run: Any, project_id: str, expires: str
) -> None:
    result = run("key", "create", project_id, "--expires", expires)

    assert result.exit_code in {1, 2}
    assert "--expires" in result.stderr or "expires_at: must be in the future" in result.stderr
    assert "no keys" in run("key", "list", project_id).stdout


async def _use(config: Path, secret: str) -> None:
    async with Service(load_settings(config, env={})) as service:
        await service.projects.authenticate(secret)


def test_keys_are_listed_with_when_they_were_last_used(
    run: Any, config: Path, project_id: str, key: dict[str, Any]
) -> None:
    [before] = json.loads(run("key", "list", project_id, "--json").stdout)["data"]
    asyncio.run(_use(config, key["key"]))
    [after] = json.loads(run("key", "list", project_id, "--json").stdout)["data"]

    assert before["last_used_at"] is None
    assert after["last_used_at"] >= after["created_at"]
    assert after["last_used_at"] in run("key", "list", project_id).stdout


def test_the_table_of_keys_shows_whole_ids_and_no_secret(
    run: Any, project_id: str, key: dict[str, Any]
) -> None:
    shown = run("key", "list", project_id).stdout

    assert key["key_id"] in shown.splitlines()[1].split()
    assert key["key"] not in shown


def test_a_project_without_keys_says_how_to_make_one(run: Any, project_id: str) -> None:
    assert f"msgsvc key create {project_id}" in run("key", "list", project_id).stdout


@pytest.mark.parametrize("columns", ["200", "80", "30"])
def test_a_narrow_terminal_cuts_nothing(
    project_id: str, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", columns)
    show_table(["id", "name"], [[project_id, "[red]" + "x" * 90]])

    shown = terminal.getvalue()
    assert project_id in shown
    assert shown.count("x") == 90 + project_id.count("x")
    assert "[red]" in shown


def test_a_revoked_key_opens_nothing(
    run: Any, config: Path, project_id: str, key: dict[str, Any]
) -> None:
    assert run("key", "revoke", project_id, key["key_id"]).exit_code == 0

    with pytest.raises(InvalidApiKey):
        asyncio.run(_authenticate(config, key["key"]))


def test_disabling_and_enabling_a_project_ends_and_restores_its_access(
    run: Any, config: Path, project_id: str, key: dict[str, Any]
) -> None:
    run("project", "disable", project_id)
    with pytest.raises(ProjectInactive):
        asyncio.run(_authenticate(config, key["key"]))
    run("project", "enable", project_id)

    assert asyncio.run(_authenticate(config, key["key"]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("key", "create", "prj_none"),
        ("key", "revoke", "prj_none", "key_none"),
        ("key", "list", "prj_none"),
        ("project", "disable", "prj_none"),
        ("project", "enable", "prj_none"),
    ],
)
def test_what_does_not_exist_is_refused_in_a_line(
    run: Any, config: Path, arguments: tuple[str, ...]
) -> None:
    result = run(*arguments)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("msgsvc: ")


def test_a_key_may_be_for_reading(run: Any, config: Path, project_id: str) -> None:
    made = run("key", "create", project_id, "--scope", "*read", "--json")
    _, key = asyncio.run(_authenticate(config, json.loads(made.stdout)["key"]))

    assert key.opens("messages", writes=False)
    assert not key.opens("messages")


def test_a_misspelt_scope_is_refused(run: Any, project_id: str) -> None:
    result = run("key", "create", project_id, "--scope", "mesages")

    assert result.exit_code == 2
    assert "messages" in result.stderr


def test_in_another_folder_than_the_database_no_empty_one_is_made(
    run: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("project", "create", "Shop")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    result = run("project", "list", "--config", str(config), unstarted=True)

    assert result.exit_code == 2
    assert str(config.with_name("msgsvc.db")) in result.stderr
    assert list(elsewhere.iterdir()) == []


def test_no_command_about_data_creates_a_database(run: Any, config: Path) -> None:
    results = [
        run(*command, unstarted=True)
        for command in (
            ["project", "create", "Shop"],
            ["project", "list"],
            ["outbox", "list"],
            ["backup", "all.backup"],
        )
    ]

    assert all(result.exit_code for result in results)
    assert f"there is no database {config.with_name('msgsvc.db')}" in results[0].stderr
    assert "`msgsvc serve` or `msgsvc migrate` creates it" in results[0].stderr
    assert not config.with_name("msgsvc.db").exists()


async def _audited(config: Path, project_id: str) -> list[AuditEntry]:
    service = Service(load_settings(config, env={}))
    await service.open_database()
    try:
        async with service.db.read() as tx:
            return await service.get(Audit).of_project(
                tx, project_id, AuditFilters(), after=None, most=9
            )
    finally:
        await service.db.disconnect()


def test_what_the_command_line_changes_stands_in_the_audit_log(
    run: Any, with_accounts: Path, project_id: str, key: dict[str, Any]
) -> None:
    run("key", "revoke", project_id, key["key_id"])
    run("project", "disable", project_id)
    run("project", "enable", project_id)

    found = list(reversed(asyncio.run(_audited(with_accounts, project_id))))

    assert [(entry.action, entry.target) for entry in found] == [
        ("project.create", None),
        ("key.create", key["key_id"]),
        ("key.revoke", key["key_id"]),
        ("project.disable", None),
        ("project.enable", None),
    ]
    assert {entry.detail["by"] for entry in found} == {"cli"}
    assert key["key"] not in str(found)
