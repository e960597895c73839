"""`msgsvc explain`: the sentence, the facts and the timeline, for people and for scripts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service


@pytest.fixture
def job_id(config: Path) -> str:
    """A job that nothing runs."""

    async def enqueue() -> str:
        service = Service(load_settings(config, env={}))
        await service.open_database()
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(tx, NewJob("channel.check", {}))
            found = str(await tx.fetch_val("SELECT job_id FROM core_jobs"))
        await service.db.disconnect()
        return found

    return asyncio.run(enqueue())


WAITING = "Waiting: no process runs jobs; start `msgsvc serve` or `msgsvc worker`."


def test_the_sentence_comes_first_then_facts_and_timeline(run: Any, job_id: str) -> None:
    first, blank, *rest = run("explain", job_id).stdout.splitlines()

    assert (first, blank) == (WAITING, "")
    assert ["job_id", job_id] in [line.split() for line in rest]
    assert rest[-1].endswith(" UTC  enqueued")


def test_scripts_get_the_same_as_json(run: Any, job_id: str) -> None:
    found = json.loads(run("explain", job_id, "--json").stdout)

    assert found["summary"] == WAITING
    assert found["facts"]["job_state"] == "ready"
    assert [entry["text"] for entry in found["timeline"]] == ["enqueued"]
    assert found["timeline"][0]["at"].endswith("Z")


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("tkt_1", "'tkt_1' can't be explained; these ids can: msg_..., job_..."),
        ("msg_1", "there is no 'msg_1'; jobs that are done"),
    ],
)
def test_what_can_not_be_explained_is_refused(
    run: Any, config: Path, what: str, error: str
) -> None:
    result = run("explain", what)

    assert result.exit_code == 1
    assert error in result.stderr
