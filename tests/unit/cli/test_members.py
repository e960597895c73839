"""`msgsvc member`."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def project_id(run: Any, config: Path) -> str:
    return str(json.loads(run("project", "create", "Shop", "--json").stdout)["project_id"])


def add(run: Any, project_id: str, email: str = "Ann@shop.example", *options: str) -> Any:
    return run("member", "add", project_id, email, "--name", "Ann Lee", *options)


def listed(run: Any, project_id: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(run("member", "list", project_id, "--json").stdout)[
        "data"
    ]
    return data


def test_an_added_member_is_listed(run: Any, project_id: str) -> None:
    added = json.loads(add(run, project_id, "Ann@shop.example", "--role", "owner", "--json").stdout)

    assert listed(run, project_id) == [added]
    assert (added["email"], added["role"]) == ("ann@shop.example", "owner")
    assert added["member_id"] in run("member", "list", project_id).stdout


def test_without_members_it_is_said_how_to_add_one(run: Any, project_id: str) -> None:
    assert f"msgsvc member add {project_id}" in run("member", "list", project_id).stdout


def test_all_members_are_listed(run: Any, project_id: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("msgsvc_core.cli.members.PAGE", 2)
    for name in "abcde":
        add(run, project_id, f"{name}@shop.example")

    assert [member["email"][0] for member in listed(run, project_id)] == list("edcba")


def test_a_second_member_of_an_email_is_refused(run: Any, project_id: str) -> None:
    add(run, project_id)

    result = add(run, project_id)

    assert result.exit_code == 1
    assert "ann@shop.example" in result.stderr


def test_what_is_no_email_is_refused(run: Any, project_id: str) -> None:
    result = add(run, project_id, "ann")

    assert result.exit_code == 2
    assert "EMAIL" in result.stderr


def test_a_member_of_no_project_is_refused(run: Any, config: Path) -> None:
    assert add(run, "prj_nobody").exit_code == 1


@pytest.mark.parametrize(("option", "word"), [((), "removed"), (("--erase",), "erased")])
def test_who_is_removed_is_not_listed(
    run: Any, project_id: str, option: tuple[str, ...], word: str
) -> None:
    member_id = json.loads(add(run, project_id, "a@shop.example", "--json").stdout)["member_id"]

    result = run("member", "remove", project_id, member_id, *option)

    assert result.stdout == f"{member_id} is {word}\n"
    assert listed(run, project_id) == []


def test_removing_nobody_is_refused(run: Any, project_id: str) -> None:
    assert run("member", "remove", project_id, "mem_nobody").exit_code == 1
