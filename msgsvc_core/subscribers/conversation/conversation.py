"""`service.conversation`: which command and which button leads where."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgsvc_core.channels.inbound import InboundContext, InboundHandler, InboundRule
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.subscribers.conversation import buttons, texts
from msgsvc_core.subscribers.conversation.choices import Choices
from msgsvc_core.subscribers.conversation.languages import Languages
from msgsvc_core.subscribers.conversation.leaving import Leaving
from msgsvc_core.subscribers.conversation.starting import Starting

if TYPE_CHECKING:
    from msgsvc_core.service import Service


class Conversation:
    """The commands that every bot understands. Plugins add theirs: see `InboundRule`."""

    def __init__(self, service: "Service") -> None:
        self._starting = Starting(service)
        self._leaving = Leaving(service)
        self._choices = Choices(service)
        self._languages = Languages()
        self._presses: dict[str, buttons.Press] = {
            **self._starting.presses,
            **self._leaving.presses,
            **self._choices.presses,
            **self._languages.presses,
        }

    def rules(self) -> list[InboundRule]:
        return [
            _command("start", self._starting.started),
            _command("settings", self._choices.asked, lambda _: _("choose what you get")),
            _command("lang", self._languages.asked, lambda _: _("language / язык")),
            _command("stop", self._leaving.asked, lambda _: _("unsubscribe")),
            _command("help", _help, lambda _: _("what this bot understands")),
            InboundRule("button", self._pressed, prefix=buttons.PREFIX),
        ]

    async def _pressed(self, ctx: InboundContext) -> bool:
        """What is not understood is left to the core's answer."""
        action, parts = buttons.read(ctx)
        press = self._presses.get(action)
        if press is None:
            return False
        await press(ctx, parts)
        return True


async def _help(ctx: InboundContext) -> None:
    await ctx.reply(OutgoingMessage(texts.commands(ctx)))


def _command(
    name: str, handler: InboundHandler, about: Callable[[Translate], str] | None = None
) -> InboundRule:
    return InboundRule("command", handler, name=name, about=about)
