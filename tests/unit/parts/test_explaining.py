"""What `msgsvc explain` says of jobs, messages and mailings."""

from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.mailings import store
from msgsvc_core.telemetry.explanations import Explanation
from msgsvc_devkit.core import PROJECT, MemoryCore
from tests.unit.parts.rows import NOW_MS, a_mailing, insert_message


async def explained(core: MemoryCore, tx: Tx, some_id: str) -> Explanation | None:
    """What the first explainer that knows an id says of it."""
    for explainer in core.service.explainers():
        if some_id.startswith(f"{explainer.prefix}_"):
            found = await explainer.explain(tx, some_id)
            if found is not None:
                return found
    return None


async def explained_job(core: MemoryCore, tx: Tx, **columns: Any) -> Explanation:
    """The explanation of `job_1`, a job of the core that is due, while one process runs jobs."""
    row = {
        "job_id": "job_1",
        "name": "core.purge",
        "lane": "default",
        "state": "ready",
        "priority": 5,
        "run_at_ms": NOW_MS,
        "attempts": 0,
        "deliveries": 0,
        "project_id": PROJECT,
        "payload": "{}",
        "created_at_ms": NOW_MS,
    }
    await tx.insert("core_jobs", row | columns)
    runner = {"runner_id": "run_1", "name": "host:7", "leased_until_ms": NOW_MS + 60_000}
    await tx.insert("core_runners", runner)
    found = await explained(core, tx, "job_1")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("leased_until_ms", "reason"),
    [
        (NOW_MS + 1000, "the process host:7 is working on it"),
        (
            NOW_MS - 1000,
            (
                "the process host:7 stopped while it was working on it, and its lease ended at"
                " 2026-01-15 11:59:59 UTC; the next process that runs jobs takes it over"
            ),
        ),
    ],
)
async def test_a_running_job_names_its_process(
    core: MemoryCore, tx: Tx, leased_until_ms: int, reason: str
) -> None:
    lease = {"leased_by": "host:7", "leased_until_ms": leased_until_ms}
    found = await explained_job(core, tx, state="running", **lease)

    assert found.summary == f"Running: {reason}."


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, "it is due at 2026-01-15 12:01:00 UTC (in 1 min)"),
        (
            {"attempts": 2, "last_error": "OSError: away\nmore"},
            (
                "the next attempt is at 2026-01-15 12:01:00 UTC (in 1 min), after 2 attempts failed"
                " (OSError: away)"
            ),
        ),
        (
            {"refused_from_ms": NOW_MS - 1000},
            (
                "the next attempt is at 2026-01-15 12:01:00 UTC (in 1 min): the platform has asked to wait"
                " since 2026-01-15 11:59:59 UTC"
            ),
        ),
    ],
)
async def test_a_delayed_job_says_until_when_and_why(
    core: MemoryCore, tx: Tx, columns: dict[str, Any], reason: str
) -> None:
    found = await explained_job(core, tx, run_at_ms=NOW_MS + 60_000, **columns)

    assert found.summary == f"Waiting: {reason}."


async def test_a_job_has_its_facts_and_its_timeline(core: MemoryCore, tx: Tx) -> None:
    dead = {"state": "dead", "attempts": 3, "last_error": "OSError", "refused_from_ms": NOW_MS + 1}
    found = await explained_job(core, tx, **dead)

    assert found.summary.startswith("Dead: core.purge failed for good after 3 attempts (OSError)")
    assert (found.facts["lane"], found.facts["job_state"]) == ("default", "dead")
    assert [entry.text for entry in found.timeline] == [
        "enqueued",
        "the platform first asked to wait",
    ]


async def test_a_message_of_no_project_is_not_explained(core: MemoryCore, tx: Tx) -> None:
    await insert_message(tx, "msg_1", project_id="prj_gone")

    assert await explained(core, tx, "msg_1") is None


COUNTS = {"total": 1200, "sent": 1000, "failed": 10, "skipped": 5, "unknown": 2}
RESULT = "1,000 sent, 10 failed, 5 skipped"


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        (
            {"status": "scheduled", "send_at_ms": NOW_MS + 3_600_000},
            "Waiting: it starts at 2026-01-15 13:00:00 UTC (in 1 h).",
        ),
        (
            {"status": "scheduled"},
            "Waiting: it is due, and starts when a process that runs jobs takes it.",
        ),
        (
            {"status": "running", "per_minute": 600},
            "Running: 1,015 of 1,200 recipients have an outcome, at most 600 a minute.",
        ),
        (
            {"status": "running", "expanded_to": "sub_1"},
            "Running: 1,015 of 1,200 recipients have an outcome; its recipients are being listed.",
        ),
        (
            {"status": "paused"},
            "Paused: it was paused by a request; 1,015 of 1,200 recipients have an outcome.",
        ),
        (
            {"status": "paused", "error": "the project is disabled"},
            "Paused: the project is disabled; 1,015 of 1,200 recipients have an outcome.",
        ),
        (
            {"status": "completed", "finished_at_ms": NOW_MS},
            f"Completed at 2026-01-15 12:00:00 UTC: {RESULT}.",
        ),
        (
            {"status": "cancelled", "finished_at_ms": NOW_MS},
            f"Cancelled at 2026-01-15 12:00:00 UTC: {RESULT}.",
        ),
    ],
)
async def test_each_state_of_a_mailing_has_its_sentence(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], summary: str
) -> None:
    await store.insert(tx, a_mailing(**{**COUNTS, **fields}))
    found = await explained(core, tx, "job_1")

    assert found is not None
    assert found.summary == summary
    assert found.timeline[0].text == "accepted"


async def test_a_job_that_is_no_mailing_is_left_to_others(core: MemoryCore, tx: Tx) -> None:
    found = await explained_job(core, tx)

    assert found.summary.startswith("Waiting: it is next in its lane")
    assert await explained(core, tx, "job_2") is None
