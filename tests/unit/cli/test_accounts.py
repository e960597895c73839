"""`msgsvc account`, and whose projects are."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from msgsvc_core.cli.configuration import opened

LINK = "http://127.0.0.1:8000/dashboard/link/"


def create(run: Any, email: str = "Ann@shop.example", *options: str, **more: Any) -> Any:
    return run("account", "create", email, "--name", "Ann Lee", *options, **more)


def listed(run: Any) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(run("account", "list", "--json").stdout)["data"]
    return data


def test_the_first_account_gets_a_link_and_a_project(run: Any, with_accounts: Any) -> None:
    assert "msgsvc account create" in run("account", "list").stdout
    made = create(run, "Ann@shop.example", "--operator")
    plain = json.loads(create(run, "bob@shop.example", "--json").stdout)
    project = json.loads(
        run("project", "create", "Shop", "--account", "ann@shop.example", "--json").stdout
    )
    given = run("project", "give", project["project_id"], "bob@shop.example")
    nobody = run("project", "give", project["project_id"], "eve@shop.example")

    assert f"within an hour: {LINK}" in made.stdout
    assert plain["link"].startswith(LINK)
    assert [(one["email"], one["is_operator"]) for one in listed(run)] == [
        ("bob@shop.example", False),
        ("ann@shop.example", True),
    ]
    assert given.stdout == f"{project['project_id']} belongs to bob@shop.example\n"
    assert nobody.exit_code == 1
    assert "eve@shop.example" in nobody.stderr


def test_a_password_is_read_and_a_bad_one_refused(run: Any, with_accounts: Any) -> None:
    good = create(run, "ann@shop.example", "--password-stdin", typed="a winter evening\n")
    bad = create(run, "bob@shop.example", "--password-stdin", typed="short\n")
    again = create(run)
    wrong = create(run, "no address")

    assert LINK not in good.stdout
    assert "winter" not in good.stdout + good.stderr
    assert (bad.exit_code, "at least 10 characters" in bad.stderr) == (1, True)
    assert (again.exit_code, "already" in again.stderr) == (1, True)
    assert (wrong.exit_code, "email address" in wrong.stderr) == (1, True)


def test_an_account_is_disabled_enabled_and_made_operator(run: Any, with_accounts: Any) -> None:
    create(run)
    told = [
        run("account", *asked).stdout
        for asked in (
            ("disable", "ann@shop.example"),
            ("operator", "ANN@shop.example"),
            ("link", "ann@shop.example", "--password", "--forget-codes"),
        )
    ]
    disabled = listed(run)[0]
    run("account", "enable", "ann@shop.example")
    run("account", "operator", "ann@shop.example", "--off")

    assert told[0] == "ann@shop.example is disabled\n"
    assert told[2].startswith(LINK)
    assert (disabled["status"], disabled["is_operator"]) == ("disabled", True)
    assert (listed(run)[0]["status"], listed(run)[0]["is_operator"]) == ("active", False)
    assert "never" in run("account", "list").stdout


def test_a_link_is_given_as_json_to_scripts(run: Any, with_accounts: Any) -> None:
    create(run)
    answer = run("account", "link", "ann@shop.example", "--json")

    assert json.loads(answer.stdout)["link"].startswith(LINK)


def test_a_project_belongs_to_the_only_account(run: Any, with_accounts: Path) -> None:
    run("account", "create", "ann@shop.example", "--name", "Ann", "--operator")
    owned = run("project", "create", "Shop").stdout
    free = run("project", "create", "Shop", "--no-account").stdout
    run("account", "create", "bob@shop.example", "--name", "Bob")
    undecided = run("project", "create", "Shop").stdout

    assert "which belongs to ann@shop.example" in owned
    assert re.search(r"give it to an account: msgsvc project give prj_\w+ EMAIL", free)
    assert "msgsvc project give" in undecided
    assert (
        run("project", "create", "Shop", "--no-account", "--account", "a@b.example").exit_code == 2
    )


def test_a_member_with_an_account_can_open_the_project(run: Any, with_accounts: Path) -> None:
    run("account", "create", "ann@shop.example", "--name", "Ann")
    run("account", "create", "bob@shop.example", "--name", "Bob")
    project = json.loads(run("project", "create", "Shop", "--json").stdout)["project_id"]
    ann = run("member", "add", project, "Ann@shop.example", "--name", "Ann", "--role", "owner")
    eve = run("member", "add", project, "eve@shop.example", "--name", "Eve", "--role", "owner")

    async def projects_of(email: str) -> list[tuple[str, str]]:
        async with opened(with_accounts) as service, service.db.read() as tx:
            account = await service.accounts.find_by_email(tx, email)
            found = await service.members.projects_of(tx, account.account_id)
            return [(each.project_id, each.role) for each in found]

    assert "as owner; the account ann@shop.example can open the project" in ann.stdout
    assert "no account has this email" in eve.stdout
    assert asyncio.run(projects_of("ann@shop.example")) == [(project, "owner")]
    assert asyncio.run(projects_of("bob@shop.example")) == []
