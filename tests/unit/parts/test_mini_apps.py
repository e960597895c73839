"""Somebody who opens the mini app of a bot becomes a subscriber."""

import pytest

from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import InvalidMiniApp
from msgsvc_core.channels.updates import MiniAppUser
from msgsvc_core.config.settings import Section
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.subscribers.mini_app import MiniAppBody, MiniAppSubscribing
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.fakes import PROJECT, FakeChannels, FakeTx, fake_settings
from tests.unit.parts.people import ANN
from tests.unit.parts.rows import NOW_MS


class MiniAppChannel(RecordingChannel):
    """Its platform signs what is not empty."""

    capabilities = Capabilities(mini_app=True)
    user = MiniAppUser(ANN, NOW_MS)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        if not init_data:
            raise InvalidMiniApp("its signature is not the platform's")
        return self.user


def create_mini(_context: object, identity: ChannelIdentity, _settings: Section) -> Channel:
    return MiniAppChannel(identity)


#: The bot of `messenger_a` has a mini app.
MINI = ChannelKind("mini", Section, create_mini)
CHANNELS = fake_settings(
    channels={"messenger_a": {"plugin": "mini"}, "messenger_b": {"plugin": "recording"}}
)


def mini_apps_of(core: FakeContext) -> MiniAppSubscribing:
    return MiniAppSubscribing(
        clock=core.clock,
        channels=FakeChannels(CHANNELS, kinds=[MINI], clock=core.clock),
        subscribers=core.subscribers,
        tags=core.tags,
        max_age_hours=24,
    )


OPENED = MiniAppBody(channel="messenger_a", init_data="signed", tags=["vip"])


async def test_a_mini_apps_user_is_subscribed_in_the_chat_that_the_bot_has_with_them() -> None:
    core = plugin_context()
    tx = FakeTx(answers=[[{"chat_id": "c7"}], 1])
    person, is_new = await mini_apps_of(core).subscribe(tx, PROJECT, OPENED)

    assert (person.chat_id, person.source, person.tags, is_new) == (
        "c7",
        "mini_app",
        ("vip",),
        True,
    )
    assert tx.statements[1][1]["project_id"] == PROJECT


async def test_who_never_started_the_bot_cannot_be_written_to() -> None:
    with pytest.raises(Conflict, match="start it first"):
        await mini_apps_of(plugin_context()).subscribe(FakeTx(answers=[[]]), PROJECT, OPENED)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"init_data": ""}, "signature"),
        ({"channel": "messenger_b"}, "has no mini apps"),
        ({"channel": "fax"}, "must be one of"),
    ],
)
async def test_what_the_platform_did_not_sign_for_the_bot_subscribes_nobody(
    change: dict[str, str], why: str
) -> None:
    core = plugin_context()
    with pytest.raises(ValidationFailed, match=why):
        await mini_apps_of(core).subscribe(FakeTx(), PROJECT, OPENED.model_copy(update=change))

    assert core.subscribers.everybody == []


async def test_what_was_signed_long_ago_is_refused() -> None:
    core = plugin_context()
    core.clock.advance(24 * 3600 + 1)

    with pytest.raises(ValidationFailed, match="24 hours"):
        await mini_apps_of(core).subscribe(FakeTx(), PROJECT, OPENED)
