"""`msgsvc outbox`: what waits to be sent, and what a restored copy must not send again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.service import Service

EARLY, LATE = "2026-11-26T03:00:00.000Z", "2026-11-26T10:00:00.000Z"
STOPPED = "2026-11-26T09:00:00Z"


async def _fill(config: Path) -> None:
    """Two messages that were due, one that is not yet, a reply of a bot, and a job that sends nothing."""
    service = Service(load_settings(config, env={}))
    await service.open_database()
    async with service.db.transaction() as tx:
        for name, due in (
            ("message.deliver", EARLY),
            ("message.deliver", EARLY),
            ("message.deliver", LATE),
            ("channel.call", EARLY),
            ("batch.complete", EARLY),
        ):
            run_at_ms = from_rfc3339(due)
            await service.jobs.enqueue(
                tx,
                NewJob(
                    name,
                    {"message_id": "msg_1"},
                    lane="channel:a",
                    project_id="prj_1",
                    run_at_ms=run_at_ms,
                ),
            )
    await service.db.disconnect()


@pytest.fixture
def filled(config: Path) -> Path:
    asyncio.run(_fill(config))
    return config


def counted(run: Any, *options: str) -> dict[str, int]:
    data = json.loads(run("outbox", "list", "--json", *options).stdout)["data"]
    return {each["kind"]: each["waiting"] for each in data}


def test_what_waits_to_be_sent_is_counted_by_kind_and_time(run: Any, filled: Path) -> None:
    [calls, messages] = json.loads(run("outbox", "list", "--json").stdout)["data"]
    table = run("outbox", "list").stdout

    assert (messages["kind"], messages["waiting"]) == ("message.deliver", 3)
    assert (messages["first_due_at"], messages["last_due_at"]) == (EARLY, LATE)
    assert (messages["what"], messages["can_cancel"]) == ("messages", True)
    assert (calls["kind"], calls["waiting"], calls["can_cancel"]) == ("channel.call", 1, False)
    assert "replies of bots" in table
    assert "batch.complete" not in table
    assert counted(run, "--due-before", STOPPED) == {"channel.call": 1, "message.deliver": 2}


def test_what_was_due_before_the_original_stopped_is_withdrawn(run: Any, filled: Path) -> None:
    asked = run("outbox", "cancel", "--due-before", STOPPED, typed="n\n")
    kept = counted(run)
    done = run("outbox", "cancel", "--due-before", STOPPED, "--yes")

    assert "withdraw 2 that were due before 2026-11-26T09:00:00.000Z?" in asked.stdout
    assert asked.exit_code == 1
    assert kept["message.deliver"] == 3
    assert done.exit_code == 0
    assert "message.deliver: 2 withdrawn" in done.stdout
    assert counted(run) == {"channel.call": 1, "message.deliver": 1}


def test_an_empty_outbox_and_a_time_that_is_none(run: Any, migrated: Path) -> None:
    assert "nothing waits to be sent" in run("outbox", "list").stdout
    wrong = run("outbox", "cancel", "--due-before", "last night", "--yes")
    assert wrong.exit_code == 2
    assert "is a time such as" in wrong.stderr


async def _claim(config: Path, *, leased_until_ms: int) -> None:
    """A process was sending the messages that were due."""
    service = Service(load_settings(config, env={}))
    await service.open_database()
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_1', leased_until_ms = :until_ms"
            " WHERE name = 'message.deliver' AND run_at_ms < :before_ms",
            {"until_ms": leased_until_ms, "before_ms": from_rfc3339(STOPPED)},
        )
    await service.db.disconnect()


def test_what_was_being_sent_is_listed_and_withdrawn_too(run: Any, filled: Path) -> None:
    asyncio.run(_claim(filled, leased_until_ms=from_rfc3339(EARLY)))
    found = json.loads(run("outbox", "list", "--json").stdout)["data"]
    table = run("outbox", "list").stdout
    asked = run("outbox", "cancel", "--due-before", STOPPED, typed="n\n")
    done = run("outbox", "cancel", "--due-before", STOPPED, "--yes")

    messages = next(each for each in found if each["kind"] == "message.deliver")
    assert (messages["waiting"], messages["claimed"]) == (1, 2)
    assert "2 claimed: a process is sending them, or was when the backup was made" in table
    assert "withdraw 2 that were due before" in asked.stdout
    assert "message.deliver: 2 withdrawn" in done.stdout
    assert counted(run) == {"channel.call": 1, "message.deliver": 1}


def test_what_a_process_is_sending_now_is_not_withdrawn(run: Any, filled: Path) -> None:
    asyncio.run(_claim(filled, leased_until_ms=2**52))
    done = run("outbox", "cancel", "--due-before", STOPPED, "--yes")

    assert done.exit_code == 1
    assert "2 refused: a process is working on it" in done.stderr
