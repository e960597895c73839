"""Welcome and farewell messages of a project's bot."""

import structlog

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import TemplateError, TooLong, WrongVariable, plain_template
from msgsvc_core.db import Tx
from msgsvc_core.kernel.i18n import Localized, Texts, Translate, in_language
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Source, Subscriber

#: Sources that come with an open chat. Otherwise a greeting would be out of place: the user of a mini app may
#: never have written to the bot.
GREETED: frozenset[Source] = frozenset({"deep_link", "auth"})

#: Maximum characters of a rendered greeting, which every messenger supports.
MOST = 4000

log = structlog.get_logger(__name__)


class Greetings:
    """Welcomes subscribers. A project's texts have the variables `{{ first_name }}` and `{{ project }}`."""

    def __init__(self, *, texts: Texts, outbox: BotOutbox, projects: Projects) -> None:
        self._texts = texts
        self._outbox = outbox
        self._projects = projects

    async def welcome(self, tx: Tx, subscriber: Subscriber, source: Source) -> None:
        """Welcomes a new subscriber once, in their language.

        Without a text of the project, the bot confirms the subscription, except after a sign-in, which has
        its own response.
        """
        if source not in GREETED:
            return
        project_id, lang = subscriber.project_id, subscriber.lang
        text = (await self._projects.texts(tx, project_id)).welcome
        said = await self._render(tx, project_id, text, subscriber.first_name, lang)
        if said is None and source == "auth":
            return
        if said is None:
            project = await self._projects.get(tx, project_id)
            said = subscribed_to(self._texts.into(lang), project.public_name)
        await self._outbox.send(tx, subscriber.bot, subscriber.chat_id, OutgoingMessage(said))

    async def farewell(self, ctx: InboundContext, project_id: str) -> str | None:
        """The project's farewell for this chat; None if it has no text of its own."""
        text = (await self._projects.texts(ctx.tx, project_id)).farewell
        return await self._render(ctx.tx, project_id, text, ctx.update.user.first_name, ctx.lang)

    async def _render(
        self, tx: Tx, project_id: str, text: Localized | None, first_name: str, lang: str
    ) -> str | None:
        if text is None:
            return None
        project = await self._projects.get(tx, project_id)
        chosen = in_language(text, lang, self._texts.default_lang)
        try:
            values = {"first_name": first_name, "project": project.public_name}
            return plain_template(chosen).render(values, MOST).strip() or None
        except (TemplateError, WrongVariable, TooLong) as error:
            # It was validated when it was saved; if it fails anyway, the default text is sent.
            log.error("greeting_unusable", project_id=project_id, error=str(error))
            return None


def subscribed_to(_: Translate, project: str) -> str:
    """The default text for a new subscriber."""
    return _("You are subscribed to notifications from {project}.", project=project)
