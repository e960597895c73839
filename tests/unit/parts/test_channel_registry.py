"""The kinds of channels, and the channels that there are."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.contract import BotProfile, Capabilities
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.kinds import ChannelKinds, WrongKind, WrongSettings
from msgsvc_core.channels.project_channels.models import CreateChannelBody
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.config.sections import OwnChannelSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, Unavailable, ValidationFailed
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.core import PROJECT
from tests.unit.parts.channels import FAX, OWN, Fax, FaxPlugin, another_process
from tests.unit.parts.rows import NOW_MS

BASE_URL = "https://msgsvc.example"


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(extra_plugins=[("fax", FaxPlugin())], base_url=BASE_URL) as core:
        yield core


# ---- kinds --------------------------------------------------------------------------------------


def kinds_of(core: MemoryCore, *allowed: str, **operators: Any) -> ChannelKinds:
    return ChannelKinds(
        [FAX, *RecordingPlugin().register_channel_kinds()],
        context=core.channels.kinds.context,
        secrets=core.secrets,
        settings=OwnChannelSettings(kinds=allowed, settings={"fax": operators}),
    )


def test_a_project_has_channels_of_the_allowed_kinds_alone(core: MemoryCore) -> None:
    assert set(kinds_of(core).for_projects) == {"fax", "recording"}
    assert set(kinds_of(core, "fax").for_projects) == {"fax"}
    with pytest.raises(WrongKind, match="fax"):
        kinds_of(core, "fax").check_own("recording", {})
    with pytest.raises(WrongKind, match="no loaded plugin"):
        kinds_of(core).check_own("pigeon", {})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"token": "t", "base_url": "http://10.0.0.1"}, "base_url: only the operator"),
        ({}, "token"),
        ({"token": "t", "lines": "many"}, "lines"),
        ({"token": "t", "colour": "red"}, "colour: there is no such setting"),
    ],
)
def test_what_a_project_may_not_set_is_refused_by_the_settings_name(
    core: MemoryCore, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(WrongSettings, match=why):
        kinds_of(core).check_own("fax", options)


def test_secrets_are_named_and_not_shown_and_what_the_operator_set_is_neither(
    core: MemoryCore,
) -> None:
    kinds = kinds_of(core, base_url="https://inside.example")
    shown = kinds.shown("fax", {"token": "t-1234", "lines": 2})

    assert (shown.values, shown.secrets) == ({"lines": 2}, ["token"])


def test_a_bot_is_known_by_its_secret_whatever_else_is_set(core: MemoryCore) -> None:
    kinds = kinds_of(core)
    same = kinds.digests("fax", {"token": "t", "lines": 2})

    assert kinds.digests("fax", {"token": "t"}) == same
    assert kinds.digests("fax", {"token": "other"}) != same


# ---- the registry -------------------------------------------------------------------------------


async def test_a_projects_own_channel_goes_before_the_shared_one_of_its_name(
    core: MemoryCore,
) -> None:
    channels = core.channels
    channels.register(ChannelIdentity("messenger_a", "chn_1", PROJECT), "recording", {})
    channels.register(ChannelIdentity("support", "chn_2", PROJECT), "recording", {})

    assert [each.key for each in channels.list_for_project(PROJECT)] == [
        "chn_1",
        "messenger_b",
        "chn_2",
    ]
    assert [each.key for each in channels.list_for_project("prj_2")] == [
        "messenger_a",
        "messenger_b",
    ]
    assert channels.resolve(PROJECT, "messenger_a") is channels["chn_1"]
    assert channels.resolve("prj_2", "messenger_a") is channels["messenger_a"]
    with pytest.raises(ForeignBot):
        channels.name_for("prj_2", "chn_1")


async def test_an_unknown_bot_is_looked_for_where_other_processes_write_theirs(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        body = CreateChannelBody(name="support", plugin="fax", settings={"token": "t"})
        made = await another_process(core).get(ProjectChannels).create(tx, PROJECT, body)
    assert core.channels.get(made.channel_id) is None
    found = await core.channels.find(made.channel_id)

    assert isinstance(found, Fax)
    assert found.name == "support"


async def test_a_bot_that_no_process_has_is_gone(core: MemoryCore) -> None:
    channels, gone = core.channels, "chn_01JGYZ0000000000000000000"

    assert await channels.find(gone) is None
    assert await channels.find("telegram") is None
    with pytest.raises(Conflict, match="the channel 'fax'"):
        await channels.get_bot(PROJECT, gone, "fax")
    with pytest.raises(Conflict, match="the one that is there now"):
        await channels.get_bot(PROJECT, gone, "messenger_a")


async def test_a_channel_that_changes_is_closed_after_the_calls_that_are_under_way(
    core: MemoryCore,
) -> None:
    channels = core.channels
    channels.register(OWN, "fax", {"token": "t"})
    async with channels.borrow("chn_1") as channel:
        channels.unregister("chn_1")
        assert isinstance(channel, Fax)
        assert not channel.is_closed
        await channel.send("c1", OutgoingMessage("still works"))

    assert channels.get("chn_1") is None
    await channels.close()
    assert channel.is_closed


async def test_a_profile_stays_while_the_bot_is_the_same(core: MemoryCore) -> None:
    channels = core.channels
    channels.register(OWN, "fax", {"token": "t"})
    channels["chn_1"].profile = BotProfile("Shop bot")
    channels.register(OWN, "fax", {"token": "t", "lines": 2})
    assert channels["chn_1"].profile == BotProfile("Shop bot")
    channels.register(OWN, "fax", {"token": "other"})

    assert channels["chn_1"].profile is None


def test_a_question_is_linked_only_where_it_can_be_answered(core: MemoryCore) -> None:
    channels = core.channels
    channels["messenger_a"].capabilities = Capabilities(buttons="links")
    channels["messenger_b"].capabilities = Capabilities(buttons="words")

    assert set(channels.deep_links(PROJECT, "auth_1")) == {"messenger_a", "messenger_b"}
    assert set(channels.deep_links(PROJECT, "auth_1", asks=True)) == {"messenger_b"}
    with pytest.raises(Unavailable):
        channels.deep_links(PROJECT, "auth_1", ["messenger_a"], asks=True)
    with pytest.raises(ValidationFailed, match="messenger_a"):
        channels.check_answers(PROJECT, "messenger_a")
    channels.check_answers(PROJECT, None)


def test_channels_of_one_kind_are_told_apart_by_their_names(core: MemoryCore) -> None:
    channels = core.channels
    channels.register(ChannelIdentity("sales", "chn_1", PROJECT), "fax", {"token": "1"})
    assert channels.display_name("sales", PROJECT) == "Fax"
    channels.register(ChannelIdentity("support_team", "chn_2", PROJECT), "fax", {"token": "2"})

    assert channels.display_name("support_team", PROJECT) == "Fax (Support Team)"
    assert channels.display_name("messenger_a") == "Messenger A"


def test_the_address_and_secret_of_a_webhook_are_its_channels_own(core: MemoryCore) -> None:
    channels = core.channels
    a, b = channels["messenger_a"], channels["messenger_b"]

    assert channels.hook_url(a) == f"{BASE_URL}/hooks/messenger_a"
    assert channels.hook_secrets(a) != channels.hook_secrets(b)
    assert len(channels.hook_secrets(a)[0]) == 64


async def test_where_no_link_carries_a_payload_people_write_it_or_its_short_code(
    core: MemoryCore, tx: Tx
) -> None:
    channels, long = core.channels, "auth_s_0123456789012345678901"
    one = channels["messenger_a"]
    one.capabilities = Capabilities(start_links=False)
    links = channels.deep_links(PROJECT, long)
    await channels.remember_start(tx, PROJECT, long, NOW_MS + 1)

    [written] = channels.start_messages(PROJECT, long, links).values()
    assert long not in written
    assert await core.service.get(StartCodes).payload_in(tx, written) == long
    assert long not in await tx.fetch_val("SELECT sealed FROM core_start_codes")
    assert channels.qr_links(links, PROJECT, "x")["messenger_a"] == (
        f"{BASE_URL}/qr/messenger_a/x.svg"
    )


async def test_a_project_whose_channels_all_have_links_needs_no_short_codes(
    core: MemoryCore, tx: Tx
) -> None:
    await core.channels.remember_start(tx, PROJECT, "auth_s_0123456789012345678901", NOW_MS + 1)

    assert await tx.fetch_val("SELECT COUNT(*) FROM core_start_codes") == 0
