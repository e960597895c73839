"""Phone numbers that platforms tell: recorded once, for every subscription of the user."""

import pytest
from structlog.testing import capture_logs

from msgsvc_core.channels import ChannelUser
from msgsvc_core.subscribers.phones import PlatformPhones
from msgsvc_devkit.fakes import PROJECT, FakeTx, plugin_context

ANN = ChannelUser("7", "Anna", phone="+1 202 555 0123")


async def test_a_number_is_recorded_for_every_subscription_by_the_bot() -> None:
    core, tx = plugin_context(), FakeTx()
    core.subscribers.person("sub_1", user_id="7")
    core.subscribers.person("sub_2", user_id="7", project_id="prj_2")
    core.subscribers.person("sub_3", user_id="8")
    phones = PlatformPhones(subscribers=core.subscribers, contacts=core.contacts)
    await phones.record(tx, "messenger_a", "messenger_a", ANN)

    assert {key: one.phone for key, one in core.contacts.known.items()} == {
        (PROJECT, "sub_1"): "+12025550123",
        ("prj_2", "sub_2"): "+12025550123",
    }
    assert set(core.contacts.sources.values()) == {"messenger_a"}


async def test_a_number_that_is_known_is_not_recorded_again() -> None:
    core, tx = plugin_context(), FakeTx()
    core.subscribers.person("sub_1", user_id="7")
    phones = PlatformPhones(subscribers=core.subscribers, contacts=core.contacts)
    await phones.record(tx, "messenger_a", "messenger_a", ANN)
    core.contacts.sources.clear()
    await phones.record(tx, "messenger_a", "messenger_a", ANN)

    assert core.contacts.sources == {}


@pytest.mark.parametrize("phone", [None, "", "12", "ann"])
async def test_what_is_no_number_is_logged_and_not_shown(phone: str | None) -> None:
    core = plugin_context()
    core.subscribers.person("sub_1", user_id="7")
    phones = PlatformPhones(subscribers=core.subscribers, contacts=core.contacts)
    with capture_logs() as logs:
        user = ChannelUser("7", "Anna", phone=phone)
        await phones.record(FakeTx(), "messenger_a", "messenger_a", user)

    assert logs == [{"event": "phone_unreadable", "log_level": "warning", "channel": "messenger_a"}]
    assert core.contacts.known == {}
