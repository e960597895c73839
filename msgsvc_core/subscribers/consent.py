"""Asks the current holder of an `external_id` before another messenger account is bound to it.

Codes and messages by `external_id` go to its holders, so a link that carries one binds a second messenger
only after a Yes in the first (docs/decisions/0019). The question is not stored: the data of its buttons is
`~who:y:<asker>:<minute>:<seal>`, 62 of at most 64 bytes, and the seal is a keyed hash over the choice, the
asker, the minute, the project, the `external_id` and the holder.
"""

import re

from msgsvc_core.channels.inbound import OWN_BUTTON, InboundContext, InboundRule
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import MINUTE_MS, Clock
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.ids import ID_WIDTH
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_core.projects.service import Projects
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers import store
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.subscribing import lock_external_id

PREFIX = "who:"

PURPOSE = "consent question"


_SUBSCRIBER = "sub_"
_DATA = re.compile(
    rf"{OWN_BUTTON}{PREFIX}([yn]):([0-9A-Za-z]{{{ID_WIDTH}}}):([0-9]{{1,9}}):([0-9A-Za-z]{{{ID_WIDTH}}})"
)


class Consents:
    """Asks users whether they want to subscribe. A question can be answered for `personal_link_s` seconds, as
    long as the link is valid."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        texts: Texts,
        projects: Projects,
        channels: Channels,
        outbox: BotOutbox,
        personal_link_s: int,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._texts = texts
        self._projects = projects
        self._channels = channels
        self._outbox = outbox
        self._personal_link_s = personal_link_s

    def rules(self) -> list[InboundRule]:
        return [InboundRule("button", self._pressed, prefix=PREFIX)]

    async def holder(
        self, tx: Tx, project_id: str, external_id: str, but: tuple[str, str]
    ) -> Subscriber | None:
        """The active holder of the `external_id` that was seen last; None if there is none except the user
        `but`, given as channel name and user id. Locks the `external_id` until the transaction ends."""
        await lock_external_id(tx, project_id, external_id)
        key = project_id, external_id
        carriers = (await store.find_recipients_by_external_id(tx, [key])).get(key, [])
        keys = [(project_id, each.subscriber_id) for each in carriers if each.status == "active"]
        found = [
            each
            for each in (await store.get_many(tx, keys)).values()
            if (each.channel, each.user_id) != but
        ]
        return max(found, key=lambda each: each.last_seen_at_ms, default=None)

    async def ask(self, tx: Tx, holder: Subscriber, asker: Subscriber) -> None:
        """Asks `holder` whether `asker` is them. If the holder can't answer, nothing is asked, and the
        asker gets no `external_id`."""
        bot = await self._channels.find(holder.bot)
        is_somebody = asker.external_id is not None or asker.channel == holder.channel
        if bot is None or not bot.capabilities.answers or is_somebody:
            return
        project = await self._projects.get(tx, holder.project_id)
        _ = self._texts.into(holder.lang)
        name = one_line(asker.first_name)
        if asker.username:
            name = f"{name} (@{one_line(asker.username)})"
        text = _(
            "{name} opened a personal link of {project} in {messenger} that was made for you. If "
            "you confirm, your messages and one-time codes can be sent there as well. Was it you?",
            name=name,
            project=one_line(project.public_name),
            messenger=self._channels.display_name(asker.channel, asker.project_id),
        )
        row = (
            Button(_("Yes, it was me"), data=self._data("y", holder, asker.subscriber_id)),
            Button(_("No"), data=self._data("n", holder, asker.subscriber_id)),
        )
        await self._outbox.send(
            tx,
            holder.bot,
            holder.chat_id,
            OutgoingMessage(text, format="plain", buttons=(row,)),
            lang=holder.lang,
        )

    async def _pressed(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, ButtonPressed)
        match = _DATA.fullmatch(ctx.update.data)
        if match is None:
            return False
        choice, asker, minute, seal = match.groups()
        mine = await store.list_by_user(ctx.tx, ctx.channel, ctx.update.user.user_id)
        keys = [(each.project_id, each.subscriber_id) for each in mine]
        for holder in (await store.get_many(ctx.tx, keys)).values():
            if holder.external_id is None:
                continue
            parts = _parts(choice, holder, _SUBSCRIBER + asker, int(minute))
            if self._secrets.verify(seal, PURPOSE, *parts):
                said = await self._answer(ctx, holder, _SUBSCRIBER + asker, int(minute), choice)
                await ctx.edit(ctx.update.message_ref, OutgoingMessage(said, format="plain"))
                await ctx.answer_button()
                return True
        return False

    async def _answer(
        self, ctx: InboundContext, holder: Subscriber, asker_id: str, minute: int, choice: str
    ) -> str:
        """The text that replaces the question."""
        _ = ctx._
        if choice == "n":
            return _("Not confirmed. Nothing of yours will be sent there.")
        lasts_ms = self._personal_link_s * 1000
        is_late = self._clock.now_ms() - minute * MINUTE_MS > lasts_ms
        assert holder.external_id is not None, "the seal is over it"
        await lock_external_id(ctx.tx, holder.project_id, holder.external_id)
        if (
            is_late
            or holder.status != "active"
            or not await store.set_external_id(
                ctx.tx, holder.project_id, asker_id, holder.external_id
            )
        ):
            return _("This is no longer valid. Open a new link.")
        return _("Confirmed. Your messages can be sent there as well.")

    def _data(self, choice: str, holder: Subscriber, asker_id: str) -> str:
        minute = self._clock.now_ms() // MINUTE_MS
        seal = self._secrets.sign(PURPOSE, *_parts(choice, holder, asker_id, minute))
        asker = asker_id.removeprefix(_SUBSCRIBER)
        return f"{OWN_BUTTON}{PREFIX}{choice}:{asker}:{minute}:{seal}"


def _parts(choice: str, holder: Subscriber, asker_id: str, minute: int) -> tuple[str, ...]:
    return (
        *(choice, asker_id, str(minute), holder.project_id, holder.external_id or ""),
        *(holder.bot, holder.user_id, holder.subscriber_id),
    )
