"""The command `/apps`, and the buttons under its messages.

On messengers without buttons the core shows them as numbered replies (docs/decisions/0059).
"""

from collections.abc import Sequence

from msgsvc_core.channels import ButtonPressed, InboundContext, InboundRule
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.apps.texts import ASK, END, PREFIX, SHOW, AppTexts
from msgsvc_oidc.consents.models import Consent
from msgsvc_oidc.consents.service import Consents


class AppsCommand:
    """Lists the apps of all projects that the person knows by this bot. `listed`: in the bot's menu."""

    def __init__(
        self, *, subscribers: Subscribers, projects: Projects, consents: Consents, listed: bool
    ) -> None:
        self._subscribers = subscribers
        self._projects = projects
        self._consents = consents
        self._listed = listed

    def rules(self) -> list[InboundRule]:
        return [
            InboundRule(
                "command",
                self._written,
                name="apps",
                about=(lambda _: _("apps with access to your account")) if self._listed else None,
            ),
            InboundRule("button", self._pressed, prefix=PREFIX),
        ]

    async def _written(self, ctx: InboundContext) -> None:
        texts, consents = await self._of(ctx)
        is_group = ctx.bot.is_group(ctx.update.chat_id)
        await ctx.reply(texts.private() if is_group else texts.apps(consents, 0))

    async def _pressed(self, ctx: InboundContext) -> bool:
        """Unknown data is left to the core's default response."""
        assert isinstance(ctx.update, ButtonPressed)
        action, *parts = ctx.update.data.removeprefix(OWN_BUTTON + PREFIX).split(":")
        if action not in {SHOW, ASK, END}:
            return False
        message = await self._answer(ctx, action, parts)
        await ctx.edit(ctx.update.message_ref, message)
        await ctx.answer_button()
        return True

    async def _answer(
        self, ctx: InboundContext, action: str, parts: Sequence[str]
    ) -> OutgoingMessage:
        texts, consents = await self._of(ctx)
        which, stamp = (*parts, "", "")[:2]
        if action == SHOW:
            return texts.apps(consents, whole_number(which) or 0)
        asked = next((each for each in consents if each.client_id == which), None)
        if asked is None:
            return texts.apps(consents, 0, texts.gone())
        # An old message's Yes is about the access of then.
        if action == ASK or stamp != f"{asked.granted_at_ms:x}":
            return texts.question(asked)
        await self._consents.take_back(
            ctx.tx, asked.project_id, asked.client_id, asked.subscriber_id
        )
        rest = [each for each in consents if each is not asked]
        return texts.apps(rest, 0, texts.ended(asked))

    async def _of(self, ctx: InboundContext) -> tuple[AppTexts, list[Consent]]:
        """The texts, and the apps that the person who wrote or pressed allowed."""
        known = await self._subscribers.list_by_user(ctx.tx, ctx.channel, ctx.update.user.user_id)
        people = [(each.project_id, each.subscriber_id) for each in known]
        projects = await self._projects.get_many(ctx.tx, [project_id for project_id, _ in people])
        names = {project_id: project.public_name for project_id, project in projects.items()}
        consents = await self._consents.list_of_people(ctx.tx, people)
        return AppTexts(ctx._, names), consents
