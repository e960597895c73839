"""/lang: a person says in which language bots and projects shall write to them."""

from collections.abc import Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.i18n import own_name
from msgsvc_core.subscribers.conversation import buttons, store

#: Buttons beside each other, so that the languages' names fit on a phone.
IN_A_ROW = 2


class Languages:
    """What is chosen holds for this chat, above the language of the messenger."""

    def __init__(self) -> None:
        self.presses: dict[str, buttons.Press] = {"lang": self._chosen}

    async def asked(self, ctx: InboundContext) -> None:
        lang = _named(ctx, ctx.argument)
        if lang is not None:
            await ctx.reply(await _choose(ctx, lang))
        else:
            await ctx.reply(_question(ctx))

    async def _chosen(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        lang = _named(ctx, (*parts, "")[0])
        await buttons.replace(ctx, await _choose(ctx, lang) if lang else _question(ctx))


def _names(ctx: InboundContext) -> dict[str, str]:
    """Each language by its own name, so that who reads no other finds it."""
    return {lang: own_name(lang) for lang in ctx.service.settings.languages}


def _named(ctx: InboundContext, text: str) -> str | None:
    """The language that is called so: `ru` or `Русский`."""
    wanted = text.lower()
    found = (lang for lang, name in _names(ctx).items() if wanted in {lang.lower(), name.lower()})
    return next(found, None)


async def _choose(ctx: InboundContext, lang: str) -> OutgoingMessage:
    update = ctx.update
    await store.set_language(ctx.tx, ctx.channel, update.chat_id, update.user.user_id, lang)
    _ = ctx.service.texts.into(lang)
    return OutgoingMessage(_("From now on you are written to in English."))


def _question(ctx: InboundContext) -> OutgoingMessage:
    _ = ctx._
    text = _("In which language would you like to be written to?")
    if not buttons.are_shown(ctx):
        ways = "\n".join(f"/lang {lang} – {name}" for lang, name in _names(ctx).items())
        return OutgoingMessage(f"{text}\n\n{ways}")
    shown = [
        Button(f"✓ {name}" if lang == ctx.lang else name, data=buttons.data("lang", lang))
        for lang, name in _names(ctx).items()
    ]
    rows = tuple(tuple(shown[at : at + IN_A_ROW]) for at in range(0, len(shown), IN_A_ROW))
    return OutgoingMessage(text, buttons=rows)
