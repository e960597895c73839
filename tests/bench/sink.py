"""A messenger that takes everything at once, so that the service is all that is measured."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels import Channel, ChannelHealth, ChannelKind, OutgoingMessage
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.settings import Section


class SinkChannel(Channel):
    """Keeps nothing."""

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return "1"

    # The bench only sends; a call of one of these would be a mistake of it, and shows here.

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise NotImplementedError

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise NotImplementedError

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        raise NotImplementedError

    def deep_link(self, payload: str) -> str:
        return f"sink:{self.name}?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(ok=True)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    def create(_service: Any, name: str, _settings: Section) -> Channel:
        return SinkChannel(name)

    return [ChannelKind("sink", Section, create)]
