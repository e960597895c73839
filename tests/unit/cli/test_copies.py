"""`msgsvc copy`, `backup` and `restore`."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest


def projects(run: Any) -> str:
    output: str = run("project", "list").stdout
    return output


def test_a_database_goes_through_a_backup_into_another_one(run: Any, config: Path) -> None:
    run("project", "create", "Shop")

    written = json.loads(run("backup", "shop.backup", "--json").stdout)
    moved = run("copy", "--to", "sqlite:///moved.db")
    before = projects(run)
    Path("msgsvc.db").unlink()
    restored = run("restore", "shop.backup")

    assert written["tables"]["core_projects"]["rows"] == 1
    assert written["rows"] == sum(table["rows"] for table in written["tables"].values())
    assert "the same in both" in moved.stdout
    assert "as written" in restored.stdout
    assert projects(run) == before


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("copy", "--to", "mysql://there"), 2, "--to: "),
        (("copy", "--to", "sqlite:///msgsvc.db"), 1, "the database itself"),
        (("restore", "absent.backup"), 1, "absent.backup: no such file"),
        (("backup", "no/folder/shop.backup"), 1, "make it first"),
    ],
)
def test_a_refusal_is_one_line(
    run: Any, config: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    run("project", "create", "Shop")

    result = run(*arguments)

    assert result.exit_code == code
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_there_is_nothing_to_copy_before_the_first_start(run: Any, config: Path) -> None:
    result = run("backup", "shop.backup")

    assert result.exit_code == 1
    assert "there is no database msgsvc.db" in result.stderr
    assert not Path("msgsvc.db").exists()


def test_a_backup_to_a_full_disk_is_refused_without_a_traceback(
    run: Any, migrated: Path, tmp_path: Path
) -> None:
    # No file may be larger, in this process; SQLite meets that as it meets a full disk.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        result = run("backup", str(tmp_path / "all.backup"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert result.exit_code == 1
    assert "all.backup can't be written: " in result.stderr
    assert "Free space on its disk" in result.stderr
    assert not list(tmp_path.glob("all.backup*"))
