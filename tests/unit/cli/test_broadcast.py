"""`msgsvc broadcast`: list, watch and control."""

import asyncio
import json
from pathlib import Path
from typing import Any

from msgsvc_core.config.settings import load_settings
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service


async def _start(config: Path, *, cancelled: bool) -> str:
    service = Service(load_settings(config, env={}))
    await service.open_database()
    try:
        project = await service.projects.create("Shop")
        new = NewMailing("broadcasts", MailingMessage(text="Hi"), Audience(all=True))
        async with service.db.transaction() as tx:
            mailing = await service.mailings.start(tx, project.project_id, new)
            if cancelled:
                await service.mailings.cancel(tx, *mailing.key)
        return mailing.job_id
    finally:
        await service.db.disconnect()


def test_watching_ends_when_the_broadcast_has(config: Path, run: Any) -> None:
    job_id = asyncio.run(_start(config, cancelled=True))

    shown = run("broadcast", "watch", job_id).stdout

    assert shown == "cancelled: 0 sent, 0 failed, 0 skipped of 0\n"


def test_one_look_at_a_broadcast_that_waits(config: Path, run: Any) -> None:
    job_id = asyncio.run(_start(config, cancelled=False))

    shown = json.loads(run("broadcast", "watch", job_id, "--once", "--json").stdout)

    assert (shown["job_id"], shown["status"], shown["total"]) == (job_id, "scheduled", 0)


def test_unknown_broadcast_is_named(config: Path, run: Any) -> None:
    answer = run("broadcast", "watch", "job_nothing")

    assert answer.exit_code == 1
    assert "job_nothing" in answer.stderr


def test_list_shows_what_is_not_over_and_all_on_demand(config: Path, run: Any) -> None:
    before = run("broadcast", "list").stdout
    over = asyncio.run(_start(config, cancelled=True))
    waiting = asyncio.run(_start(config, cancelled=False))

    shown = run("broadcast", "list").stdout
    listed = json.loads(run("broadcast", "list", "--all", "--json").stdout)["data"]

    assert before == "no broadcast is pending or in progress\n"
    assert waiting in shown
    assert over not in shown
    assert [(each["job_id"], each["status"]) for each in listed] == [
        (waiting, "scheduled"),
        (over, "cancelled"),
    ]


def test_an_operator_pauses_resumes_and_cancels(config: Path, run: Any) -> None:
    job_id = asyncio.run(_start(config, cancelled=False))

    said = [run("broadcast", what, job_id).stdout for what in ("pause", "resume", "cancel")]
    again = run("broadcast", "cancel", job_id)

    statuses = [line.partition(":")[0] for line in said]
    assert statuses == ["paused", "scheduled", "cancelled"]
    assert again.exit_code == 1
    assert "it is cancelled" in again.stderr
