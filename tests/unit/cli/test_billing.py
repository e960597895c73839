"""`msgsvc billing`: a plugin's command."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli.configuration import opened
from msgsvc_dashboard.accounts import Accounts


@pytest.fixture
def billed(config: Path) -> Path:
    """A configuration that bills, and an account in its database."""
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["billing", "dashboard"]')
    config.write_text(text, encoding="utf-8")

    async def add() -> None:
        async with opened(config, may_create=True) as service, service.db.transaction() as tx:
            await service.get(Accounts).create(tx, email="ann@shop.example", name="Ann")

    asyncio.run(add())
    return config


def test_the_operator_grants_credits_and_changes_the_plan(run: Any, billed: Path) -> None:
    granted = run("billing", "grant", "Ann@shop.example", "500", "--note", "Invoice 7")
    changed = run("billing", "plan", "ann@shop.example", "basic", "--json")
    taken = run("billing", "grant", "ann@shop.example", "--json", "--", "-100")
    shown = run("billing", "show", "ann@shop.example")

    assert "600 credits, 500 of them of packs" in granted.output
    assert json.loads(changed.output)["balance"] == 1200
    assert json.loads(taken.output)["packs"] == 400
    assert "'basic'; 700 credits of this month" in shown.output


def test_what_there_is_not_is_refused_in_a_line(run: Any, billed: Path) -> None:
    nobody = run("billing", "show", "bob@shop.example")
    plan = run("billing", "plan", "ann@shop.example", "gold")
    too_much = run("billing", "grant", "ann@shop.example", "--", "-1")

    assert [nobody.exit_code, plan.exit_code, too_much.exit_code] == [1, 1, 1]
    assert "there is no account 'bob@shop.example'" in nobody.stderr
    assert "must be one of basic, free, pro" in plan.stderr


def test_without_the_plugin_its_command_says_how_to_have_it(run: Any, config: Path) -> None:
    refused = run("billing", "show", "ann@shop.example")

    assert refused.exit_code == 2
    assert "plugins" in refused.stderr


def test_commands_of_plugins_stand_in_the_help(run: Any) -> None:
    assert re.search(r"billing\s+Plans and credits of accounts\.", run("--help").output)
    assert run("no-such-command").exit_code == 2
