"""The rules of chains and of who is in them, built from fakes."""

from dataclasses import replace

import pytest

from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_drip.definition import StepMessage
from msgsvc_drip.models import CreateDripBody, Drip, EnrollBody, Trigger, UpdateDripBody
from msgsvc_drip.service import REMOVE, Drips
from msgsvc_drip.settings import DripSettings

from .chain import ANNA_IN_IT, BYE, CHAIN, HELLO, chain_of, checks, tables, with_steps

NEW = CreateDripBody(name="Welcome", trigger=Trigger(on="tag", value="vip"), steps=[HELLO, BYE])


@pytest.fixture
def core() -> FakeContext:
    return plugin_context()


def drips(core: FakeContext, settings: DripSettings | None = None) -> Drips:
    return Drips(
        clock=core.clock,
        jobs=core.jobs,
        subscribers=core.subscribers,
        checks=checks(core),
        settings=settings or DripSettings(),
    )


async def test_a_project_has_so_many_chains_and_a_chain_so_many_steps(core: FakeContext) -> None:
    full = FakeTx(replies=tables(count=100))
    with pytest.raises(Conflict, match="at most 100"):
        await drips(core).create(full, PROJECT, NEW)
    with pytest.raises(ValidationFailed, match="steps: at most 1"):
        await drips(core, DripSettings(steps_per_chain=1)).create(full, PROJECT, NEW)

    assert full.rows["drip_chains"] == []


async def test_a_trigger_is_a_permission_that_the_project_has(core: FakeContext) -> None:
    body = NEW.model_copy(update={"trigger": Trigger(on="permission", value="news")})

    with pytest.raises(ValidationFailed, match=r"trigger\.value: .*there is no permission 'news'"):
        await drips(core).create(FakeTx(replies=tables()), PROJECT, body)


async def test_a_chain_that_begins_paused_stands_still_from_the_beginning(
    core: FakeContext,
) -> None:
    tx = FakeTx(replies=tables())
    await drips(core).create(tx, PROJECT, NEW.model_copy(update={"status": "paused"}))

    [row] = tx.rows["drip_chains"]
    assert (row["status"], row["paused_at_ms"]) == ("paused", core.clock.now_ms())


async def test_new_steps_are_a_new_version_and_a_new_name_is_none(core: FakeContext) -> None:
    tx = FakeTx(replies=tables())
    renamed = await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(name="Hi"))
    versions = list(tx.rows["drip_versions"])
    changed = await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(steps=[BYE]))

    assert (renamed.name, renamed.version, versions) == ("Hi", 1, [])
    assert (changed.version, [row["version"] for row in tx.rows["drip_versions"]]) == (2, [2])
    assert [row["event"] for row in tx.rows["drip_stops"]] == ["order.paid"]


async def test_a_chain_whose_template_is_gone_can_be_renamed_and_not_rewritten(
    core: FakeContext,
) -> None:
    lost = HELLO.model_copy(update={"message": StepMessage(template="gone")})
    tx = FakeTx(replies=tables(chain_of(with_steps(lost))))
    await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(name="Hi"))

    with pytest.raises(NotFound, match="gone"):
        await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(steps=[HELLO, lost]))


async def test_a_change_of_what_somebody_else_changed_is_refused(core: FakeContext) -> None:
    tx = FakeTx(replies=tables(replace(CHAIN, version=2)))

    with pytest.raises(Conflict, match="changed meanwhile"):
        await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(name="Hi"), version=1)
    await drips(core).update(tx, PROJECT, "drp_1", UpdateDripBody(name="Hi"), version=2)


async def test_those_in_a_chain_that_is_deleted_go_by_a_job_a_part_at_a_time(
    core: FakeContext,
) -> None:
    await drips(core).delete(FakeTx(replies=tables()), PROJECT, "drp_1")
    with pytest.raises(NotFound):
        await drips(core).delete(FakeTx(replies=tables(None)), PROJECT, "drp_2")
    left = [3, 2]
    tx = FakeTx(replies={"DELETE FROM drip_e": lambda _: left.pop(0), "DELETE FROM drip_chains": 1})
    ends = [await drips(core).remove_deleted(tx, PROJECT, "drp_1", 3) for _ in range(2)]

    assert [job.payload["drip_id"] for job in core.jobs.named(REMOVE)] == ["drp_1"]
    assert ends == [False, True]
    assert len(tx.params_of("DELETE FROM drip_chains")) == 1


async def test_a_person_is_taken_in_at_the_newest_version(core: FakeContext) -> None:
    core.subscribers.person()
    tx = FakeTx(replies=tables(replace(CHAIN, version=3), ANNA_IN_IT))
    await drips(core).enroll(tx, PROJECT, "drp_1", EnrollBody(subscriber_id="sub_1"))

    [params] = tx.params_of("INSERT INTO drip_enrollments")
    assert '"drp_1","3","sub_1"' in params["keys"]


@pytest.mark.parametrize(
    ("chain", "status", "why"),
    [
        (replace(CHAIN, status="paused"), "active", "is paused"),
        (CHAIN, "unsubscribed", "is not subscribed"),
        (CHAIN, "active", ": enr_1"),
    ],
)
async def test_who_can_not_be_taken_in_is_told_why(
    core: FakeContext, chain: Drip, status: Status, why: str
) -> None:
    core.subscribers.person(status=status)
    replies = tables(chain, ANNA_IN_IT) | {"INSERT INTO drip_enrollments": []}

    with pytest.raises(Conflict, match=why):
        await drips(core).enroll(
            FakeTx(replies=replies), PROJECT, "drp_1", EnrollBody(subscriber_id="sub_1")
        )


async def test_who_has_been_through_it_comes_in_again_only_where_that_is_wanted(
    core: FakeContext,
) -> None:
    core.subscribers.person()
    over = replace(ANNA_IN_IT, status="completed", finished_at_ms=1)
    replies = tables(CHAIN, over) | {"INSERT INTO drip_enrollments": []}

    with pytest.raises(Conflict, match="reentry is never"):
        await drips(core).enroll(
            FakeTx(replies=replies), PROJECT, "drp_1", EnrollBody(subscriber_id="sub_1")
        )


async def test_what_has_ended_is_neither_paused_nor_resumed_nor_cancelled(
    core: FakeContext,
) -> None:
    over = replace(ANNA_IN_IT, status="completed", finished_at_ms=1)
    tx = FakeTx(replies=tables(CHAIN, over) | {"UPDATE drip_enrollments": 0})
    campaigns = drips(core)

    for change in (campaigns.pause, campaigns.resume, campaigns.cancel):
        with pytest.raises(Conflict, match="it is completed"):
            await change(tx, PROJECT, "enr_1")
