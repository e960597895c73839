"""/lang: a person says in which language bots and projects shall write to them."""

from collections.abc import Sequence

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.subscribers.conversation import buttons, store

#: Each by its own name, so that who reads no other finds it.
NAMES = {"en": "English", "ru": "Русский"}


class Languages:
    """What is chosen holds for this chat, above the language of the messenger."""

    def __init__(self) -> None:
        self.presses: dict[str, buttons.Press] = {"lang": self._chosen}

    async def asked(self, ctx: InboundContext) -> None:
        lang = _named(ctx.argument)
        if lang is not None:
            await ctx.reply(await _choose(ctx, lang))
        else:
            await ctx.reply(_question(ctx))

    async def _chosen(self, ctx: InboundContext, parts: Sequence[str]) -> None:
        lang = _named((*parts, "")[0])
        await buttons.replace(ctx, await _choose(ctx, lang) if lang else _question(ctx))


def _named(text: str) -> str | None:
    """The language that is called so: `ru` or `Русский`."""
    return next(
        (lang for lang, name in NAMES.items() if text.lower() in {lang, name.lower()}), None
    )


async def _choose(ctx: InboundContext, lang: str) -> OutgoingMessage:
    update = ctx.update
    await store.set_language(ctx.tx, ctx.channel, update.chat_id, update.user.user_id, lang)
    _ = ctx.service.texts.into(lang)
    return OutgoingMessage(_("From now on you are written to in English."))


def _question(ctx: InboundContext) -> OutgoingMessage:
    _ = ctx._
    text = _("In which language would you like to be written to?")
    if not buttons.are_shown(ctx):
        ways = "\n".join(f"/lang {lang} – {name}" for lang, name in NAMES.items())
        return OutgoingMessage(f"{text}\n\n{ways}")
    row = tuple(
        Button(f"✓ {name}" if lang == ctx.lang else name, data=buttons.data("lang", lang))
        for lang, name in NAMES.items()
    )
    return OutgoingMessage(text, buttons=(row,))
