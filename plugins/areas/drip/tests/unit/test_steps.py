"""What becomes of steps that are due, built from fakes."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytest

from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.jobs import NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, claimed
from msgsvc_drip import plugin
from msgsvc_drip.definition import Delay, DripDefinition, Step, StepMessage, When
from msgsvc_drip.due_store import DueStep
from msgsvc_drip.jobs import REMOVED_AT_ONCE, DripJobs
from msgsvc_drip.models import Enrollment
from msgsvc_drip.planning import Candidate, Plan, Planner
from msgsvc_drip.receivers import Receivers
from msgsvc_drip.service import REMOVE, Drips
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.step_runner import StepRunner

from .chain import ANNA_IN_IT, BYE, CHAIN, DEFINITION, HELLO, checks, contents, with_steps


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin)


def planner(core: FakeContext) -> Planner:
    return Planner(
        billing=core.billing,
        messages=core.messages,
        contents=partial(contents, core),
        receivers=receivers(core),
        late_minutes=60,
    )


def receivers(core: FakeContext) -> Receivers:
    return Receivers(db=core.db, routes=core.routes, subscribers=core.subscribers)


def candidate(
    core: FakeContext,
    definition: DripDefinition = DEFINITION,
    person: Subscriber | None = None,
    **fields: Any,
) -> Candidate:
    """Somebody whose step is due now."""
    row = replace(ANNA_IN_IT, **{"due_at_ms": core.clock.now_ms(), **fields})
    return Candidate(DueStep(row, 0), definition, person or core.subscribers.person())


async def plan(core: FakeContext, *candidates: Candidate) -> list[Plan]:
    return await planner(core).plan_all(candidates, core.clock.now_ms())


# ---- plans --------------------------------------------------------------------------------------


async def test_a_step_is_sent_and_the_next_one_is_due_after_its_delay(core: FakeContext) -> None:
    [planned] = await plan(core, candidate(core))

    assert planned.message is not None
    assert core.messages.texts == ["Hello"]
    assert (planned.move.status, planned.move.next_step) == ("active", 1)
    assert planned.move.due_at_ms == core.clock.now_ms() + 2 * HOUR_MS
    assert planned.move.message_id == planned.message.message_id


async def test_the_last_step_completes_the_chain(core: FakeContext) -> None:
    [planned] = await plan(core, candidate(core, next_step=1))

    assert (planned.move.status, planned.move.due_at_ms) == ("completed", None)
    assert core.messages.texts == ["Bye"]


async def test_who_has_left_without_an_event_is_stopped(core: FakeContext) -> None:
    left = core.subscribers.person(status="unsubscribed")
    [planned] = await plan(core, candidate(core, person=left))

    assert (planned.move.status, planned.move.reason) == ("stopped", "not subscribed")
    assert core.messages.by_id == {}


async def test_a_step_whose_conditions_do_not_hold_is_left_out(core: FakeContext) -> None:
    picky = with_steps(HELLO.model_copy(update={"when": When(tags_any=["vip"])}), BYE)
    guest, vip = core.subscribers.person("sub_1"), core.subscribers.person("sub_2", tags=["vip"])
    left_out, sent = await plan(
        core, candidate(core, picky, guest), candidate(core, picky, vip, subscriber_id="sub_2")
    )

    assert left_out.move.reason == "step 1: its conditions did not hold"
    assert (left_out.move.next_step, left_out.message) == (1, None)
    assert sent.message is not None


@pytest.mark.parametrize(("late_minutes", "is_sent"), [(59, True), (61, False)])
async def test_a_step_that_missed_its_time_of_day_waits_for_that_of_the_next(
    core: FakeContext, late_minutes: int, is_sent: bool
) -> None:
    at_noon = with_steps(HELLO.model_copy(update={"at_local_time": "12:00"}))
    noon_ms, due = core.clock.now_ms(), candidate(core, at_noon)
    core.clock.advance(late_minutes * 60)
    [planned] = await plan(core, due)

    assert (planned.message is not None) is is_sent
    assert planned.move.due_at_ms == (None if is_sent else noon_ms + DAY_MS)


async def test_after_an_outage_days_are_counted_from_today(core: FakeContext) -> None:
    daily = Step(delay=Delay(days=1), message=StepMessage(text="Day"), at_local_time="12:00")
    noon_ms, due = core.clock.now_ms(), candidate(core, with_steps(HELLO, daily))
    core.clock.advance(3 * 24 * 3600)
    [planned] = await plan(core, due)

    assert planned.move.due_at_ms == noon_ms + 4 * DAY_MS


async def test_a_chain_goes_on_without_what_nobody_pays_for(core: FakeContext) -> None:
    core.billing.refused.add(PROJECT)
    [planned] = await plan(core, candidate(core))

    assert (planned.message, planned.move.next_step) == (None, 1)
    assert "is not paid for" in (planned.move.reason or "")


async def test_a_message_that_can_not_be_made_is_left_out_for_it_alone(core: FakeContext) -> None:
    lost = with_steps(HELLO.model_copy(update={"message": StepMessage(template="gone")}))
    broken, sent = await plan(core, candidate(core, lost), candidate(core))

    assert "there is no template 'gone'" in (broken.move.reason or "")
    assert sent.message is not None


# ---- batches ------------------------------------------------------------------------------------


def runner(core: FakeContext, planner_: Planner | None = None, *, batch: int = 10) -> StepRunner:
    return StepRunner(
        clock=core.clock,
        db=core.db,
        events=core.events,
        projects=core.projects,
        subscribers=core.subscribers,
        planner=planner_ or planner(core),
        batch=batch,
    )


def hold(core: FakeContext, *rows: Enrollment) -> None:
    """Has the database hold enrollments in one chain, and move all of them."""
    of_chain = [{"project_id": PROJECT, "drip_id": "drp_1", "paused_ms": 0}]
    version = {"project_id": PROJECT, "drip_id": "drp_1", "version": 1}
    core.db.replies |= {
        "WITH firsts": of_chain,
        "AS due_at_ms": [asdict(row) for row in rows],
        "SELECT v.project_id": [{**version, "content": CHAIN.content}],
        "SELECT c.project_id, c.drip_id, c.paused_ms FROM": of_chain,
        "UPDATE drip_enrollments": lambda params: [
            {"enrollment_id": key[1]} for key in from_json(params["keys"])
        ],
    }


def people_in(core: FakeContext, *numbers: int) -> list[Enrollment]:
    for number in numbers:
        core.subscribers.person(f"sub_{number}")
    return [
        replace(
            ANNA_IN_IT,
            enrollment_id=f"enr_{number}",
            subscriber_id=f"sub_{number}",
            due_at_ms=core.clock.now_ms(),
        )
        for number in numbers
    ]


async def test_a_message_its_event_and_the_next_step_are_one_transaction(core: FakeContext) -> None:
    hold(core, *people_in(core, 1))
    is_more = await runner(core).run_batch()

    [event] = core.events.emitted
    assert (is_more, core.db.commits) == (True, 1)
    assert (event.name, event.data["step"]) == ("drip.step_sent", 1)
    assert [event.data["message_id"]] == list(core.messages.by_id)
    assert len(core.db.rows["core_messages"]) == 1


async def test_who_was_moved_on_meanwhile_gets_nothing_twice(core: FakeContext) -> None:
    hold(core, *people_in(core, 1))
    core.db.replies["UPDATE drip_enrollments"] = []
    is_more = await runner(core).run_batch()

    assert (is_more, core.events.emitted, dict(core.db.rows)) == (False, [], {})


async def test_a_chain_that_was_paused_meanwhile_moves_nobody(core: FakeContext) -> None:
    hold(core, *people_in(core, 1))
    core.db.replies["SELECT c.project_id, c.drip_id, c.paused_ms FROM"] = []
    await runner(core).run_batch()

    assert core.db.params_of("UPDATE drip_enrollments") == []
    assert core.events.emitted == []


async def test_who_was_erased_between_two_looks_is_left_out(core: FakeContext) -> None:
    hold(core, ANNA_IN_IT)

    assert await runner(core).run_batch() is False
    assert core.db.commits == 0


async def test_a_chain_with_many_people_leaves_their_share_to_others(core: FakeContext) -> None:
    hold(core)
    core.db.replies["WITH firsts"] = [
        {"project_id": PROJECT, "drip_id": f"drp_{number}", "paused_ms": 0} for number in range(3)
    ]
    await runner(core, batch=10).run_batch()

    assert [params["most"] for params in core.db.params_of("AS due_at_ms")] == [4, 5, 10]


class PlannerWithMistake(Planner):
    """Fails on the enrollment `enr_2`, by a mistake of ours."""

    async def plan_all(self, candidates: Sequence[Candidate], now_ms: int) -> list[Plan]:
        if any(one.due.row.enrollment_id == "enr_2" for one in candidates):
            raise RuntimeError("a mistake of ours")
        return await super().plan_all(candidates, now_ms)


async def test_a_mistake_of_ours_costs_one_person_a_step_and_holds_up_nobody(
    core: FakeContext,
) -> None:
    hold(core, *people_in(core, 1, 2, 3))
    plans = PlannerWithMistake(
        billing=core.billing,
        messages=core.messages,
        contents=partial(contents, core),
        receivers=receivers(core),
        late_minutes=60,
    )
    await runner(core, plans).run_batch()

    moved = [
        key
        for params in core.db.params_of("UPDATE drip_enrollments")
        for key in from_json(params["keys"])
    ]
    reasons = {key[1]: key[8] for key in moved}
    assert reasons.keys() == {"enr_1", "enr_2", "enr_3"}
    assert [name for name, reason in reasons.items() if reason] == ["enr_2"]
    assert core.events.names == ["drip.step_sent", "drip.step_sent"]


class PlannerWithoutDatabase(Planner):
    """Finds the database away when it reads messages."""

    async def plan_all(self, candidates: Sequence[Candidate], now_ms: int) -> list[Plan]:
        raise DatabaseUnavailable("away")


async def test_a_database_that_is_away_costs_nobody_a_step(core: FakeContext) -> None:
    hold(core, *people_in(core, 1, 2))
    plans = PlannerWithoutDatabase(
        billing=core.billing,
        messages=core.messages,
        contents=partial(contents, core),
        receivers=receivers(core),
        late_minutes=60,
    )

    with pytest.raises(DatabaseUnavailable):
        await runner(core, plans).run_batch()
    assert core.db.params_of("UPDATE drip_enrollments") == []


async def test_a_version_is_read_once(core: FakeContext) -> None:
    hold(core, *people_in(core, 1))
    steps = runner(core)
    await steps.run_batch()
    await steps.run_batch()

    assert len(core.db.params_of("SELECT v.project_id")) == 1


# ---- jobs ---------------------------------------------------------------------------------------


class FewBatches(StepRunner):
    """Has so many batches to run."""

    def __init__(self, left: int, after_each: Callable[[], None] = lambda: None) -> None:
        self.left = left
        self._after_each = after_each

    async def run_batch(self) -> bool:
        self.left -= 1
        self._after_each()
        return self.left > 0


def jobs(core: FakeContext, steps: StepRunner) -> DripJobs:
    campaigns = Drips(
        clock=core.clock,
        jobs=core.jobs,
        subscribers=core.subscribers,
        checks=checks(core),
        settings=DripSettings(),
    )
    return DripJobs(drips=campaigns, runner=steps, look_s=2.0)


async def test_batches_are_run_until_none_is_left(core: FakeContext) -> None:
    steps = FewBatches(3)
    await jobs(core, steps).run_due(FakeJobContext(core.db), [])

    assert steps.left == 0


async def test_a_runner_that_stops_ends_between_two_batches(core: FakeContext) -> None:
    ctx = FakeJobContext(core.db)
    steps = FewBatches(3, lambda: setattr(ctx, "is_stopping", True))

    with pytest.raises(Stopping):
        await jobs(core, steps).run_due(ctx, [])
    assert steps.left == 2


async def test_a_deleted_chain_is_removed_in_small_transactions(core: FakeContext) -> None:
    left = [REMOVED_AT_ONCE, REMOVED_AT_ONCE, 5]
    core.db.replies = {"DELETE FROM drip_enr": lambda _: left.pop(0), "DELETE FROM drip_chains": 1}
    job = claimed(NewJob(REMOVE, {"project_id": PROJECT, "drip_id": "drp_1"}))
    await jobs(core, FewBatches(0)).remove(FakeJobContext(core.db), [job])

    assert (left, core.db.commits) == ([], 3)
    assert len(core.db.params_of("DELETE FROM drip_chains")) == 1
