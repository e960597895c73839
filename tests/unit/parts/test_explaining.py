"""What `msgsvc explain` says of jobs, messages and mailings: its parts, built from fakes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels.explaining import JobExplainer, WaitingJobs
from msgsvc_core.db import Tx
from msgsvc_core.jobs.inspection import JobView
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings.explaining import MailingExplainer
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.messages.explaining import MessageExplainer
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from tests.unit.parts.outbound import states_of
from tests.unit.parts.rows import NOW_MS, a_mailing, row_of

JOB = JobView(
    job_id="job_1",
    name="sweep",
    lane="default",
    state="ready",
    priority=5,
    run_at_ms=NOW_MS,
    attempts=0,
    deliveries=0,
    project_id=PROJECT,
    key=None,
    payload={},
    leased_by=None,
    leased_until_ms=None,
    last_error=None,
    created_at_ms=NOW_MS,
)


def waiting_of(core: FakeContext) -> WaitingJobs:
    return WaitingJobs(
        clock=core.clock, channels=core.channels, states=states_of(core), known=lambda: {"sweep"}
    )


def job_row(**fields: Any) -> dict[str, Any]:
    return {**row_of(replace(JOB, **fields)), "payload": json.dumps(JOB.payload)}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"leased_until_ms": NOW_MS + 1000}, "the process host:7 is working on it"),
        (
            {"leased_until_ms": NOW_MS - 1000},
            (
                "the process host:7 stopped while it was working on it, and its lease ended at"
                " 2026-01-15 11:59:59 UTC; the next process that runs jobs takes it over"
            ),
        ),
    ],
)
async def test_a_running_job_names_its_process(fields: dict[str, Any], reason: str) -> None:
    job = replace(JOB, state="running", leased_by="host:7", **fields)

    assert await waiting_of(plugin_context()).reason(FakeTx(), job) == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
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
async def test_a_delayed_job_says_until_when_and_why(fields: dict[str, Any], reason: str) -> None:
    job = replace(JOB, run_at_ms=NOW_MS + 60_000, **fields)
    one_runner = FakeTx(answers=[[{"count": 1}]])

    assert await waiting_of(plugin_context()).reason(one_runner, job) == reason


async def test_a_job_has_its_facts_and_its_timeline() -> None:
    core = plugin_context()
    explainer = JobExplainer(clock=core.clock, waiting=waiting_of(core))
    row = job_row(state="dead", attempts=3, last_error="OSError", refused_from_ms=NOW_MS + 1)
    found = await explainer.explain(FakeTx(answers=[[row]]), "job_1")

    assert found is not None
    assert found.summary.startswith("Dead: sweep failed for good after 3 attempts (OSError)")
    assert (found.facts["lane"], found.facts["job_state"]) == ("default", "dead")
    assert [entry.text for entry in found.timeline] == [
        "enqueued",
        "the platform first asked to wait",
    ]


async def test_a_message_of_no_project_is_not_explained() -> None:
    core = plugin_context()
    messages = MessageExplainer(
        clock=core.clock,
        projects=core.projects,
        subscribers=core.subscribers,
        channels=core.channels,
        events=core.events,
        waiting=waiting_of(core),
        max_attempts=8,
    )
    assert await messages.explain(FakeTx(answers=[[]]), "msg_1") is None


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
    fields: dict[str, Any], summary: str
) -> None:
    async def find(_tx: Tx, job_id: str) -> Mailing:
        return a_mailing(job_id, **{**COUNTS, **fields})

    found = await MailingExplainer(clock=plugin_context().clock, find=find).explain(
        FakeTx(), "job_1"
    )

    assert found is not None
    assert found.summary == summary
    assert found.timeline[0].text == "accepted"


async def test_a_job_that_is_no_mailing_is_left_to_others() -> None:
    async def find(_tx: Tx, job_id: str) -> Mailing:
        raise NotFound("there is no {job_id!r}", job_id=job_id)

    mailings = MailingExplainer(clock=plugin_context().clock, find=find)

    assert await mailings.explain(FakeTx(), "job_1") is None
