"""What becomes of steps that are due."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import Job, Stopping
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT
from msgsvc_drip import jobs
from msgsvc_drip.definition import Delay, Step, StepMessage, When
from msgsvc_drip.jobs import DripJobs
from msgsvc_drip.models import Drip, Enrollment
from msgsvc_drip.service import REMOVE, Drips
from msgsvc_drip.step_runner import StepRunner

from .chain import BYE, HELLO, create_chain, enroll, enrollments


class Meanwhile:
    """A billing plugin, which is asked after the steps are read and before they are written."""

    def __init__(self) -> None:
        self.happens: Callable[[], Awaitable[object]] | None = None

    @hookimpl
    async def check_operation(self, project_id: str, operation: str, tx: Tx | None) -> None:
        if self.happens is not None:
            happens, self.happens = self.happens, None
            await happens()


@pytest.fixture
def meanwhile() -> Meanwhile:
    return Meanwhile()


@pytest.fixture
async def core(meanwhile: Meanwhile) -> AsyncIterator[MemoryCore]:
    plugins = [("meanwhile", meanwhile)]
    async with memory_core(plugins=["drip"], extra_plugins=plugins, drip={"batch": 5}) as core:
        yield core


async def chain_with(core: MemoryCore, *steps: Step, people: int = 1, **columns: Any) -> Drip:
    """A chain in which people are, `sub_1` and so on, whose first step is due after its delay."""
    async with core.db.transaction() as tx:
        chain = await create_chain(core, tx, *steps)
        for number in range(1, people + 1):
            await enroll(core, tx, chain, f"sub_{number}", **columns)
    return chain


async def people_in(core: MemoryCore, chain: Drip) -> list[Enrollment]:
    async with core.db.read() as tx:
        return await enrollments(core, tx, chain)


async def person_in(core: MemoryCore, chain: Drip) -> Enrollment:
    """The only one."""
    [enrollment] = await people_in(core, chain)
    return enrollment


async def texts(core: MemoryCore) -> list[str]:
    """What has been queued so far."""
    async with core.db.read() as tx:
        return [message.content.text for message in await core.messages_queued(tx)]


async def run_batch(core: MemoryCore) -> bool:
    return await core.get(StepRunner).run_batch()


# ---- plans --------------------------------------------------------------------------------------


async def test_a_step_is_sent_and_the_next_one_is_due_after_its_delay(core: MemoryCore) -> None:
    chain = await chain_with(core)
    await run_batch(core)

    moved = await person_in(core, chain)
    assert (moved.status, moved.next_step) == ("active", 1)
    assert moved.due_at_ms == core.clock.now_ms() + 2 * HOUR_MS
    async with core.db.read() as tx:
        [message] = await core.messages_queued(tx)
    assert (message.message_id, message.subscriber_id) == (moved.last_message_id, "sub_1")
    assert message.content.text == "Hello"


async def test_the_last_step_completes_the_chain(core: MemoryCore) -> None:
    chain = await chain_with(core)
    await run_batch(core)
    core.clock.advance(2 * 3600)
    await run_batch(core)

    moved = await person_in(core, chain)
    assert (moved.status, moved.due_at_ms) == ("completed", None)
    assert moved.finished_at_ms == core.clock.now_ms()
    assert await texts(core) == ["Hello", "Bye"]
    assert core.event_names == ["drip.step_sent", "drip.step_sent", "drip.completed"]


async def test_who_has_left_without_an_event_is_stopped(core: MemoryCore) -> None:
    chain = await chain_with(core)
    async with core.db.transaction() as tx:
        # As in a time without the plugin.
        await tx.execute("UPDATE core_subscribers SET status = 'unsubscribed'")
    await run_batch(core)

    stopped = await person_in(core, chain)
    assert (stopped.status, stopped.reason) == ("stopped", "not subscribed")
    assert await texts(core) == []


async def test_a_step_whose_conditions_do_not_hold_is_left_out(core: MemoryCore) -> None:
    picky = HELLO.model_copy(update={"when": When(tags_any=["loyal"])})
    chain = await chain_with(core, picky, BYE)
    async with core.db.transaction() as tx:
        await enroll(core, tx, chain, "sub_2", tags=["loyal"])
    await run_batch(core)

    left_out, sent = await people_in(core, chain)
    assert left_out.reason == "step 1: its conditions did not hold"
    assert (left_out.next_step, left_out.last_message_id) == (1, None)
    assert sent.reason is None
    assert sent.last_message_id is not None


@pytest.mark.parametrize(("late_minutes", "is_sent"), [(59, True), (61, False)])
async def test_a_step_that_missed_its_time_of_day_waits_for_that_of_the_next(
    core: MemoryCore, late_minutes: int, is_sent: bool
) -> None:
    noon_ms = core.clock.now_ms()
    chain = await chain_with(core, HELLO.model_copy(update={"at_local_time": "12:00"}))
    core.clock.advance(late_minutes * 60)
    await run_batch(core)

    assert len(await texts(core)) == is_sent
    moved = await person_in(core, chain)
    assert (moved.status, moved.due_at_ms) == (
        ("completed", None) if is_sent else ("active", noon_ms + DAY_MS)
    )


async def test_after_an_outage_days_are_counted_from_today(core: MemoryCore) -> None:
    daily = Step(delay=Delay(days=1), message=StepMessage(text="Day"), at_local_time="12:00")
    noon_ms = core.clock.now_ms()
    chain = await chain_with(core, HELLO, daily)
    core.clock.advance(3 * 24 * 3600)
    await run_batch(core)

    assert (await person_in(core, chain)).due_at_ms == noon_ms + 4 * DAY_MS


async def test_a_chain_goes_on_without_what_nobody_pays_for(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    async def refuse() -> None:
        raise BillingBlocked("there are no credits left")

    chain = await chain_with(core, people=2)
    meanwhile.happens = refuse
    await run_batch(core)

    for left_out in await people_in(core, chain):
        assert (left_out.next_step, left_out.last_message_id) == (1, None)
        assert left_out.reason == "step 1: there are no credits left"
    assert core.emitted == []


async def test_a_message_that_can_not_be_made_is_left_out_for_it_alone(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await core.templates.create(tx, PROJECT, CreateTemplateBody(key="gone", text="Hi"))
    lost = HELLO.model_copy(update={"message": StepMessage(template="gone")})
    broken = await chain_with(core, lost)
    async with core.db.transaction() as tx:
        await core.templates.delete(tx, PROJECT, "gone")
        whole = await create_chain(core, tx)
        await enroll(core, tx, whole, "sub_2")
    await run_batch(core)

    assert (await person_in(core, broken)).reason == "step 1: there is no template 'gone'"
    assert (await person_in(core, whole)).reason is None
    assert await texts(core) == ["Hello"]


# ---- batches ------------------------------------------------------------------------------------


async def test_a_step_is_told_with_its_message(core: MemoryCore) -> None:
    chain = await chain_with(core)
    is_more = await run_batch(core)

    [event] = core.emitted
    moved = await person_in(core, chain)
    assert is_more
    assert (event.name, event.data["step"]) == ("drip.step_sent", 1)
    assert (event.data["subscriber_id"], event.data["message_id"]) == (
        "sub_1",
        moved.last_message_id,
    )


async def test_who_was_moved_on_meanwhile_gets_nothing_twice(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    chain = await chain_with(core)
    meanwhile.happens = lambda: run_batch(core)
    is_more = await run_batch(core)

    assert (is_more, await texts(core)) == (False, ["Hello"])
    assert core.event_names == ["drip.step_sent"]
    assert (await person_in(core, chain)).next_step == 1


async def test_a_chain_that_was_paused_meanwhile_moves_nobody(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    chain = await chain_with(core)

    async def pause() -> None:
        async with core.db.transaction() as tx:
            await core.get(Drips).set_status(tx, PROJECT, chain.drip_id, "paused")

    meanwhile.happens = pause
    await run_batch(core)

    assert (await person_in(core, chain)).next_step == 0
    assert (core.emitted, await texts(core)) == ([], [])


async def test_who_was_erased_between_two_looks_is_left_out(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: object) -> dict[tuple[str, str], Any]:
        return {}

    chain = await chain_with(core)
    monkeypatch.setattr(core.subscribers, "get_many", nobody)

    assert await run_batch(core) is False
    assert (await person_in(core, chain)).next_step == 0


async def test_a_chain_with_many_people_leaves_their_share_to_others(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        chains = [await create_chain(core, tx) for _ in range(3)]
        for chain, count in zip(chains, (4, 1, 4), strict=True):
            for number in range(count):
                await enroll(core, tx, chain, f"sub_{chain.drip_id} {number}")
    await run_batch(core)

    moved = [[one.next_step for one in await people_in(core, chain)] for chain in chains]
    # Of a batch of five: a third, half of the rest, which the second has not, and the rest.
    assert [sum(each) for each in moved] == [2, 1, 2]


class Failing:
    """A plugin that fails at the event about a person's step, when all else of it is written."""

    def __init__(self, subscriber_id: str) -> None:
        self._subscriber_id = subscriber_id

    @hookimpl
    async def on_events(self, events: Sequence[Event]) -> None:
        if any(event.data["subscriber_id"] == self._subscriber_id for event in events):
            raise ZeroDivisionError("a mistake of ours")


async def test_a_mistake_of_ours_costs_one_person_a_step_and_holds_up_nobody() -> None:
    plugins = [("failing", Failing("sub_2"))]
    async with memory_core(plugins=["drip"], extra_plugins=plugins) as core:
        chain = await chain_with(core, people=3)
        await run_batch(core)

        first, second, third = await people_in(core, chain)
        assert {first.next_step, second.next_step, third.next_step} == {1}
        assert second.reason == "step 1: an internal error; the service's log has more"
        # The step is one transaction: its message has not remained.
        assert second.last_message_id is None
        assert first.reason is third.reason is None
        assert await texts(core) == ["Hello", "Hello"]


async def test_a_database_that_is_away_costs_nobody_a_step(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    async def fail() -> None:
        raise DatabaseUnavailable("away")

    chain = await chain_with(core, people=2)
    meanwhile.happens = fail

    with pytest.raises(DatabaseUnavailable):
        await run_batch(core)
    assert [one.next_step for one in await people_in(core, chain)] == [0, 0]


async def test_a_version_is_read_once(core: MemoryCore) -> None:
    await chain_with(core)
    await run_batch(core)
    async with core.db.transaction() as tx:
        await tx.execute("UPDATE drip_versions SET content = 'unreadable'")
    core.clock.advance(2 * 3600)
    await run_batch(core)

    assert await texts(core) == ["Hello", "Bye"]


# ---- jobs ---------------------------------------------------------------------------------------


def job_handlers(core: MemoryCore) -> DripJobs:
    return DripJobs(drips=core.get(Drips), runner=core.get(StepRunner), look_s=2.0)


async def test_batches_are_run_until_none_is_left(core: MemoryCore) -> None:
    await chain_with(core, people=12)
    await job_handlers(core).run_due(JobInTest(core.db), [])

    assert await texts(core) == ["Hello"] * 12


async def test_a_runner_that_stops_ends_between_two_batches(
    core: MemoryCore, meanwhile: Meanwhile
) -> None:
    context = JobInTest(core.db)

    async def stop() -> None:
        context.is_stopping = True

    await chain_with(core, people=12)
    meanwhile.happens = stop

    with pytest.raises(Stopping):
        await job_handlers(core).run_due(context, [])
    assert await texts(core) == ["Hello"] * 5


class CountingJob(JobInTest):
    """Counts the transactions."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.transactions = 0

    def holding(self, *of: Job) -> Any:
        self.transactions += 1
        return super().holding(*of)


async def test_a_deleted_chain_is_removed_in_small_transactions(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REMOVED_AT_ONCE", 2)
    chain = await chain_with(core, people=5)
    async with core.db.transaction() as tx:
        await core.get(Drips).delete(tx, PROJECT, chain.drip_id)
        [job] = await core.jobs_named(tx, REMOVE)
    context = CountingJob(core.db)
    await job_handlers(core).remove(context, [job])

    assert context.transactions == 3
    async with core.db.read() as tx:
        for table in ("drip_chains", "drip_enrollments"):
            assert await tx.fetch_val(f"SELECT COUNT(*) FROM {table}") == 0
