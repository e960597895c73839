"""The rules of chains and of who is in them."""

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from msgsvc_drip.definition import StepMessage
from msgsvc_drip.models import EnrollInDripBody, UpdateDripBody
from msgsvc_drip.service import REMOVE, Drips

from .chain import BYE, HELLO, create_chain, enroll, enrollments, new_chain


@pytest.fixture
def drips(core: MemoryCore) -> Drips:
    return core.get(Drips)


async def test_a_project_has_so_many_chains_and_a_chain_so_many_steps() -> None:
    limits = {"steps_per_chain": 1, "chains_per_project": 1}
    async with (
        memory_core(plugins=["drip"], drip=limits) as core,
        core.db.transaction() as tx,
    ):
        only = await create_chain(core, tx, HELLO)
        with pytest.raises(ValidationFailed, match="steps: at most 1"):
            await create_chain(core, tx, HELLO, BYE)
        with pytest.raises(Conflict, match="at most 1"):
            await create_chain(core, tx, HELLO)

        assert await core.get(Drips).page(tx, PROJECT, None, 10) == [only]


async def test_a_trigger_is_a_permission_that_the_project_has(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    body = new_chain(trigger={"on": "permission", "value": "news"})

    with pytest.raises(ValidationFailed, match=r"trigger\.value: .*there is no permission 'news'"):
        await drips.create(tx, PROJECT, body)
    await core.permissions.create(tx, PROJECT, CreatePermissionBody(key="news", title="News"))
    assert (await drips.create(tx, PROJECT, body)).trigger_value == "news"


async def test_a_chain_that_begins_paused_stands_still_from_the_beginning(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    chain = await create_chain(core, tx, status="paused")
    core.clock.advance(3600)
    await drips.set_status(tx, PROJECT, chain.drip_id, "active")
    enrolled = await enroll(core, tx, chain)

    assert chain.status == "paused"
    assert enrolled.due_at_ms == core.clock.now_ms()


async def test_new_steps_are_a_new_version_and_a_new_name_is_none(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    chain = await create_chain(core, tx)
    renamed = await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(name="Hi"))
    changed = await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(steps=[BYE]))

    assert (renamed.name, renamed.version) == ("Hi", 1)
    assert (changed.name, changed.version, changed.definition.steps) == ("Hi", 2, [BYE])
    assert changed.definition.stop_on == ["order.paid"]
    assert await drips.get(tx, PROJECT, chain.drip_id) == changed


async def test_a_chain_whose_template_is_gone_can_be_renamed_and_not_rewritten(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    await core.templates.create(tx, PROJECT, CreateTemplateBody(key="gone", text="Hi"))
    lost = HELLO.model_copy(update={"message": StepMessage(template="gone")})
    chain = await create_chain(core, tx, lost)
    await core.templates.delete(tx, PROJECT, "gone")
    await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(name="Hi"))

    with pytest.raises(NotFound, match="gone"):
        await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(steps=[HELLO, lost]))


async def test_a_change_of_what_somebody_else_changed_is_refused(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    chain = await create_chain(core, tx)
    await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(steps=[BYE]))

    with pytest.raises(Conflict, match="changed meanwhile"):
        await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(name="Hi"), version=1)
    await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(name="Hi"), version=2)


async def test_those_in_a_chain_that_is_deleted_go_by_a_job_a_part_at_a_time(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    chain, other = await create_chain(core, tx), await create_chain(core, tx)
    for number in range(5):
        await enroll(core, tx, chain, f"sub_{number}")
    await drips.delete(tx, PROJECT, chain.drip_id)
    with pytest.raises(NotFound):
        await drips.delete(tx, PROJECT, chain.drip_id)
    left = []
    for _ in range(2):
        is_done = await drips.remove_deleted(tx, PROJECT, chain.drip_id, 3)
        counts = [
            await tx.fetch_val(f"SELECT COUNT(*) FROM {table}")
            for table in ("drip_enrollments", "drip_chains")
        ]
        left.append((is_done, *counts))

    assert [job.payload["drip_id"] for job in await core.jobs_named(tx, REMOVE)] == [chain.drip_id]
    assert left == [(False, 2, 2), (True, 0, 1)]
    assert await drips.get(tx, PROJECT, other.drip_id) == other


async def test_a_person_is_taken_in_at_the_newest_version(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    chain = await create_chain(core, tx)
    await drips.update(tx, PROJECT, chain.drip_id, UpdateDripBody(steps=[BYE]))

    assert (await enroll(core, tx, chain)).version == 2


async def test_a_paused_chain_takes_nobody_in(core: MemoryCore, tx: Tx) -> None:
    chain = await create_chain(core, tx, status="paused")

    with pytest.raises(Conflict, match="is paused"):
        await enroll(core, tx, chain)
    assert await enrollments(core, tx, chain) == []


async def test_who_has_left_is_not_taken_in(core: MemoryCore, tx: Tx) -> None:
    chain = await create_chain(core, tx)

    with pytest.raises(Conflict, match="sub_1 is not subscribed"):
        await enroll(core, tx, chain, status="unsubscribed")
    assert await enrollments(core, tx, chain) == []


@pytest.mark.parametrize("reentry", ["never", "after_completion"])
async def test_who_is_in_a_chain_is_not_taken_in_again(
    core: MemoryCore, tx: Tx, drips: Drips, reentry: str
) -> None:
    chain = await create_chain(core, tx, reentry=reentry)
    enrolled = await enroll(core, tx, chain)

    with pytest.raises(Conflict, match=f"already enrolled: {enrolled.enrollment_id}"):
        await drips.enroll(tx, PROJECT, chain.drip_id, EnrollInDripBody(subscriber_id="sub_1"))


async def test_who_has_been_through_it_comes_in_again_only_where_that_is_wanted(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    once = await create_chain(core, tx, reentry="never")
    again = await create_chain(core, tx, reentry="after_completion")
    body = EnrollInDripBody(subscriber_id="sub_1")
    await core.person(tx)
    for chain in (once, again):
        enrolled = await drips.enroll(tx, PROJECT, chain.drip_id, body)
        await drips.cancel(tx, PROJECT, enrolled.enrollment_id)

    with pytest.raises(Conflict, match="reentry is never"):
        await drips.enroll(tx, PROJECT, once.drip_id, body)
    assert (await drips.enroll(tx, PROJECT, again.drip_id, body)).status == "active"


async def test_what_has_ended_is_neither_paused_nor_resumed_nor_cancelled(
    core: MemoryCore, tx: Tx, drips: Drips
) -> None:
    enrolled = await enroll(core, tx, await create_chain(core, tx))
    ended = await drips.cancel(tx, PROJECT, enrolled.enrollment_id)

    for change in (drips.pause, drips.resume, drips.cancel):
        with pytest.raises(Conflict, match="it is cancelled"):
            await change(tx, PROJECT, enrolled.enrollment_id)
    assert await drips.get_enrollment(tx, PROJECT, enrolled.enrollment_id) == ended
