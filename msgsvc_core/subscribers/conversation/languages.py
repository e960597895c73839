"""/lang: sets the language of messages to a user."""

from collections.abc import Sequence
from functools import cached_property

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.i18n import Texts, own_name
from msgsvc_core.subscribers.conversation import buttons
from msgsvc_core.subscribers.service import Subscribers

#: Buttons per row, so that the languages' names fit on a phone's screen.
IN_A_ROW = 2


class Languages:
    """The chosen language applies to this chat, and takes precedence over the messenger's."""

    def __init__(self, *, texts: Texts, subscribers: Subscribers) -> None:
        self._texts = texts
        self._subscribers = subscribers
        self.presses: dict[str, buttons.Press] = {"lang": self._on_choose}

    async def handle_command(self, ctx: InboundContext) -> None:
        lang = self._named(ctx.argument)
        if lang is not None:
            await ctx.reply(await self._choose(ctx, lang))
        else:
            await ctx.reply(self._question(ctx))

    async def _on_choose(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        lang = self._named((*parts, "")[0])
        await buttons.replace(ctx, await self._choose(ctx, lang) if lang else self._question(ctx))

    @cached_property
    def _names(self) -> dict[str, str]:
        """The name of each language in that language, so that its speakers recognise it."""
        return {lang: own_name(lang) for lang in self._texts.languages}

    def _named(self, text: str) -> str | None:
        """The language with that code or name: `ru` or `Русский`."""
        wanted = text.lower()
        found = (
            lang for lang, name in self._names.items() if wanted in {lang.lower(), name.lower()}
        )
        return next(found, None)

    async def _choose(self, ctx: InboundContext, lang: str) -> OutgoingMessage:
        update = ctx.update
        await self._subscribers.set_language(
            ctx.tx, ctx.channel, update.chat_id, update.user.user_id, lang
        )
        _ = self._texts.into(lang)
        return OutgoingMessage(_("You will now get messages in English."))

    def _question(self, ctx: InboundContext) -> OutgoingMessage:
        _ = ctx._
        text = _("In which language would you like to get messages?")
        if not buttons.are_shown(ctx):
            ways = "\n".join(f"/lang {lang} – {name}" for lang, name in self._names.items())
            return OutgoingMessage(f"{text}\n\n{ways}")
        shown = [
            Button(f"✓ {name}" if lang == ctx.lang else name, data=buttons.data("lang", lang))
            for lang, name in self._names.items()
        ]
        rows = tuple(tuple(shown[at : at + IN_A_ROW]) for at in range(0, len(shown), IN_A_ROW))
        return OutgoingMessage(text, buttons=rows)
