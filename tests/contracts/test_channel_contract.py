"""The kit for channels: a channel that keeps the contract passes every check."""

from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import ChannelContract, Messenger
from tests.contracts.pigeon import (
    PigeonChannel,
    PigeonMessenger,
    PigeonSettings,
    RepeatablePigeonChannel,
    RepeatingPigeonChannel,
)
from tests.contracts.pigeons import Pigeons


class PigeonPlugin:
    """Brings the kind `pigeon`, with its platform in memory."""

    def __init__(self, made: type[PigeonChannel] = PigeonChannel) -> None:
        self.pigeons = Pigeons()
        self._made = made

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, settings: PigeonSettings) -> Channel:
            return self._made(identity, self.pigeons, settings)

        made = self._made
        return [ChannelKind("pigeon", made.settings, create, made.operator_settings)]


class PigeonContract(ChannelContract):
    """A platform of its own for every check."""

    kind = "pigeon"
    receiving = "poll"
    made: type[PigeonChannel] = PigeonChannel

    @pytest.fixture
    async def messenger(self) -> Messenger:
        self.plugin = PigeonPlugin(self.made)
        return PigeonMessenger(self.plugin.pigeons, self.receiving)


class TestPigeonsThatPoll(PigeonContract):
    pass


class TestPigeonsThatDropRepeats(PigeonContract):
    made = RepeatablePigeonChannel


class TestPigeonsThatRepeatByThemselves(PigeonContract):
    made = RepeatingPigeonChannel


class TestPigeonsThatCall(PigeonContract):
    receiving = "webhook"
