"""Who has a dialogue under way hears of what else a person does in the chat."""

from itertools import count
from typing import Any

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    InboundContext,
    InboundRule,
    MessageReceived,
    Started,
)
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory

_numbers = count(1)


class Listener:
    """Takes a link, a button, a command and messages, and notes what it hears of as an aside."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @hookimpl
    def register_inbound(self) -> list[InboundRule]:
        async def take(ctx: InboundContext) -> None:
            pass

        async def leave(ctx: InboundContext) -> bool:
            return False

        async def hear(ctx: InboundContext) -> None:
            self.heard.append(type(ctx.update).__name__)

        return [
            InboundRule("start", take, prefix="taken_"),
            InboundRule("start", leave, prefix="left_"),
            InboundRule("button", take, prefix="taken:"),
            InboundRule("command", take, name="taken"),
            InboundRule("message", take),
            InboundRule("aside", hear),
        ]


async def test_what_somebody_took_is_told_and_nothing_else(make_service: ServiceFactory) -> None:
    listener = Listener()
    service = await make_service(extra_plugins=[("listener", listener)])

    async def bring(kind: Any, **fields: Any) -> list[str]:
        listener.heard.clear()
        user = ChannelUser("1", "Ann")
        update = kind(update_id=str(next(_numbers)), chat_id="c", user=user, **fields)
        await service.inbound.receive("messenger_a", update)
        await settled(service)
        return list(listener.heard)

    press = {"message_ref": "m", "button_ref": "b"}
    assert await bring(Started, payload="taken_1") == ["Started"]
    assert await bring(Started, payload="left_1") == []
    assert await bring(ButtonPressed, data="~taken:1", **press) == ["ButtonPressed"]
    assert await bring(ButtonPressed, data="~other:1", **press) == []
    assert await bring(MessageReceived, text="/taken") == ["MessageReceived"]
    assert await bring(MessageReceived, text="Hello") == []
