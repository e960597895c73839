"""Routes commands and buttons to their handlers."""

from collections.abc import Callable

from msgsvc_core.channels.inbound import InboundContext, InboundHandler, InboundRule
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, Translate
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.conversation import buttons
from msgsvc_core.subscribers.conversation.choices import Choices
from msgsvc_core.subscribers.conversation.known import KnownSubscriptions
from msgsvc_core.subscribers.conversation.languages import Languages
from msgsvc_core.subscribers.conversation.leaving import Leaving
from msgsvc_core.subscribers.conversation.starting import Starting
from msgsvc_core.subscribers.conversation.texts import Commands, listed
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers


class Conversation:
    """The commands of every bot. Plugins add theirs: see `InboundRule`.

    `commands` is called for every request for help, since not all rules are registered before.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        projects: Projects,
        subscribers: Subscribers,
        permissions: Permissions,
        greetings: Greetings,
        commands: Commands,
    ) -> None:
        known = KnownSubscriptions(projects=projects, subscribers=subscribers)
        self._starting = Starting(
            clock=clock,
            projects=projects,
            known=known,
            subscribers=subscribers,
            commands=commands,
        )
        self._leaving = Leaving(
            clock=clock, known=known, subscribers=subscribers, greetings=greetings
        )
        self._choices = Choices(
            known=known,
            subscribers=subscribers,
            permissions=permissions,
            default_lang=texts.default_lang,
            links=subscribers.preferences,
        )
        self._languages = Languages(texts=texts, subscribers=subscribers)
        self._commands = commands
        self._presses: dict[str, buttons.Press] = {
            **self._starting.presses,
            **self._leaving.presses,
            **self._choices.presses,
            **self._languages.presses,
        }

    def rules(self) -> list[InboundRule]:
        return [
            _command("start", self._starting.handle_start),
            _command("settings", self._choices.handle_command, lambda _: _("choose what you get")),
            _command("lang", self._languages.handle_command, lambda _: _("language / язык")),
            _command("stop", self._leaving.handle_command, lambda _: _("unsubscribe")),
            _command("help", self._help, lambda _: _("list of commands")),
            InboundRule("button", self._pressed, prefix=buttons.PREFIX),
        ]

    async def _pressed(self, ctx: InboundContext) -> bool:
        """Unknown data is left to the core's default response."""
        action, parts = buttons.read(ctx)
        press = self._presses.get(action)
        if press is None:
            return False
        await press(ctx, parts)
        return True

    async def _help(self, ctx: InboundContext) -> None:
        await ctx.reply(OutgoingMessage(listed(self._commands(ctx.lang))))


def _command(
    name: str, handler: InboundHandler, about: Callable[[Translate], str] | None = None
) -> InboundRule:
    return InboundRule("command", handler, name=name, about=about)
