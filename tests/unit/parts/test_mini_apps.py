"""Somebody who opens the mini app of a bot becomes a subscriber."""

from collections.abc import AsyncIterator, Sequence

import pytest

from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind, chats
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import InvalidMiniApp
from msgsvc_core.channels.updates import MiniAppUser
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.subscribers.mini_app import MiniAppSubscribing, SubscribeInMiniAppBody
from msgsvc_core.subscribers.models import SubscriberQuery
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
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


class MiniAppKind:
    """Registers the channel kind `mini`."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: object, identity: ChannelIdentity, _settings: Section) -> Channel:
            return MiniAppChannel(identity)

        return [ChannelKind("mini", Section, create)]


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    """The bot of `messenger_a` has a mini app."""
    channels = {"messenger_a": {"plugin": "mini"}, "messenger_b": {"plugin": "recording"}}
    async with memory_core(extra_plugins=[("mini", MiniAppKind())], channels=channels) as core:
        yield core


OPENED = SubscribeInMiniAppBody(channel="messenger_a", init_data="signed", tags=["vip"])


async def start_bot(tx: Tx) -> None:
    """Anna starts the bot, in a chat that is of no project yet."""
    await chats.touch(tx, "messenger_a", "c7", user_id="7", project_id=None, now_ms=NOW_MS)


async def test_a_mini_apps_user_is_subscribed_in_the_chat_that_the_bot_has_with_them(
    core: MemoryCore, tx: Tx
) -> None:
    await start_bot(tx)
    person, is_new = await core.service.get(MiniAppSubscribing).subscribe(tx, PROJECT, OPENED)

    assert (person.chat_id, person.source, person.tags, is_new) == (
        "c7",
        "mini_app",
        ("vip",),
        True,
    )
    [chat] = await tx.fetch_all("SELECT * FROM core_chats")
    assert (chat["chat_id"], chat["project_id"]) == ("c7", PROJECT)


async def test_who_never_started_the_bot_cannot_be_written_to(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(Conflict, match="start it first"):
        await core.service.get(MiniAppSubscribing).subscribe(tx, PROJECT, OPENED)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"init_data": ""}, "signature"),
        ({"channel": "messenger_b"}, "has no mini apps"),
        ({"channel": "fax"}, "must be one of"),
    ],
)
async def test_what_the_platform_did_not_sign_for_the_bot_subscribes_nobody(
    core: MemoryCore, tx: Tx, change: dict[str, str], why: str
) -> None:
    await start_bot(tx)
    with pytest.raises(ValidationFailed, match=why):
        await core.service.get(MiniAppSubscribing).subscribe(
            tx, PROJECT, OPENED.model_copy(update=change)
        )

    assert await core.subscribers.page(tx, PROJECT, SubscriberQuery()) == []


async def test_what_was_signed_long_ago_is_refused(core: MemoryCore, tx: Tx) -> None:
    await start_bot(tx)
    core.clock.advance(24 * 3600 + 1)

    with pytest.raises(ValidationFailed, match="24 hours"):
        await core.service.get(MiniAppSubscribing).subscribe(tx, PROJECT, OPENED)
