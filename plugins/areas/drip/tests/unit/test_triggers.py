"""Who is led into chains and out of them."""

from dataclasses import replace

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.subscribers.models import Source, Status, Subscriber
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_drip import store
from msgsvc_drip.models import Drip

from .chain import BYE, HELLO, create_chain, enroll, enrollments


async def track(core: MemoryCore, tx: Tx, name: str, subscriber: Subscriber) -> None:
    """As a project does by `POST /v1/events`."""
    fields = {"name": name, "properties": {}}
    await core.events.emit(tx, PROJECT, "event.tracked", fields, subscriber=subscriber)


async def statuses(core: MemoryCore, tx: Tx, chain: Drip) -> list[str]:
    """Of those who are, or were, in a chain, oldest first."""
    return [one.status for one in await enrollments(core, tx, chain)]


@pytest.mark.parametrize(("status", "led"), [("active", 1), ("blocked", 0), ("unsubscribed", 0)])
async def test_a_tag_leads_subscribers_into_the_chain(
    core: MemoryCore, tx: Tx, status: Status, led: int
) -> None:
    chain = await create_chain(core, tx)
    await core.person(tx, status=status)
    await core.subscribers.add_tag(tx, PROJECT, "sub_1", "other")
    assert await enrollments(core, tx, chain) == []

    await core.subscribers.add_tag(tx, PROJECT, "sub_1", "vip")

    assert len(await enrollments(core, tx, chain)) == led


async def test_the_first_step_is_due_after_its_delay(core: MemoryCore, tx: Tx) -> None:
    chain = await create_chain(core, tx, BYE, HELLO)
    await core.person(tx)
    await core.subscribers.add_tag(tx, PROJECT, "sub_1", "vip")

    [led] = await enrollments(core, tx, chain)
    assert (led.next_step, led.due_at_ms) == (0, core.clock.now_ms() + 2 * HOUR_MS)


async def test_who_leaves_is_out_of_every_chain(core: MemoryCore, tx: Tx) -> None:
    chains = [await create_chain(core, tx) for _ in range(2)]
    await core.person(tx)
    await core.subscribers.add_tag(tx, PROJECT, "sub_1", "vip")
    await enroll(core, tx, chains[0], "sub_2")
    await core.subscribers.unsubscribe(tx, PROJECT, "sub_1", reason="stop")

    first, second = [await enrollments(core, tx, chain) for chain in chains]
    assert [(one.status, one.reason) for one in first] == [
        ("stopped", "subscription.deleted"),
        ("active", None),
    ]
    assert [(one.status, one.finished_at_ms) for one in second] == [
        ("stopped", core.clock.now_ms())
    ]


@pytest.mark.parametrize("name", ["event.tracked", "cart.abandoned"])
async def test_what_a_project_tracks_is_an_event_of_its_own_name(
    core: MemoryCore, tx: Tx, name: str
) -> None:
    begun = await create_chain(core, tx, trigger={"on": "event", "value": name})
    ended = await create_chain(core, tx, trigger={"on": "manual"}, stop_on=[name])
    await enroll(core, tx, ended)
    anna = await core.subscribers.get(tx, PROJECT, "sub_1")
    await track(core, tx, "cart.abandoned", anna)

    assert await statuses(core, tx, begun) == ["active"]
    assert [(one.status, one.reason) for one in await enrollments(core, tx, ended)] == [
        ("stopped", name)
    ]


@pytest.mark.parametrize(("source", "led"), [("api", 2), ("auth", 1)])
async def test_who_subscribes_is_led_in_by_that_and_by_how_they_came(
    core: MemoryCore, tx: Tx, source: Source, led: int
) -> None:
    chains = [
        await create_chain(core, tx, trigger={"on": "subscription", "value": value})
        for value in (None, "api")
    ]
    user = ChannelUser("1", "Anna", None, "en")
    await core.subscribers.subscribe(tx, PROJECT, "messenger_a", user, "chat 1", source=source)

    assert sum([len(await enrollments(core, tx, chain)) for chain in chains]) == led


@pytest.mark.parametrize("granted", [True, False])
async def test_a_permission_leads_in_when_it_is_granted(
    core: MemoryCore, tx: Tx, granted: bool
) -> None:
    await core.permissions.create(tx, PROJECT, CreatePermissionBody(key="news", title="News"))
    chain = await create_chain(core, tx, trigger={"on": "permission", "value": "news"})
    await core.person(tx, permissions=[] if granted else ["news"])
    assert await core.subscribers.set_permission(tx, PROJECT, "sub_1", "news", granted)

    assert len(await enrollments(core, tx, chain)) == granted


async def test_our_own_events_lead_nobody_anywhere(core: MemoryCore, tx: Tx) -> None:
    chain = await create_chain(core, tx, trigger={"on": "manual"})
    # The API accepts no such names.
    itself = replace(
        chain,
        drip_id="drp_itself",
        trigger_on="event",
        trigger_value="drip.step_sent",
        content=chain.definition.model_copy(update={"stop_on": ["drip.step_sent"]}).to_column(),
    )
    await store.insert(tx, itself)
    await enroll(core, tx, itself)
    anna = await core.person(tx, "sub_2")
    fields = {"drip_id": "drp_1", "enrollment_id": "enr_1", "step": 1, "message_id": "msg_1"}
    for person in (anna, await core.subscribers.get(tx, PROJECT, "sub_1")):
        await core.events.emit(tx, PROJECT, "drip.step_sent", fields, subscriber=person)

    assert await statuses(core, tx, itself) == ["active"]


async def test_one_event_ends_a_chain_before_it_begins_the_next(core: MemoryCore, tx: Tx) -> None:
    chain = await create_chain(
        core, tx, trigger={"on": "event", "value": "order.paid"}, reentry="after_completion"
    )
    anna = await core.person(tx)
    await track(core, tx, "order.paid", anna)
    assert await statuses(core, tx, chain) == ["active"]

    await track(core, tx, "order.paid", anna)

    assert await statuses(core, tx, chain) == ["stopped", "active"]
