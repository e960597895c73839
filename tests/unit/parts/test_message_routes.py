"""Messages with a route: moves, and what ends them, built from fakes."""

from typing import Any

from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.route_moves import DEADLINE, RouteMoves
from msgsvc_core.messages.route_progress import CALL_S, RouteProgress
from msgsvc_core.routing.models import RouteStep, steps_to_column
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from tests.unit.parts.routed import moves_of
from tests.unit.parts.rows import a_message, row_of
from tests.unit.parts.test_messages import Counted

STEPS = (
    RouteStep(channel="messenger_a", until="delivered", within_s=60),
    RouteStep(channel="messenger_b"),
)


def routed(**fields: Any) -> Message:
    column = steps_to_column(STEPS)
    given = {"route_id": "rte_1", "route_steps": column, "route_step": 0, **fields}
    return a_message(**given)


def people_of(core: FakeContext) -> None:
    core.subscribers.person(external_id="ann")
    core.subscribers.person("sub_2", external_id="ann", channel="messenger_b", bot="messenger_b")


def progress_of(moves: RouteMoves) -> RouteProgress:
    return RouteProgress(moves=moves, batches=Counted())


async def test_a_message_goes_on_with_a_job_of_the_next_bot() -> None:
    core, message = plugin_context(), routed()
    people_of(core)
    moves = moves_of(core)
    tx = FakeTx(answers=[[{"project_id": PROJECT, "message_id": "msg_1"}], 1])
    copy = moves.copy_of(message, "failed", reason="invalid_message", error="too long")
    end = await moves.go_on(tx, message, "calling", copy)

    assert end is None
    assert "messenger_b" in tx.statements[0][1]["keys"]
    [job] = core.jobs.named(JOB)
    assert (job.lane, job.payload["step"]) == ("channel:messenger_b", 1)
    assert core.events.emitted == []


async def test_a_message_that_has_moved_already_stays_as_it_is() -> None:
    core, message = plugin_context(), routed()
    people_of(core)
    end = await moves_of(core).go_on(FakeTx(answers=[[]]), message, "waiting", None)

    assert (end, core.jobs.enqueued, core.events.emitted) == (None, [], [])


async def test_a_message_without_a_further_step_fails_with_its_reasons() -> None:
    core, message = plugin_context(), routed(route_step=1, channel="messenger_b")
    people_of(core)
    moves = moves_of(core)
    copy = moves.copy_of(message, "failed", reason="invalid_message", error="too long")
    end = await moves.go_on(FakeTx(answers=[[], 1, 1]), message, "calling", copy)

    assert end is not None
    assert (end.status, end.reason, end.error) == (
        "failed",
        "invalid_message",
        "messenger_b: too long",
    )
    assert core.events.names == ["delivery.failed"]


async def test_a_step_whose_call_is_in_progress_is_looked_at_again() -> None:
    core, message = plugin_context(), routed(status="sending")
    core.db.answers += [[{"one": 1}], [row_of(message)]]
    ctx = FakeJobContext(core.db)
    job = claimed(NewJob(DEADLINE, {"message_id": "msg_1", "step": 0}, project_id=PROJECT))
    await progress_of(moves_of(core)).look(ctx, [job])

    assert ctx.completed == [job]
    [again] = core.jobs.named(DEADLINE)
    assert again.payload == job.payload
    assert again.run_at_ms == core.clock.now_ms() + CALL_S * 1000
