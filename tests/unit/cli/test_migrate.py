"""`msgsvc migrate` in halves, and its plan."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core import service as services
from msgsvc_core.db import CORE_MIGRATIONS, MigrationSource
from msgsvc_core.db.schema import this_release

ADD = 'op.execute("ALTER TABLE core_projects ADD COLUMN colour TEXT")'
DROP = 'op.execute("ALTER TABLE core_projects DROP COLUMN colour")'


@pytest.fixture
def upgrade(tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of this release, and a core that has two steps more: its folder of scripts."""
    folder = tmp_path / "steps"
    shutil.copytree(CORE_MIGRATIONS.folder, folder)
    before = CORE_MIGRATIONS.newest()
    for revision, phase, body in (("core_8001", "expand", ADD), ("core_8002", "contract", DROP)):
        (folder / f"{revision}.py").write_text(
            f'from alembic import op\n\nrevision = "{revision}"\ndown_revision = "{before}"\n'
            f'phase = "{phase}"\n\n\ndef upgrade():\n    {body}\n'
        )
        before = revision
    monkeypatch.setattr(services, "CORE_MIGRATIONS", MigrationSource("core", folder))
    return folder


def test_each_half_is_applied_alone(run: Any, upgrade: Path) -> None:
    assert run("migrate", "--phase", "contract").exit_code == 1
    assert run("migrate", "--phase", "expand").stdout == "applied core:core_8001\n1 applied\n"
    assert "nothing to do" in run("migrate", "--phase", "expand").stdout

    assert run("migrate", "--phase", "contract").stdout == "applied core:core_8002\n1 applied\n"


def test_the_plan_names_steps_locks_and_times_and_changes_nothing(run: Any, upgrade: Path) -> None:
    first, second = run("migrate", "--plan"), run("migrate", "--plan")

    assert first.stdout == second.stdout
    assert first.stdout.splitlines()[:3] == [
        "core:core_8001 (expand)",
        "  ALTER TABLE core_projects ADD COLUMN colour TEXT",
        "      locks the file: writers of all tables wait; instant",
    ]
    assert "core:core_8002 (contract)" in first.stdout
    assert first.stdout.endswith("2 pending; nothing was changed\n")


def test_the_plan_of_one_half_has_its_steps_alone(run: Any, upgrade: Path) -> None:
    plan = json.loads(run("migrate", "--plan", "--json", "--phase", "expand").stdout)

    [step] = plan["steps"]
    assert (step["owner"], step["revision"], step["phase"]) == ("core", "core_8001", "expand")
    assert step["statements"] == [
        {
            "sql": "ALTER TABLE core_projects ADD COLUMN colour TEXT",
            "locks": [{"table": "*", "mode": "file"}],
            "work": "none",
            "seconds": 0.0,
            "rows": None,
            "bytes": None,
        }
    ]


def test_the_plan_of_a_new_database_is_short(run: Any, config: Path) -> None:
    lines = run("migrate", "--plan").stdout.splitlines()

    assert "  creates tables, which nobody uses yet: instant" in lines
    steps = [line for line in lines if line.startswith("core:")]
    assert len(lines) <= 2 * len(steps) + 2, "a step that creates tables does not name each of them"


def test_an_up_to_date_database_has_nothing_pending(run: Any, migrated: Path) -> None:
    assert run("migrate", "--plan").stdout == "nothing is pending\n"


def test_json_belongs_to_the_plan(run: Any, config: Path) -> None:
    assert run("migrate", "--json").exit_code == 2


@pytest.mark.parametrize("command", ["migrate", "serve", "project list", "doctor"])
def test_a_database_of_a_newer_release_is_refused_with_the_way_back(
    run: Any, upgrade: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    run("migrate")
    monkeypatch.setattr(services, "CORE_MIGRATIONS", CORE_MIGRATIONS)

    result = run(*command.split())

    said = result.output
    assert result.exit_code == (1 if command == "doctor" else 2)
    assert f"core:core_8001 (of {this_release()}), core:core_8002" in said
    assert "msgsvc restore FILE" in said


def test_doctor_tells_of_a_database_that_a_newer_release_has_expanded(
    run: Any, upgrade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("migrate", "--phase", "expand")
    monkeypatch.setattr(services, "CORE_MIGRATIONS", CORE_MIGRATIONS)

    assert "a newer release has prepared the database (core:core_8001)" in run("doctor").stdout
    assert run("project", "list").exit_code == 0
