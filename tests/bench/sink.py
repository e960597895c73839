"""A messenger that takes everything at once, so that the service is all that is measured."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind, OutgoingMessage
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel


class SinkChannel(SendOnlyChannel):
    """Keeps nothing."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return "1"


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
        return SinkChannel(identity)

    return [ChannelKind("sink", Section, create)]
