"""What becomes of records whose time has come."""

from typing import Any

import pytest

from msgsvc_core.db import DatabaseUnavailable, LockTimeout
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, to_rfc3339
from msgsvc_core.kernel.errors import BillingBlocked, NotFound
from msgsvc_core.mailings import Mailing, NewMailing
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import PreparedMessage
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT
from msgsvc_scheduling.jobs import ScheduleJobs
from msgsvc_scheduling.models import Due, Record, ScheduleMessageBody, UpdateScheduledBody
from msgsvc_scheduling.recurring import CreateRecurringBody
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.sending import SOURCE
from msgsvc_scheduling.service import Scheduling
from msgsvc_scheduling.settings import SchedulingSettings

from .conftest import Meanwhile

#: Whom a message is for: Anna, or everybody, by a mailing.
TO_ONE: dict[str, Any] = {"subscriber_id": "sub_1"}
TO_ALL: dict[str, Any] = {"audience": {"all": True}}


async def schedule(
    core: MemoryCore, to: dict[str, Any] = TO_ONE, project_id: str = PROJECT, **fields: Any
) -> Record:
    """A message whose time is now; to one person, who is added if there is no such person."""
    if "template" not in fields:
        fields = {"text": "Hello", **fields}
    body = ScheduleMessageBody.model_validate(
        {"send_at": to_rfc3339(core.clock.now_ms()), **to, **fields}
    )
    await with_people(core, to, project_id)
    async with core.db.transaction() as tx:
        return await core.get(Scheduling).create(tx, project_id, body)


async def recur(core: MemoryCore, **fields: Any) -> Record:
    """An hourly message to Anna, whose first time is now."""
    await with_people(core, TO_ONE, PROJECT)
    starts_at = to_rfc3339(core.clock.now_ms() + 1000)
    body = CreateRecurringBody.model_validate(
        {"text": "Hello", "every": {"hours": 1}, "starts_at": starts_at, **TO_ONE, **fields}
    )
    async with core.db.transaction() as tx:
        record = await core.get(Scheduling).create_recurring(tx, PROJECT, body)
    core.clock.advance(1)
    assert record.due_at_ms == core.clock.now_ms()
    return record


async def with_people(core: MemoryCore, to: dict[str, Any], project_id: str) -> None:
    """Adds whom a message is for, unless they are there."""
    wanted = to.get("subscriber_id", f"sub_of_{project_id}")
    async with core.db.transaction() as tx:
        if not await core.subscribers.get_many(tx, [(project_id, wanted)]):
            await core.person(tx, wanted, project_id=project_id)


async def run(core: MemoryCore, context: JobInTest | None = None) -> None:
    """Does what is due."""
    await core.get(ScheduleJobs).run_due(context or JobInTest(core.db), [])


async def now(core: MemoryCore, record: Record) -> Record:
    """What has become of a record."""
    async with core.db.read() as tx:
        return await core.get(Scheduling).get(tx, record.project_id, record.record_id, record.kind)


async def texts(core: MemoryCore) -> list[str]:
    """Of the messages to one person."""
    async with core.db.read() as tx:
        return [message.content.text for message in await core.messages_queued(tx)]


async def mailings(core: MemoryCore, project_id: str = PROJECT) -> list[Mailing]:
    async with core.db.read() as tx:
        return await core.mailings.page(tx, project_id, SOURCE, None, None, 100)


async def test_a_message_is_sent_with_its_event(core: MemoryCore) -> None:
    record = await schedule(core)
    await run(core)

    [event] = core.emitted
    sent = await now(core, record)
    async with core.db.read() as tx:
        [message] = await core.messages_queued(tx)
    assert (sent.status, sent.reason, sent.due_at_ms) == ("sent", None, None)
    assert (event.name, event.data["scheduled_id"]) == ("scheduled.sent", record.record_id)
    assert event.data["message_id"] == sent.message_id == message.message_id
    assert message.subscriber_id == "sub_1"


async def test_an_audience_gets_a_mailing(core: MemoryCore) -> None:
    record = await schedule(core, TO_ALL)
    async with core.db.transaction() as tx:
        await core.person(tx, "sub_2", status="blocked")
    await run(core)

    [mailing] = await mailings(core)
    [event] = core.emitted
    assert (event.name, event.data["job_id"]) == ("scheduled.sent", mailing.job_id)
    assert (await now(core, record)).job_id == mailing.job_id
    assert mailing.total == 1


async def test_who_has_left_is_skipped_and_sent_nothing(core: MemoryCore) -> None:
    record = await schedule(core)
    async with core.db.transaction() as tx:
        await core.subscribers.unsubscribe(tx, PROJECT, "sub_1", reason="api")
    await run(core)

    skipped = await now(core, record)
    assert (skipped.status, skipped.reason) == ("skipped", "unsubscribed")
    assert core.event_names[-1] == "scheduled.skipped"
    assert await texts(core) == []


class NoCredits:
    """A billing plugin that refuses everything."""

    @hookimpl
    async def check_operation(self) -> None:
        raise BillingBlocked("there are no credits left")

    @hookimpl
    async def charge(self) -> None:
        raise BillingBlocked("there are no credits left")


@pytest.mark.parametrize("to", [TO_ONE, TO_ALL], ids=["one", "all"])
async def test_what_is_not_paid_for_is_skipped_and_may_come_again(to: dict[str, Any]) -> None:
    plugins = [("billing", NoCredits())]
    async with memory_core(plugins=["scheduling"], extra_plugins=plugins) as core:
        record = await schedule(core, to)
        await run(core)

        skipped = await now(core, record)
        assert (skipped.status, skipped.reason) == ("skipped", "billing_blocked")
        assert (await texts(core), await mailings(core)) == ([], [])


@pytest.mark.parametrize("to", [TO_ONE, TO_ALL], ids=["one", "all"])
async def test_what_can_not_be_sent_any_more_fails_with_its_reason(
    core: MemoryCore, to: dict[str, Any]
) -> None:
    async with core.db.transaction() as tx:
        await core.templates.create(tx, PROJECT, CreateTemplateBody(key="gone", text="Hi"))
    record = await schedule(core, to, template="gone")
    async with core.db.transaction() as tx:
        await core.templates.delete(tx, PROJECT, "gone")
    await run(core)

    failed = await now(core, record)
    assert (failed.status, failed.reason) == ("failed", "not_found")
    assert core.event_names == ["scheduled.failed"]


async def test_what_was_changed_meanwhile_is_left_for_the_next_look(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    record = await schedule(core)

    async def change() -> None:
        async with core.db.transaction() as tx:
            body = UpdateScheduledBody(text="Other")
            await core.get(Scheduling).update(tx, PROJECT, record.record_id, body)

    meanwhile.happens = change
    due = Due(PROJECT, record.record_id, record.subscriber_id, record.due_at_ms or 0)
    await core.get(Running).run(due)
    assert (core.emitted, await texts(core)) == ([], [])
    assert (await now(core, record)).status == "scheduled"

    await core.get(Running).run(due)
    assert await texts(core) == ["Other"]


@pytest.mark.parametrize("to", [TO_ONE, TO_ALL], ids=["one", "all"])
async def test_nothing_is_sent_for_a_project_that_was_switched_off(
    core: MemoryCore, to: dict[str, Any]
) -> None:
    await schedule(core, to)
    await core.projects.set_active(PROJECT, False)
    await run(core)

    assert (await texts(core), await mailings(core)) == ([], [])
    assert [event.data["reason"] for event in core.emitted] == ["project_inactive"]


@pytest.mark.parametrize("to", [TO_ONE, TO_ALL], ids=["one", "all"])
@pytest.mark.parametrize(
    ("missed", "late_minutes", "told"),
    [
        ("skip", 11, "scheduled.skipped"),
        ("skip", 10, "scheduled.sent"),
        ("run_once", 11, "scheduled.sent"),
    ],
)
async def test_what_was_missed_is_sent_late_or_left_out_as_the_settings_say(
    to: dict[str, Any], missed: str, late_minutes: int, told: str
) -> None:
    settings = {"missed": missed, "grace_minutes": 10}
    async with memory_core(plugins=["scheduling"], scheduling=settings) as core:
        await schedule(core, to)
        core.clock.advance(late_minutes * 60)
        await run(core)

        assert core.event_names == [told]


async def test_a_recurring_one_has_its_next_time_whatever_was_missed(core: MemoryCore) -> None:
    record = await recur(core)
    began_ms = core.clock.now_ms()
    core.clock.advance(5 * 3600 + 60)
    await run(core)

    assert core.event_names == ["recurring.sent"]
    assert (await now(core, record)).due_at_ms == began_ms + 6 * HOUR_MS


async def test_a_late_one_that_comes_again_waits_for_the_end_of_quiet_hours(
    core: MemoryCore,
) -> None:
    noon_ms = core.clock.now_ms()
    record = await recur(core, quiet_hours={"from": "12:30", "to": "15:00"})
    core.clock.advance(3600)
    await run(core)

    assert core.emitted == []
    assert (await now(core, record)).due_at_ms == noon_ms + 3 * HOUR_MS


class BrokenFor:
    """Has messages to `sub_bad` fail, by a mistake of ours or as the database does."""

    def __init__(self, core: MemoryCore, patch: pytest.MonkeyPatch, error: Exception) -> None:
        self._prepare, self._error = core.messages.prepare, error
        patch.setattr(core.messages, "prepare", self.prepare)

    async def prepare(self, project_id: str, body: SendBody, **given: Any) -> PreparedMessage:
        if body.subscriber_id == "sub_bad":
            raise self._error
        return await self._prepare(project_id, body, **given)


async def test_a_mistake_of_ours_fails_one_and_holds_up_no_other(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = ("sub_1", "sub_bad", "sub_2")
    records = [await schedule(core, {"subscriber_id": each}) for each in people]
    BrokenFor(core, monkeypatch, RuntimeError("a mistake of ours"))
    await run(core)

    reasons = [(await now(core, record)).reason for record in records]
    told = {event.data["subscriber_id"]: event.data.get("reason") for event in core.emitted}
    assert reasons == [None, "internal_error", None]
    assert told == dict(zip(people, reasons, strict=True))


async def test_a_database_that_is_away_fails_nothing(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await schedule(core, {"subscriber_id": "sub_bad"})
    BrokenFor(core, monkeypatch, DatabaseUnavailable("away"))

    with pytest.raises(DatabaseUnavailable):
        await run(core)
    assert core.emitted == []
    assert await now(core, record) == record


async def test_all_that_is_due_is_run_in_as_many_looks_as_it_takes(core: MemoryCore) -> None:
    for number in range(3):
        await schedule(core, text=f"To one {number}")
        await schedule(core, TO_ALL)
    await run(core)

    assert await texts(core) == ["To one 0", "To one 1", "To one 2"]
    assert len(await mailings(core)) == 3


async def test_what_the_database_takes_too_long_for_waits_and_holds_up_no_other(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = core.mailings.start

    async def slow(tx: Any, project_id: str, new: NewMailing) -> Mailing:
        if new.message.text == "Slow":
            raise LockTimeout
        return await start(tx, project_id, new)

    monkeypatch.setattr(core.mailings, "start", slow)
    async with core.db.transaction() as tx:
        await core.project(tx, "prj_2")
    waiting = await schedule(core, TO_ALL, text="Slow")
    await schedule(core, TO_ALL, "prj_2")
    await schedule(core)

    with pytest.raises(LockTimeout):
        await run(core)
    assert await now(core, waiting) == waiting
    assert (await mailings(core), len(await mailings(core, "prj_2"))) == ([], 1)
    assert await texts(core) == ["Hello"]


class Broken(Running):
    """Fails in a way that it never should."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, *due: Due) -> None:
        self.runs += 1
        raise ZeroDivisionError


async def test_a_mistake_of_ours_is_no_reason_to_look_again(core: MemoryCore) -> None:
    await schedule(core)
    broken = Broken()
    jobs = ScheduleJobs(clock=core.clock, running=broken, settings=SchedulingSettings())

    with pytest.raises(ZeroDivisionError):
        await jobs.run_due(JobInTest(core.db), [])
    assert broken.runs == 1


async def test_a_runner_that_stops_begins_nothing(core: MemoryCore) -> None:
    record = await schedule(core)
    context = JobInTest(core.db)
    context.is_stopping = True
    await run(core, context)

    assert await now(core, record) == record


async def test_what_is_over_is_kept_as_long_as_the_settings_say(core: MemoryCore) -> None:
    old, newer = await schedule(core), await schedule(core)
    for record in (old, newer):
        async with core.db.transaction() as tx:
            await core.get(Scheduling).cancel(tx, PROJECT, record.record_id, "scheduled")
        core.clock.advance(1)
    # A second after `newer` was cancelled, and two after `old` was.
    core.clock.advance(7 * DAY_MS // 1000 - 1)
    await core.get(ScheduleJobs).purge(JobInTest(core.db), [])

    assert (await now(core, newer)).status == "cancelled"
    with pytest.raises(NotFound):
        await now(core, old)
