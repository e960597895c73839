"""What becomes of records whose time has come, built from fakes."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from msgsvc_core.db import DatabaseUnavailable, LockTimeout, WriteBatch
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext
from msgsvc_scheduling import plugin
from msgsvc_scheduling.jobs import ScheduleJobs
from msgsvc_scheduling.models import Due, Outcome, Record
from msgsvc_scheduling.recurrence import Rule
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.settings import SchedulingSettings

from .records import TO_ALL, TO_ANNA


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin)


def sending(core: FakeContext) -> Sending:
    return Sending(billing=core.billing, messages=core.messages, mailings=core.mailings)


def running(
    core: FakeContext, *, by: Sending | None = None, settings: SchedulingSettings | None = None
) -> Running:
    return Running(
        clock=core.clock,
        db=core.db,
        events=core.events,
        projects=core.projects,
        subscribers=core.subscribers,
        sending=by or sending(core),
        settings=settings or SchedulingSettings(),
    )


def due_now(core: FakeContext, record: Record, **fields: Any) -> Record:
    """A record whose time is now, and who it is for."""
    if record.subscriber_id is not None:
        core.subscribers.person(record.subscriber_id)
    return replace(record, **{"due_at_ms": core.clock.now_ms(), **fields})


def hold(core: FakeContext, *records: Record) -> list[Due]:
    """Has the database hold records; what names them."""

    def find(params: Any) -> list[dict[str, Any]]:
        names = {record_id for _, record_id, _ in from_json(params["keys"])}
        return [_row(one) for one in records if one.record_id in names]

    core.db.replies |= {"CROSS JOIN scheduling_records": find, "UPDATE scheduling_records": 1}
    return [
        Due(one.project_id, one.record_id, one.subscriber_id, one.due_at_ms or 0) for one in records
    ]


def _row(record: Record) -> dict[str, Any]:
    row = asdict(record)
    kept = {name: row[name] and to_json(row[name]) for name in ("message", "audience", "rule")}
    return {**row, **kept}


def written(core: FakeContext) -> list[dict[str, Any]]:
    """What records are after their time: status, reason, and when they are due again."""
    return [
        {"status": row[2], "reason": row[6], "due_at_ms": row[8]}
        for params in core.db.params_of("UPDATE scheduling_records")
        for row in from_json(params["keys"])
    ]


async def test_a_message_is_sent_with_its_event_in_one_transaction(core: FakeContext) -> None:
    await running(core).run(*hold(core, due_now(core, TO_ANNA)))

    [event] = core.events.emitted
    assert (event.name, event.data["scheduled_id"]) == ("scheduled.sent", "sch_1")
    assert [event.data["message_id"]] == list(core.messages.by_id)
    assert written(core) == [{"status": "sent", "reason": None, "due_at_ms": None}]
    assert core.db.commits == 1


async def test_what_was_changed_meanwhile_is_left_for_the_next_look(core: FakeContext) -> None:
    record = due_now(core, TO_ANNA)
    due = hold(core, record)
    found = [[_row(record)], [_row(replace(record, message={"text": "Other"}))]]
    core.db.replies["CROSS JOIN scheduling_records"] = lambda _: found.pop(0)
    await running(core).run(*due)

    assert core.events.emitted == []
    assert core.db.params_of("UPDATE scheduling_records") == []


@pytest.mark.parametrize("record", [TO_ANNA, TO_ALL])
async def test_nothing_is_sent_for_a_project_that_was_switched_off(
    core: FakeContext, record: Record
) -> None:
    due = hold(core, due_now(core, record))
    await core.projects.set_active(PROJECT, False)
    await running(core).run(*due)

    assert (core.messages.by_id, core.mailings.by_id) == ({}, {})
    assert [event.data["reason"] for event in core.events.emitted] == ["project_inactive"]


@pytest.mark.parametrize("record", [TO_ANNA, TO_ALL])
@pytest.mark.parametrize(
    ("missed", "told"), [("skip", "scheduled.skipped"), ("run_once", "scheduled.sent")]
)
async def test_what_was_missed_is_sent_late_or_left_out_as_the_settings_say(
    core: FakeContext, record: Record, missed: str, told: str
) -> None:
    settings = SchedulingSettings.model_validate({"missed": missed, "grace_minutes": 10})
    due = hold(core, due_now(core, record))
    core.clock.advance(11 * 60)
    core.subscribers.person()
    await running(core, settings=settings).run(*due)

    assert core.events.names[-1] == told


async def test_a_recurring_one_has_its_next_time_whatever_was_missed(core: FakeContext) -> None:
    began_ms = core.clock.now_ms()
    hourly = Rule("UTC", anchor_ms=began_ms, hours=1)
    due = hold(core, due_now(core, TO_ANNA, kind="recurring", status="active", rule=hourly))
    core.clock.advance(5 * 3600 + 60)
    await running(core).run(*due)

    assert core.events.names[-1] == "recurring.sent"
    assert written(core)[0]["due_at_ms"] == str(began_ms + 6 * HOUR_MS)


async def test_a_late_one_that_comes_again_waits_for_the_end_of_quiet_hours(
    core: FakeContext,
) -> None:
    began_ms = core.clock.now_ms()  # at noon
    rule = Rule("UTC", anchor_ms=began_ms, hours=1, quiet_from="12:30", quiet_to="15:00")
    due = hold(core, due_now(core, TO_ANNA, kind="recurring", status="active", rule=rule))
    core.clock.advance(3600)
    await running(core).run(*due)

    assert core.events.emitted == []
    assert written(core)[0]["due_at_ms"] == str(began_ms + 3 * HOUR_MS)


class BrokenSending(Sending):
    """Fails on the record `sch_bad`, by a mistake of ours or as the database does."""

    error: Exception = RuntimeError("a mistake of ours")

    async def send_to_one(self, unit: WriteBatch, record: Record) -> Outcome:
        if record.record_id == "sch_bad":
            raise self.error
        return await super().send_to_one(unit, record)


async def test_a_mistake_of_ours_fails_one_and_holds_up_no_other(core: FakeContext) -> None:
    records = [due_now(core, TO_ANNA, record_id=each) for each in ("sch_1", "sch_bad", "sch_2")]
    by = BrokenSending(billing=core.billing, messages=core.messages, mailings=core.mailings)
    await running(core, by=by).run(*hold(core, *records))

    told = {event.data["scheduled_id"]: event.data.get("reason") for event in core.events.emitted}
    assert told == {"sch_1": None, "sch_bad": "internal_error", "sch_2": None}


async def test_a_database_that_is_away_fails_nothing(core: FakeContext) -> None:
    by = BrokenSending(billing=core.billing, messages=core.messages, mailings=core.mailings)
    by.error = DatabaseUnavailable("away")
    due = hold(core, due_now(core, TO_ANNA, record_id="sch_bad"))

    with pytest.raises(DatabaseUnavailable):
        await running(core, by=by).run(*due)
    assert core.events.emitted == []


class NotedRuns(Running):
    """Notes what it was given; what `fails` names raises."""

    def __init__(self, fails: Callable[[Due], Exception | None] = lambda _: None) -> None:
        self.ran: list[str] = []
        self._fails = fails

    async def run(self, *due: Due) -> None:
        for one in due:
            if (error := self._fails(one)) is not None:
                raise error
        self.ran += [one.record_id for one in due]


def jobs(core: FakeContext, running: Running, **settings: Any) -> ScheduleJobs:
    return ScheduleJobs(clock=core.clock, running=running, settings=SchedulingSettings(**settings))


def looks(core: FakeContext, *found: Sequence[Due]) -> FakeJobContext:
    """A context whose looks find these, one after another, and then nothing."""
    left = [[asdict(one) for one in each] for each in found]
    core.db.replies["SELECT project_id, record_id, subscriber_id, due_at_ms"] = lambda _: (
        left.pop(0) if left else []
    )
    return FakeJobContext(core.db)


A, B, C = (Due(PROJECT, f"sch_{each}", None, 0) for each in "abc")
TO_ONE = Due(PROJECT, "sch_one", "sub_1", 0)


async def test_all_that_is_due_is_run_in_as_many_looks_as_it_takes(core: FakeContext) -> None:
    runs = NotedRuns()
    await jobs(core, runs, batch=2).run_due(looks(core, [A, B], [C]), [])

    assert runs.ran == ["sch_a", "sch_b", "sch_c"]


async def test_what_the_database_takes_too_long_for_waits_and_holds_up_no_other(
    core: FakeContext,
) -> None:
    runs = NotedRuns(lambda one: LockTimeout() if one == A else None)
    other = Due("prj_2", "sch_other", None, 0)
    with pytest.raises(LockTimeout):
        await jobs(core, runs).run_due(looks(core, [A, other, TO_ONE], [A]), [])

    assert sorted(runs.ran) == ["sch_one", "sch_other"]


class Mistake(Exception):
    """What no part of the service raises."""


async def test_a_mistake_of_ours_is_no_reason_to_look_again(core: FakeContext) -> None:
    runs = NotedRuns(lambda _: Mistake())

    with pytest.raises(Mistake):
        await jobs(core, runs).run_due(looks(core, [A]), [])


async def test_a_runner_that_stops_begins_nothing(core: FakeContext) -> None:
    runs, ctx = NotedRuns(), looks(core, [A])
    ctx.is_stopping = True
    await jobs(core, runs).run_due(ctx, [])

    assert runs.ran == []


async def test_what_is_over_is_kept_as_long_as_the_settings_say(core: FakeContext) -> None:
    core.db.replies["DELETE FROM scheduling_records"] = 0
    await jobs(core, NotedRuns(), kept_days=7).purge(FakeJobContext(core.db), [])

    [params] = core.db.params_of("DELETE FROM scheduling_records")
    assert params["finished_before_ms"] == core.clock.now_ms() - 7 * DAY_MS
