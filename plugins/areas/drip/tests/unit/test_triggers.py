"""Who is led into chains and out of them, built from fakes."""

from typing import Any

import pytest

from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.models import Status
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_drip import plugin
from msgsvc_drip.triggers import Triggers

from .chain import CHAIN, make_all


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin)


def triggers(core: FakeContext) -> Triggers:
    return Triggers(clock=core.clock, subscribers=core.subscribers)


def reacting(*meant: tuple[str, str]) -> FakeTx:
    """Tables in which the chain reacts to (kind, value)."""
    found = [
        {
            "kind": kind,
            "value": value,
            "project_id": PROJECT,
            "drip_id": "drp_1",
            "version": 1,
            "content": None if kind == "stop" else CHAIN.content,
        }
        for kind, value in meant
    ]
    return FakeTx(
        replies={
            "SELECT keys.kind": found,
            "SELECT e.project_id, e.enrollment_id, keys.why": [],
            "INSERT INTO drip_enrollments": make_all,
        }
    )


def keys_of(tx: FakeTx, words: str) -> list[Any]:
    """The keys of the statements that hold these words."""
    return [tuple(key) for params in tx.params_of(words) for key in from_json(params["keys"])]


@pytest.mark.parametrize(("status", "led"), [("active", 1), ("blocked", 0), ("unsubscribed", 0)])
async def test_a_tag_leads_subscribers_into_the_chain(
    core: FakeContext, status: Status, led: int
) -> None:
    core.subscribers.person(status=status)
    tx = reacting(("tag", "vip"))
    await triggers(core).on_tags_added(tx, PROJECT, "sub_1", ["vip"])

    assert len(keys_of(tx, "INSERT INTO drip_enrollments")) == led


async def test_the_first_step_is_due_after_its_delay(core: FakeContext) -> None:
    core.subscribers.person()
    tx = reacting(("tag", "vip"))
    await triggers(core).on_tags_added(tx, PROJECT, "sub_1", ["vip"])

    [(*_, due)] = keys_of(tx, "INSERT INTO drip_enrollments")
    assert due == str(core.clock.now_ms())


async def test_who_leaves_is_out_of_every_chain(core: FakeContext) -> None:
    anna, tx = core.subscribers.person(), reacting()
    fields = {"reason": "stop", "source": "deep_link"}
    left = await core.events.emit(tx, PROJECT, "subscription.deleted", fields, subscriber=anna)
    await triggers(core).on_events(tx, [left])

    assert keys_of(tx, "keys.why") == [(PROJECT, "sub_1", "", "0", "subscription.deleted")]


async def test_what_a_project_tracks_is_an_event_of_its_own_name(core: FakeContext) -> None:
    anna, tx = core.subscribers.person(), reacting()
    fields = {"name": "cart.abandoned", "properties": {}}
    tracked = await core.events.emit(tx, PROJECT, "event.tracked", fields, subscriber=anna)
    await triggers(core).on_events(tx, [tracked])

    assert set(keys_of(tx, "SELECT keys.kind")) == {
        (PROJECT, kind, name)
        for kind in ("event", "stop")
        for name in ("event.tracked", "cart.abandoned")
    }


async def test_who_subscribes_is_led_in_by_that_and_by_how_they_came(core: FakeContext) -> None:
    anna, tx = core.subscribers.person(), reacting()
    fields = {"source": "api"}
    came = await core.events.emit(tx, PROJECT, "subscription.created", fields, subscriber=anna)
    await triggers(core).on_events(tx, [came])

    asked = keys_of(tx, "SELECT keys.kind")
    assert {(PROJECT, "subscription", ""), (PROJECT, "subscription", "api")} <= set(asked)


@pytest.mark.parametrize("granted", [True, False])
async def test_a_permission_leads_in_when_it_is_granted(core: FakeContext, granted: bool) -> None:
    anna, tx = core.subscribers.person(), reacting()
    fields = {"permission": "news", "granted": granted}
    name = "subscription.permission_changed"
    changed = await core.events.emit(tx, PROJECT, name, fields, subscriber=anna)
    await triggers(core).on_events(tx, [changed])

    asked = keys_of(tx, "SELECT keys.kind")
    assert ((PROJECT, "permission", "news") in asked) is granted


async def test_our_own_events_lead_nobody_anywhere(core: FakeContext) -> None:
    anna, tx = core.subscribers.person(), FakeTx()
    fields = {"drip_id": "drp_1", "enrollment_id": "enr_1", "step": 1, "message_id": "msg_1"}
    sent = await core.events.emit(tx, PROJECT, "drip.step_sent", fields, subscriber=anna)
    await triggers(core).on_events(tx, [sent])

    assert tx.statements == []


async def test_one_event_ends_a_chain_before_it_begins_the_next(core: FakeContext) -> None:
    anna, tx = core.subscribers.person(), reacting(("event", "order.paid"), ("stop", "order.paid"))
    fields = {"name": "order.paid", "properties": {}}
    paid = await core.events.emit(tx, PROJECT, "event.tracked", fields, subscriber=anna)
    await triggers(core).on_events(tx, [paid])

    [_, stopped, begun] = [text for text, _ in tx.statements]
    assert "keys.why" in stopped
    assert begun.startswith("INSERT INTO drip_enrollments")
    assert keys_of(tx, "keys.why") == [(PROJECT, "sub_1", "drp_1", "1", "order.paid")]
