"""Several updates of one person at once: each has its effect once, and the last message is true."""

import asyncio
from itertools import count

import pytest

from msgsvc_core.channels import ButtonPressed, MessageReceived
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker, events_of, shown_of

pytestmark = pytest.mark.both_databases

_numbers = count(1)


async def at_once(talker: Talker, updates: list[ButtonPressed | MessageReceived]) -> None:
    await asyncio.gather(
        *(talker.service.inbound.receive(talker.channel_key, update) for update in updates)
    )
    await settled(talker.service)


@pytest.mark.database_file
async def test_stop_written_five_times_at_once_ends_the_subscription_once(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.subscribe(tenant)
    stops = [MessageReceived(update_id=f"at-once-{n}", text="/stop", **ann.who) for n in range(5)]

    await at_once(ann, list(stops))

    assert len(await events_of(tenant, "subscription.deleted")) == 1
    assert sum("unsubscribed from Shop" in one.message.text for one in ann.shown) == 1


@pytest.mark.database_file
async def test_switches_pressed_at_once_are_all_shown_in_the_end(
    ann: Talker, tenant: Tenant
) -> None:
    for number in range(5):
        body = {"key": f"p{number}", "title": f"P{number}"}
        assert (await tenant.client.post("/v1/permissions", json=body)).status_code == 201
    await ann.subscribe(tenant)
    await ann.write("/settings")
    shown = ann.shown[-1]
    presses = [
        ButtonPressed(
            update_id=f"switch-{next(_numbers)}",
            data=button.data or "",
            message_ref=shown.message_ref,
            button_ref=f"b{next(_numbers)}",
            **ann.who,
        )
        for [button] in shown.message.buttons
        for _ in range(2)
    ]

    await at_once(ann, list(presses))

    assert (await shown_of(tenant))["permissions"] == [f"p{number}" for number in range(5)]
    assert len(await events_of(tenant, "subscription.permission_changed")) == 5
    assert ann.labels == [f"☑ P{number}: on" for number in range(5)]
