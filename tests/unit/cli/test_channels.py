"""`msgsvc channels`, and what `msgsvc doctor` says of projects' own."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.channels import Unreadable, UnreadableReason
from msgsvc_core.channels.project_channels.models import CreateChannelBody
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.reception.models import InterruptionReason
from msgsvc_core.cli.configuration import opened
from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service


@pytest.fixture
def own_channel(run: Any, config: Path) -> str:
    """The id of a sandbox bot that a project brought."""
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["sandbox"]')
    config.write_text(text, encoding="utf-8")
    project = json.loads(run("project", "create", "Shop", "--json").stdout)

    async def add() -> str:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        try:
            async with service.db.transaction() as tx:
                body = CreateChannelBody(name="own_bot", plugin="sandbox")
                made = await service.get(ProjectChannels).create(tx, project["project_id"], body)
        finally:
            await service.channels.close()
            await service.db.disconnect()
        return made.channel_id

    return asyncio.run(add())


def forget_key(config: Path) -> None:
    """Another secret key takes the place of the one that the settings are encrypted with."""
    text = config.read_text("utf-8").replace(
        "kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU", "b" * 5 + "Qx7" * 10
    )
    config.write_text(text, encoding="utf-8")


def test_own_channels_are_listed(run: Any, own_channel: str) -> None:
    shown = run("channels", "list").stdout
    [plain] = json.loads(run("channels", "list", "--json").stdout)["data"]

    assert own_channel in shown
    assert "working" in shown
    assert (plain["channel_id"], plain["name"], plain["plugin"]) == (
        own_channel,
        "own_bot",
        "sandbox",
    )


def test_what_a_channel_could_not_read_is_listed_and_written_as_it_arrived(
    run: Any, config: Path, own_channel: str
) -> None:
    empty = run("channels", "shelf", own_channel)

    async def receive() -> None:
        async with opened(config) as service:
            await service.inbound.receive(
                own_channel,
                Unreadable.of(b"\xffHello", UnreadableReason.MALFORMED, "it is not JSON"),
            )

    asyncio.run(receive())
    [item] = json.loads(run("channels", "shelf", own_channel, "--json").stdout)["data"]
    shown = run("channels", "shelf", own_channel).stdout
    raw = run("channels", "shelf", own_channel, "--raw", item["item_id"])
    missing = run("channels", "shelf", "other", "--raw", item["item_id"])

    assert "nothing is on the shelf" in empty.stdout
    assert item["item_id"] in shown
    assert "it is not JSON" in shown
    assert raw.stdout_bytes == b"\xffHello"
    assert missing.exit_code == 1


def test_a_deployment_without_any_says_so(run: Any, config: Path) -> None:
    assert "there are none" in run("channels", "list").stdout


def test_a_channel_is_checked_on_demand(run: Any, own_channel: str) -> None:
    well = run("channels", "check", own_channel)
    missing = run("channels", "check", "chn_0123456789012345678901")

    assert (well.exit_code, missing.exit_code) == (0, 1)
    assert "Own Bot" in well.stdout


@pytest.fixture
def deaf_channel(run: Any, config: Path) -> str:
    """The id of a Telegram bot that a project brought, whose updates another program takes."""
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["telegram"]')
    config.write_text(text, encoding="utf-8")
    project = json.loads(run("project", "create", "Shop", "--json").stdout)

    async def add() -> str:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        try:
            async with service.db.transaction() as tx:
                token = "1:" + "a" * 35
                body = CreateChannelBody(
                    name="own_bot", plugin="telegram", settings={"token": token}
                )
                made = await service.get(ProjectChannels).create(tx, project["project_id"], body)
            channel = service.channels[made.channel_id]
            async with service.db.transaction() as tx:
                await service.get(ReceptionHealth).interrupt(
                    tx, channel, InterruptionReason.POLLING_FAILED, "Conflict: another", 0
                )
        finally:
            await service.channels.close()
            await service.db.disconnect()
        return made.channel_id

    return asyncio.run(add())


def test_a_bot_that_receives_nothing_is_listed_as_such(run: Any, deaf_channel: str) -> None:
    shown = run("channels", "list").stdout
    [plain] = json.loads(run("channels", "list", "--json").stdout)["data"]

    assert all(word in shown for word in ("working", "interrupted", "Conflict: another"))
    assert plain["reception"] == "interrupted"
    assert plain["interrupted_since"] == "1970-01-01T00:00:00.000Z"
    assert plain["interrupted_detail"] == "Conflict: another"


def test_the_doctor_looks_at_own_channels(run: Any, own_channel: str) -> None:
    result = run("doctor")

    assert result.exit_code == 0
    assert "own channels: 1 of projects work" in result.stdout


def test_settings_whose_key_is_lost_are_a_problem(run: Any, config: Path, own_channel: str) -> None:
    forget_key(config)
    result = run("doctor")

    assert result.exit_code == 1
    assert f"own channel {own_channel}" in result.stdout
    assert "put back the secret key" in result.stdout
    assert "broken" in run("channels", "list").stdout
