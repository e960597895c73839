"""Phone numbers that platforms tell: recorded once, for every subscription of the user."""

import pytest
from structlog.testing import capture_logs

from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Row, Tx
from msgsvc_core.subscribers.phones import PlatformPhones
from msgsvc_devkit.core import PROJECT, MemoryCore

ANN = ChannelUser("7", "Anna", phone="+1 202 555 0123")


async def record(core: MemoryCore, tx: Tx, user: ChannelUser = ANN) -> None:
    phones = PlatformPhones(subscribers=core.subscribers, contacts=core.contacts)
    await phones.record(tx, "messenger_a", "messenger_a", user)


async def recorded(tx: Tx) -> list[Row]:
    return await tx.fetch_all("SELECT * FROM core_subscriber_contacts ORDER BY subscriber_id")


async def test_a_number_is_recorded_for_every_subscription_by_the_bot(
    core: MemoryCore, tx: Tx
) -> None:
    await core.project(tx, "prj_2")
    await core.person(tx, "sub_1", user_id="7")
    await core.person(tx, "sub_2", user_id="7", project_id="prj_2")
    await core.person(tx, "sub_3", user_id="8")
    await record(core, tx)

    rows = await recorded(tx)
    assert [(row["project_id"], row["subscriber_id"], row["source"]) for row in rows] == [
        (PROJECT, "sub_1", "messenger_a"),
        ("prj_2", "sub_2", "messenger_a"),
    ]
    for row in rows:
        contacts = await core.contacts.find(tx, row["project_id"], row["subscriber_id"])
        assert contacts.phone == "+12025550123"


async def test_a_number_that_is_known_is_not_recorded_again(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, user_id="7")
    await record(core, tx)
    before = await recorded(tx)
    core.clock.advance(60)
    await record(core, tx)

    assert await recorded(tx) == before


@pytest.mark.parametrize("phone", [None, "", "12", "ann"])
async def test_what_is_no_number_is_logged_and_not_shown(
    core: MemoryCore, tx: Tx, phone: str | None
) -> None:
    await core.person(tx, user_id="7")
    with capture_logs() as logs:
        await record(core, tx, ChannelUser("7", "Anna", phone=phone))

    assert logs == [{"event": "phone_unreadable", "log_level": "warning", "channel": "messenger_a"}]
    assert await recorded(tx) == []
